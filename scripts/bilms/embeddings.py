"""Make what is compared with the embedded biLM, in assets/, and write what training it took to results/.

    OMP_NUM_THREADS=1 python -m scripts.bilms.embeddings floret wikipedia.txt

floret: static vectors, which the paper's x had too, with the settings of spaCy's own example
(projects/pipelines/floret_vectors_demo) but for their width. `pip install floret` first.
spacy_pretrain: weights that x begins with. The network predicts the first and last characters of each word from its
context, as is spaCy's default. It gets half an hour.
short_bilm: a small biLM. The lengths of this and of floret are chosen so that they take about as long on one core of an
AMD EPYC: that of floret on a Zen 4, that of the biLM on a Zen 5.
"""

from __future__ import annotations

import json
import random as random_numbers
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
from thinc.api import Config

from spacy_elmo.errors import CommandError

from ..runs.experiments import keep_result, minutes_since
from ..runs.train_runs import pretraining_config
from ..shared import origin, run_command, run_elmo

_MINUTES, _FLORET_EPOCHS, _BILM_TOKENS = 30, 5, 15_500_000
_LSTM = "512"  # in half an hour it learns more than the default: docs/pretraining.md, "A short run"


# Each writes its files to a folder, and returns how many words were read


def train_floret(text: Path, folder: Path, language: str = "en") -> int:
    """Write vectors that `[initialize] vectors` takes, for pipelines of a language of spaCy."""
    try:
        import floret  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise CommandError("floret is not installed. Expected it for static vectors: pip install floret.") from error
    model = floret.train_unsupervised(
        str(text), model="cbow", mode="floret", hashCount=2, bucket=50_000, minn=5, maxn=5, minCount=10, neg=10,
        dim=100, epoch=_FLORET_EPOCHS, thread=1,
    )  # fmt: skip
    with tempfile.NamedTemporaryFile(suffix=".floret") as file:
        model.save_floret_vectors(file.name)
        _run(["init", "vectors", language, file.name, str(folder), "--mode", "floret"])
    with text.open(encoding="utf-8") as lines:
        return _FLORET_EPOCHS * sum(len(line.split()) for line in lines)


def spacy_pretrain(
    text: Path, folder: Path, minutes: float = _MINUTES, more: Sequence[str] = (), of: Config | None = None
) -> int:
    """Write model-last.bin, the average of the weights after some minutes.

    The order of the text is shuffled, because `spacy pretrain` reads it as it comes.

    of: config of the one component whose tok2vec is trained; None: configs/ner.cfg.
    """
    lines = text.read_text(encoding="utf-8").splitlines()
    random_numbers.Random(0).shuffle(lines)
    shuffled, config = folder / "text.jsonl", folder / "config.cfg"
    with shuffled.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": line}) + "\n" for line in lines)
    settings = pretraining_config(of or load_config("configs/ner.cfg"))
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
    """Write options.json and weights.hdf5. The text's last lines are held out."""
    run = folder / "run"
    settings = ["--paths.train", str(text), "--paths.heldout", "null", "--training.total_tokens", str(tokens)]
    settings += ["--training.workers", "1", "--bilm.lstm.dim", _LSTM, *more]
    run_elmo("pretrain", "configs/pretrain.cfg", str(run), *settings)
    for name in ("options.json", "weights.hdf5"):
        shutil.copyfile(run / "model-last" / name, folder / name)
    words = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])["tokens"]
    shutil.rmtree(run)
    return int(words)


TRAINERS: dict[str, tuple[Callable[..., int], str]] = {
    "floret": (train_floret, "assets/vectors"),
    "spacy_pretrain": (spacy_pretrain, "assets/pretrained"),
    "short_bilm": (train_short_bilm, "assets/short_bilm"),
}


def train(
    embedding: Annotated[str, typer.Argument(help=", ".join(TRAINERS))],
    text: Annotated[Path, typer.Argument(help="A sentence a line, words separated by blanks")],
) -> None:
    """Train EMBEDDING on TEXT."""
    if embedding not in TRAINERS or not text.is_file():
        raise CommandError(
            f"got {embedding!r} and {str(text)!r}. Expected one of {', '.join(TRAINERS)}, and a file of text."
        )
    (trainer, output), begin = TRAINERS[embedding], time.perf_counter()
    shutil.rmtree(output, ignore_errors=True)
    Path(output).mkdir(parents=True)
    words = trainer(text, Path(output))
    keep_result("embeddings", embedding, {"minutes": minutes_since(begin), "words": words, **origin()})


if __name__ == "__main__":
    run_command(train)
