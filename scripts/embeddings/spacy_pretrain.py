"""Train the weights that x begins with by `spacy pretrain`, for the network "pretrained" of experiments.py.

Settings are spaCy's defaults: the network predicts the first and last four characters of each word from its context.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spacy.util import load_config

from spacy_elmo.errors import CommandError

from ..runs.network_configs import pretraining_config
from ..shared.messages import Messages
from .placing import place

_CONFIG = Path("configs/ner.cfg")  # whose x is trained
_WEIGHTS, _LOG = "model-last.bin", "log.jsonl"


def pretrain(text: Path, output: Path, minutes: float, more: tuple[str, ...] = (), config: Path = _CONFIG) -> int:
    """Write model-last.bin and log.jsonl to a folder, and return how many words were read.

    text: a sentence a line. Its order is shuffled, because `spacy pretrain` reads it as it comes.
    minutes: after which the training is stopped, with the average of its weights.
    more: settings, as on the command line.

    Raises CommandError if the text is missing, or if spaCy has not read a word of it or fails.
    """
    if not text.is_file():
        raise CommandError(Messages.CORPUS_UNREADABLE.format(path=text, reason="there is no such file"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_shuffled(text, folder / "text.jsonl")
        settings = pretraining_config(load_config(config))
        settings["nlp"]["after_pipeline_creation"] = {"@callbacks": "spacy-elmo.NumpyGemm.v1"}  # it reads more words so
        settings.to_disk(folder / "config.cfg")
        command = [sys.executable, "-m", "spacy", "pretrain", str(folder / "config.cfg"), str(folder / "made")]
        command += ["--paths.raw_text", str(folder / "text.jsonl"), *more]
        ended_well = run_for(60 * minutes, command)
        words = _words_read(folder / "made")
        if not ended_well or not words:
            raise CommandError(Messages.PRETRAIN_FAILED.format(output=output, command=" ".join(command)))
        kept = folder / "kept"
        kept.mkdir()
        for file in (_LOG, _WEIGHTS):
            shutil.move(folder / "made" / file, kept / file)
        place(kept, output)
    return words


def run_for(seconds: float, command: Sequence[str]) -> bool:
    """Run a command, and interrupt it after some seconds, as Control-C does; then wait until it has ended.

    Returns False if it ended before, by an error.
    """
    # a process in the background ignores interrupts, and so would those that it starts
    process = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        return True
    finally:
        process.kill()


def _words_read(folder: Path) -> int:
    """Return how many words the weights in a folder have read, 0 without weights."""
    if not (folder / _WEIGHTS).is_file():
        return 0
    log = (folder / _LOG).read_text(encoding="utf-8").splitlines()
    return int(json.loads(log[-1])["nr_word"])


def _write_shuffled(text: Path, target: Path) -> None:
    lines = text.read_text(encoding="utf-8").splitlines()
    random.Random(0).shuffle(lines)
    with target.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": line}) + "\n" for line in lines)
