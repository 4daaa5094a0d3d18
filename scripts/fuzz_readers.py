"""Changes bytes of small valid files, reads them, and counts the exceptions that are not this package's.

    python scripts/fuzz_readers.py --minutes 3 --kinds pipes configs

It reads in this process: files of HDF5 and SQLite, which can crash it, are not among the kinds. For each kind it prints
the number of files, how many of them were refused and how many loaded, and the other exceptions. The first file of each
of these goes to the folder --found. It exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
import srsly
import zstandard
from spacy.tokens import Doc, DocBin

from spacy_elmo.errors import ElmoError
from spacy_elmo.formats.options import read_options
from spacy_elmo.pretraining.run.metrics import EvaluationRow, append_row, read_metrics
from spacy_elmo.pretraining.settings.config_file import read_config
from spacy_elmo.pretraining.text.prepared import PreparedCorpus
from spacy_elmo.pretraining.text.preparing import prepare
from spacy_elmo.pretraining.text.reading import read_sentences
from spacy_elmo.pretraining.text.vocabulary import Vocabulary

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "random_b"
CONFIG = Path(__file__).parents[1] / "configs" / "pretrain.cfg"
TEXT = "The river bank is near .\nA word é 中 in a line\n\n<S> ends here\n" * 3
HANGS_AFTER = 20  # seconds
SPECIAL = (
    b"\xff" * 4,
    b"\0" * 4,
    b"\x7f\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\x7f\xff\xff\xff",
    b"9" * 30,
    b"[" * 2000,
)

Read = Callable[[Path], object]


class Kind(NamedTuple):
    """Files of one kind.

    make: writes valid files into a folder.
    read: reads that folder.
    within: how the bytes that are changed are packed: gets the bytes of a file, and returns what is inside, and the
        function that packs it again.
    """

    make: Callable[[Path], object]
    read: Read
    within: Callable[[str, bytes], tuple[bytes, Callable[[bytes], bytes]]] = lambda _, data: (data, bytes)


class Hang(BaseException):
    """Raised in a read that takes too long."""


def pipe() -> Any:
    """Return an elmo pipe with a small biLM."""
    nlp = spacy.blank("en")
    files = {"options_file": str(GOLDEN / "options.json"), "weight_file": str(GOLDEN / "weights.hdf5")}
    made = nlp.add_pipe("elmo", config={"model": files})
    nlp.initialize()
    return made


def inner_model(_: str, data: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The model's message inside that of a pipe, without the weights."""
    content = srsly.msgpack_loads(data)
    return content["model"][:3000], lambda head: srsly.msgpack_dumps(
        content | {"model": head + content["model"][3000:]}
    )


def inner_docs(name: str, data: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The message of a DocBin; for other packed files the text."""
    if name.endswith(".spacy"):
        return zlib.decompress(data), zlib.compress
    return (gzip.decompress(data), gzip.compress) if name.endswith(".gz") else (data, bytes)


def make_texts(folder: Path) -> None:
    """Write a text in each format."""
    folder.mkdir()
    text = TEXT.encode()
    lines = [
        json.dumps({"text": line} if i % 2 else {"tokens": line.split() or ["a"]})
        for i, line in enumerate(TEXT.split("\n"))
    ]
    vocab = spacy.blank("en").vocab
    docs = [
        Doc(vocab, words=line.split(), sent_starts=[True] + [None] * (len(line.split()) - 1))
        for line in TEXT.split("\n")
        if line
    ]
    files = {
        "a.txt": text,
        "b.jsonl": "\n".join(lines).encode(),
        "c.spacy": DocBin(docs=docs).to_bytes(),
        "d.txt.gz": gzip.compress(text),
        "e.txt.xz": lzma.compress(text),
        "f.txt.zst": zstandard.ZstdCompressor().compress(text),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)


def read_texts(folder: Path) -> None:
    """Read each text alone, since a damaged one ends the reading of a folder."""
    refused = None
    for path in sorted(folder.iterdir()):
        try:
            list(read_sentences(path))
        except ElmoError as error:
            refused = error
    if refused is not None:
        raise refused


def read_prepared(folder: Path) -> None:
    """Open a prepared text, and read and check all of it."""
    corpus = PreparedCorpus.open(folder)
    list(corpus)
    corpus.verify()


def make_vocabulary(folder: Path) -> None:
    """Write a vocabulary with counts."""
    folder.mkdir()
    Vocabulary(["<S>", "</S>", "<UNK>", "a", "b"], np.array([3, 3, 2, 5, 1])).write(folder / "v.txt")


def make_prepared(folder: Path) -> None:
    """Write a prepared text."""
    source = folder.with_name("source.txt")
    source.write_text(TEXT, encoding="utf8")
    prepare(source, folder)


def make_metrics(folder: Path) -> None:
    """Write the evaluations of a run."""
    folder.mkdir()
    for step in range(3):
        append_row(folder / "m.jsonl", EvaluationRow(step, 10, 0.5, 1.5, 6.0, 1e-3, 99.5, 98.5, 99.0, 40, 1234.5))


def copied(path: Path) -> Callable[[Path], None]:
    """Return a function that makes a folder with a copy of a file."""

    def make(folder: Path) -> None:
        folder.mkdir()
        shutil.copyfile(path, folder / path.name)

    return make


def kinds() -> dict[str, Kind]:
    """Return the kinds by their names."""
    reader, source = pipe(), pipe()
    saved = source.to_bytes()

    def make_bytes(folder: Path) -> None:
        folder.mkdir()
        (folder / "bytes").write_bytes(saved)

    def read_bytes(folder: Path) -> None:
        reader.from_bytes((folder / "bytes").read_bytes(), exclude=["vocab"])

    return {
        "pipes": Kind(make_bytes, lambda folder: reader.from_bytes((folder / "bytes").read_bytes())),
        "models in pipes": Kind(make_bytes, read_bytes, inner_model),
        "folders of pipes": Kind(source.to_disk, reader.from_disk),
        "vocabularies": Kind(make_vocabulary, lambda folder: Vocabulary.read(folder / "v.txt")),
        "prepared texts": Kind(make_prepared, read_prepared),
        "texts": Kind(make_texts, read_texts),
        "texts inside": Kind(make_texts, read_texts, inner_docs),
        "options": Kind(copied(GOLDEN / "options.json"), lambda folder: read_options(folder / "options.json")),
        "metrics": Kind(make_metrics, lambda folder: read_metrics(folder / "m.jsonl")),
        "configs": Kind(copied(CONFIG), lambda folder: read_config(folder / CONFIG.name)),
    }


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with up to three changes: flipped, set, inserted, deleted, repeated or cut off."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        # half of the changes are near the start, where most formats describe themselves
        place = rng.randrange(min(len(result), rng.choice((200, 10**9))) + 1)
        match rng.randrange(7):
            case 0 | 1:
                if place < len(result):
                    result[place] ^= 1 << rng.randrange(8)
            case 2:
                if place < len(result):
                    result[place] = rng.randrange(256)
            case 3:
                result[place:place] = rng.randbytes(rng.randrange(1, 9))
            case 4:
                result[place : place + rng.randrange(1, 9)] = b""
            case 5:
                special = rng.choice(SPECIAL)
                result[place : place + rng.choice((0, len(special)))] = special
            case _:
                result[place:] = rng.choice((b"", result[place // 2 :]))
    return bytes(result)


def fuzz(kind: Kind, seconds: float, rng: random.Random, found: Path) -> tuple[Counter[str], Counter[str]]:
    """Read changed files for some time.

    Returns how many were refused and loaded, and the exceptions that are not this package's, by class and place.
    """
    outcomes: Counter[str] = Counter()
    foreign: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "files"
        kind.make(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            path = rng.choice(files)
            valid = path.read_bytes()
            content, pack = kind.within(path.name, valid)
            path.write_bytes(pack(changed(content, rng)))
            outcome, place = _outcome(kind.read, folder)
            outcomes[outcome] += 1
            if place is not None:
                if place not in foreign:
                    found.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, found / f"{len(list(found.iterdir()))}-{path.name}")
                foreign[place] += 1
            path.write_bytes(valid)
    return outcomes, foreign


def _outcome(read: Read, folder: Path) -> tuple[str, str | None]:
    signal.alarm(HANGS_AFTER)
    try:
        read(folder)
    except ElmoError:
        return "refused", None
    except (Hang, Exception) as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = next((frame for frame in reversed(frames) if "spacy_elmo" in frame.filename), frames[-1])
        return "foreign", f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    finally:
        signal.alarm(0)
    return "loaded", None


def _raise_hang(*_: object) -> None:
    raise Hang


def main() -> int:
    """Fuzz the kinds that were asked for, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3, help="for each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", help="all if left out")
    parser.add_argument("--found", type=Path, default=Path("found"), help="folder for files with other exceptions")
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, _raise_hang)
    warnings.simplefilter("ignore")
    status = 0
    for name, kind in kinds().items():
        if arguments.kinds and name not in arguments.kinds:
            continue
        rng = random.Random(f"{arguments.seed} {name}")
        outcomes, foreign = fuzz(kind, 60 * arguments.minutes, rng, arguments.found)
        status |= bool(foreign)
        told = ", ".join(f"{place}: {n}" for place, n in foreign.most_common()) or "none"
        print(f"{name} | {outcomes.total():,} | {outcomes['refused']:,} | {outcomes['loaded']:,} | {told}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
