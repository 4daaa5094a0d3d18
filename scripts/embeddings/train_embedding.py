"""Make what is compared with the embedded biLM, and write how long its training took to results/embeddings.json.

    OMP_NUM_THREADS=1 python -m scripts.embeddings.train_embedding floret wikipedia.txt
    python -m scripts.embeddings.train_embedding random     # a biLM with random weights, as training initialises it

floret: static vectors, which the paper's x had too, with the settings of spaCy's own example
(projects/pipelines/floret_vectors_demo) but for their width. `pip install floret` first.
spacy_pretrain: weights that x begins with. The network predicts the first and last characters of each word from its
context, as is spaCy's default. It gets half an hour.
short_bilm: a small biLM. The lengths of this and of floret are chosen so that they take about as long on one core of an
AMD EPYC: that of floret on a Zen 4, that of the biLM on a Zen 5.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from spacy.util import load_config

from spacy_elmo import bilms
from spacy_elmo.analysis.rows import random_weights
from spacy_elmo.errors import CommandError
from spacy_elmo.formats import read_options, write_options, write_weights

from ..runs.experiments import keep_result
from ..runs.train_runs import pretraining_config
from ..shared import commit_of, machine, run_command, run_elmo

_MINUTES, _FLORET_EPOCHS, _BILM_TOKENS = 30, 5, 15_500_000
_LSTM = "512"  # in half an hour it learns more than the default: docs/pretraining.md, "Muon"
FOLDERS = {"floret": "vectors", "spacy_pretrain": "pretrained", "short_bilm": "short_bilm", "random": "random_bilm"}


def write_random_bilm(folder: Path, seed: int = 0) -> None:
    """Write options.json and weights.hdf5 of a biLM of the embedded one's sizes."""
    options = read_options(bilms.paths("en_mini")[0])
    write_weights(folder / "weights.hdf5", options, random_weights(options, seed))
    write_options(folder / "options.json", options)


def train_floret(text: Path, folder: Path, width: int = 100) -> int:
    """Write vectors that `[initialize] vectors` takes, and return how many words were read."""
    try:
        import floret  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise CommandError("floret is not installed. Expected it for static vectors: pip install floret.") from error
    model = floret.train_unsupervised(
        str(text), model="cbow", mode="floret", hashCount=2, bucket=50_000, minn=5, maxn=5, minCount=10, neg=10,
        dim=width, epoch=_FLORET_EPOCHS, thread=1,
    )  # fmt: skip
    with tempfile.NamedTemporaryFile(suffix=".floret") as file:
        model.save_floret_vectors(file.name)
        _run(["init", "vectors", "en", file.name, str(folder), "--mode", "floret"])
    with text.open(encoding="utf-8") as lines:
        return _FLORET_EPOCHS * sum(len(line.split()) for line in lines)


def spacy_pretrain(text: Path, folder: Path, minutes: float = _MINUTES, more: Sequence[str] = ()) -> int:
    """Write model-last.bin, the average of the weights after some minutes, and return how many words were read.

    The order of the text is shuffled, because `spacy pretrain` reads it as it comes.
    """
    lines = text.read_text(encoding="utf-8").splitlines()
    random.Random(0).shuffle(lines)
    shuffled, config = folder / "text.jsonl", folder / "config.cfg"
    with shuffled.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": line}) + "\n" for line in lines)
    settings = pretraining_config(load_config("configs/ner.cfg"))
    settings["nlp"]["after_pipeline_creation"] = {"@callbacks": "spacy-elmo.NumpyGemm.v1"}  # it reads more words so
    settings.to_disk(config)
    _run(["pretrain", str(config), str(folder), "--paths.raw_text", str(shuffled), *more], 60 * minutes)
    shuffled.unlink()
    if not (folder / "model-last.bin").is_file():
        raise CommandError(f"{text}: spacy pretrain has read no words of it in {minutes} minutes.")
    log = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return int(json.loads(log[-1])["nr_word"])


def _run(command: Sequence[str], seconds: float | None = None) -> None:
    """Run a command of spaCy; after some seconds interrupt it, as Control-C does. Raises CommandError if it fails."""
    whole = [sys.executable, "-m", "spacy", *command]
    # a process in the background ignores interrupts, and so would those that it starts
    process = subprocess.Popen(whole, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        if process.wait(seconds):
            raise CommandError(f"a command failed; what it said stands above: {' '.join(whole)}")
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
    finally:
        process.kill()


def train_short_bilm(text: Path, folder: Path, tokens: int = _BILM_TOKENS, more: Sequence[str] = ()) -> int:
    """Write options.json and weights.hdf5, and return how many tokens were read. The text's last lines are held out."""
    run = folder / "run"
    paths = ["--paths.train", str(text), "--paths.heldout", "null", "--training.total_tokens", str(tokens)]
    run_elmo(
        "pretrain", "configs/pretrain.cfg", str(run), *paths, "--training.workers", "1", "--bilm.lstm.dim", _LSTM, *more
    )
    for name in ("options.json", "weights.hdf5"):
        shutil.move(run / "model-last" / name, folder / name)
    metrics = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    shutil.rmtree(run)
    return int(json.loads(metrics[-1])["tokens"])


def main(
    embedding: Annotated[str, typer.Argument(help=", ".join(FOLDERS))],
    text: Annotated[Path, typer.Argument(help="A sentence a line, words separated by blanks")] = Path(),
) -> None:
    """Train EMBEDDING on TEXT and write it to its folder in assets/."""
    if embedding not in FOLDERS or (embedding != "random" and not text.is_file()):
        raise CommandError(
            f"got {embedding!r} and {str(text)!r}. Expected one of {', '.join(FOLDERS)}, and a file of text."
        )
    output, begin = Path("assets", FOLDERS[embedding]), time.perf_counter()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    if embedding == "random":
        write_random_bilm(output)
        return
    trainers: dict[str, Callable[[Path, Path], int]]
    trainers = {"floret": train_floret, "spacy_pretrain": spacy_pretrain, "short_bilm": train_short_bilm}
    words = trainers[embedding](text, output)
    minutes = round((time.perf_counter() - begin) / 60, 1)
    keep_result(
        "embeddings", embedding, {"minutes": minutes, "words": words, "commit": commit_of(Path()), "machine": machine()}
    )
    print(f"{output}: {minutes} minutes, {words:,} words read")


if __name__ == "__main__":
    run_command(main)
