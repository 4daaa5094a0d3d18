"""Train a small biLM for a short time, for the network "short_bilm" of experiments.py."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from spacy_elmo.errors import CommandError

from ..shared.messages import Messages
from .placing import place

_CONFIG = Path("configs/pretrain.cfg")
_SIZE = ("--bilm.lstm.dim", "512")  # in half an hour it learns more than the default: docs/pretraining.md, "Muon"
_FILES = ("options.json", "weights.hdf5", "metrics.jsonl")


def train(text: Path, output: Path, tokens: int, more: tuple[str, ...] = (), config: Path = _CONFIG) -> int:
    """Write options.json, weights.hdf5 and metrics.jsonl to a folder, and return how many tokens were read.

    text: a sentence a line, words separated by blanks; its last lines are held out.
    tokens: length of the run, in which the learning rate rises and falls.
    more: settings of the run, as on the command line.

    Raises CommandError if pretraining fails.
    """
    with tempfile.TemporaryDirectory() as name:
        run = Path(name) / "run"
        command = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(config), str(run)]
        command += ["--paths.train", str(text), "--paths.heldout", "null", "--training.total_tokens", str(tokens)]
        command += ["--training.workers", "1", *_SIZE, *more]
        if subprocess.run(command, check=False).returncode:
            raise CommandError(Messages.PRETRAIN_FAILED.format(output=output, command=" ".join(command)))
        metrics = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        kept = Path(name) / "kept"
        kept.mkdir()
        for file in _FILES:
            shutil.move((run if file == "metrics.jsonl" else run / "model-last") / file, kept / file)
        place(kept, output)
    return int(json.loads(metrics[-1])["tokens"])
