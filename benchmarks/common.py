"""What several benchmarks use: arguments, sentences, networks, and rates beside the load of the machine."""

import argparse
import csv
import json
import os
import random
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
import torch
from spacy.lang.en.stop_words import STOP_WORDS
from spacy.language import Language
from spacy.tokens import Doc

import spacy_elmo
from spacy_elmo import bilms
from spacy_elmo.formats import BiLMOptions, read_options, write_options, write_weights
from spacy_elmo.inference import Engine
from spacy_elmo.inference.linear import Precision, dtype_of
from spacy_elmo.modules import BiLM

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs"  # what measurements write
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
SIZES = ("original", "small", "en_core", "en_mini")
OFFICIAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
DISTURBED = 0.1  # cores

Sentences = list[list[str]]
Seconds = Callable[[int, int], float]  # for the first n sentences, in batches


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter): ...


def parser_of(description: str | None, *names: str) -> argparse.ArgumentParser:
    """Make a parser, with those of "size", "precisions" and "threads" that are named."""
    parser = argparse.ArgumentParser(description=description, formatter_class=_Help)
    if "size" in names:
        parser.add_argument("--size", choices=SIZES, default="original", help="of the network")
    if "precisions" in names:
        text = "of the matrix multiplications, with commas"
        parser.add_argument("--precisions", type=parts_of, default=",".join(PRECISIONS), help=text)
    if "threads" in names:
        parser.add_argument("--threads", type=int, default=2, help="of torch")
    return parser


def parts_of(text: str) -> list[str]:
    return text.split(",")


def numbers_of(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


# Sentences. Chosen so that 512 of them have 23 tokens each and 3,000 distinct words, and a batch of 32 has 45-50 %
# distinct words among its tokens, about as encyclopedic text does
SHORTEST, LONGEST = 5, 60
LENGTH_MEDIAN, LENGTH_SIGMA = 20.0, 0.55
VOCABULARY, ZIPF_EXPONENT = 40_000, 1.1
ONSETS = ["b", "br", "c", "ch", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr", "v", "w"]
NUCLEI = ["a", "e", "i", "o", "u", "ea", "io", "ou"]
CODAS = ["", "", "", "l", "m", "n", "nd", "ng", "r", "s", "st", "t"]
ENDINGS = ["", "", "", "s", "ed", "er", "ing", "ly", "ment", "tion"]


def generated(n: int, seed: int) -> Sentences:
    """Make n sentences of 5 to 60 tokens, like English in length and in how often words return, with a full stop."""
    words = np.array(_vocabulary(random.Random(seed)), dtype=object)
    generator = np.random.default_rng(seed)
    frequencies = 1.0 / np.arange(1, len(words) + 1) ** ZIPF_EXPONENT
    lengths = generator.lognormal(np.log(LENGTH_MEDIAN), LENGTH_SIGMA, n).round().clip(SHORTEST, LONGEST).astype(int)
    return [
        [*generator.choice(words, length - 1, p=frequencies / frequencies.sum()).tolist(), "."] for length in lengths
    ]


def write_text(path: Path, tokens: int, source: Path | None = None) -> Sentences:
    """Write a text of so many tokens or more, a sentence a line, and return its words.

    source: file of sentences a line, repeated if it is shorter; None: sentences are generated.
    """
    lines = None if source is None else source.read_text(encoding="utf-8").splitlines()
    pool = generated(20_000, 0) if lines is None else [line.split() for line in lines if line.strip()]
    n = 0
    sentences: Sentences = []
    while n < tokens:
        sentences.append(pool[len(sentences) % len(pool)])
        n += len(sentences[-1])
    path.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    return sentences


def _vocabulary(source: random.Random) -> list[str]:
    """Distinct words, the most frequent first: function words, those of the package's examples, generated ones."""
    words = dict.fromkeys([",", "the", "of", "and", "to", "in", "a"])
    words |= dict.fromkeys(sorted(STOP_WORDS, key=lambda word: (len(word), word)))
    examples = next(Path(spacy_elmo.__file__).parent.rglob("senses.tsv"))
    with examples.open(encoding="utf-8", newline="") as file:
        for fields in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            words |= dict.fromkeys(word for word in fields[-1].split() if word != ".")
    while len(words) < VOCABULARY:  # one to three syllables, one word in eight with a capital letter
        syllables = range(source.randint(1, 3))
        word = "".join(source.choice(part) for _ in syllables for part in (ONSETS, NUCLEI, CODAS))
        word += source.choice(ENDINGS)
        words.setdefault(word.capitalize() if source.random() < 1 / 8 else word)
    return list(words)


# Networks


def files_of(size: str) -> tuple[Path, Path] | None:
    """Give options.json and weights.hdf5 of a biLM that the project ships; None: a size without weights."""
    folders = (Path(bilms.__file__).parent / size, ROOT / "packages" / size / f"spacy_elmo_{size}")
    return next(((path / "options.json", path / "weights.hdf5") for path in folders if path.exists()), None)


def options_of(size: str) -> BiLMOptions:
    """Give the options of a size: "original" and "small" are official; others are biLMs that the project ships."""
    if files := files_of(size):
        return read_options(files[0])
    dim, projection_dim, n_highway = {"original": (4096, 512, 2), "small": (1024, 128, 1)}[size]
    return BiLMOptions(16, OFFICIAL_FILTERS, n_highway, "relu", 50, dim, projection_dim, 2, 3.0, 3.0, True)


def random_bilm(options: BiLMOptions) -> BiLM:
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    return bilm


def write_model(folder: Path, size: str, sentences: Sentences) -> dict[str, str]:
    """Write a biLM, the sentences and their vocabulary, the most frequent word first.

    The weights of an official size are random. A biLM that the project ships has its own.

    Returns the settings that name the biLM's files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "model.hdf5")}
    options, shipped = options_of(size), files_of(size)
    write_options(files["options_file"], options)
    if shipped:
        shutil.copyfile(shipped[1], files["weight_file"])
    else:
        write_weights(files["weight_file"], options, random_bilm(options).to_arrays())
    words = [word for word, _ in Counter(w for s in sentences for w in s).most_common()]
    (folder / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *words]) + "\n", encoding="utf-8")
    (folder / "sentences.json").write_text(json.dumps(sentences), encoding="utf-8")
    return files


# Our sides, without a cache of words: the same sentences come again in each round


def make_engine(bilm: BiLM, precision: Precision) -> Engine:
    """Make an engine. Raises SettingsError if the machine does not have the precision."""
    return Engine(bilm, dtype_of(precision, bilm.boundary.device), cached_words=0)


def make_pipeline(files: dict[str, str], precision: Precision) -> Language:
    """Make a pipeline of `elmo` alone. files: the settings options_file and weight_file."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {**files, "precision": precision, "cached_words": 0}})
    return nlp


def engine_seconds(engine: Engine, sentences: Sentences) -> Seconds:
    """Make a function that measures the engine. One number of each batch's layers is read."""

    def seconds(n: int, batch: int) -> float:
        begin = time.perf_counter()
        for k in range(0, n, batch):
            assert np.isfinite(engine.run(sentences[k : min(k + batch, n)])[0][0, 0, 0])
        return time.perf_counter() - begin

    return seconds


def pipe_seconds(nlp: Language, sentences: Sentences) -> Seconds:
    """Make a function that measures `nlp.pipe` on docs that have their tokens.

    One number of each doc's mix is read, and then the doc's layers are freed, as in a long stream.
    """
    docs = [Doc(nlp.vocab, words=words) for words in sentences]

    def seconds(n: int, batch: int) -> float:
        begin = time.perf_counter()
        for doc in nlp.pipe(docs[:n], batch_size=batch):
            assert np.isfinite(doc._.elmo[0, 0])
            doc._.elmo = None
        return time.perf_counter() - begin

    return seconds


# Load and rates


class Load:
    """The work of other processes from now on. processes: that don't count as others, beside this one."""

    def __init__(self, *processes: int) -> None:
        self.processes = (os.getpid(), *processes)
        self.ticks, self.begin = self._other_ticks(), time.perf_counter()

    def cores(self) -> float:
        """Return how many cores others have used; time that a hypervisor used for other machines counts."""
        seconds = time.perf_counter() - self.begin
        return max(0.0, (self._other_ticks() - self.ticks) / os.sysconf("SC_CLK_TCK") / seconds)

    def _other_ticks(self) -> int:
        """Clock ticks of all processors without ours: threads and children that have ended count as ours."""
        if not Path("/proc/stat").exists():  # not Linux: nothing is known of others
            return 0
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
        ours = 0
        for process in self.processes:
            # after the name, which may contain anything
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ours += sum(map(int, fields[11:15]))
        return user + nice + system + irq + softirq + steal - ours


class Measured(NamedTuple):
    rate: float
    others: float  # cores that other processes used meanwhile

    @property
    def disturbed(self) -> bool:
        return self.others > DISTURBED


Rounds = list[Measured]


def rate_of(run: Callable[[], float], tokens: int, least: float) -> float:
    """Return the tokens a second of a run, which is repeated for so many seconds at least.

    run: runs once, and returns its seconds. tokens: of a run.
    """
    seconds, passes = run(), 1
    while seconds < least:
        seconds, passes = seconds + run(), passes + 1
    return passes * tokens / seconds


def measured(run: Callable[[], float], pause: float, *processes: int) -> Measured:
    """Return the rate that `run` returns. pause: seconds before it, in which other threads become idle."""
    time.sleep(pause)
    load = Load(*processes)
    return Measured(run(), load.cores())


def undisturbed(*series: Rounds) -> list[int]:
    """Return the rounds in which no other process disturbed any of these series; if there are none, all rounds."""
    rounds = range(min(map(len, series)))
    return [k for k in rounds if not any(part[k].disturbed for part in series)] or list(rounds)


def median_rate(series: Rounds) -> float:
    return statistics.median(series[k].rate for k in undisturbed(series))


def compared(above: Rounds, below: Rounds, form: str) -> str:
    """Return the ratio of two rates in a round: median, lowest and highest of the undisturbed rounds, in a format.

    It is marked if other processes disturbed all rounds.
    """
    rounds = undisturbed(above, below)
    ratios = [above[k].rate / below[k].rate for k in rounds]
    median, low, high = (format(value, form) for value in (statistics.median(ratios), min(ratios), max(ratios)))
    mark = ", disturbed" if above[rounds[0]].disturbed or below[rounds[0]].disturbed else ""
    return (median if low == high else f"{median} ({low} to {high})") + mark


def load_of(series: Rounds) -> str:
    """Return how many cores other processes used in a round, at most, and how many rounds they disturbed."""
    count = sum(one.disturbed for one in series)
    most = max(one.others for one in series)
    return f"{most:.2f}" + (f", {count} of {len(series)} rounds disturbed" if count else "")


def row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
