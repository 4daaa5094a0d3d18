"""A small pretraining run to be killed. What it ends in must be bit by bit that of a run that nobody stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

from spacy_elmo.pretraining.checkpoint import Checkpoints
from spacy_elmo.pretraining.config_file import read_config, write_config
from spacy_elmo.pretraining.metrics import Reporter
from spacy_elmo.pretraining.run import pretrain

from .digests import digest_of

_DEFAULT = Path(__file__).parents[3] / "configs" / "pretrain.cfg"
_UPDATES, _STREAMS, _STEPS, _ACCUMULATE = 160, 4, 5, 2
_SETTINGS = {
    "paths.heldout": None,
    "corpus.heldout_share": 0.1,
    "corpus.shuffle_block": 32,
    "vocabulary.size": 100,
    "bilm.lstm.dim": 16,
    "bilm.lstm.projection_dim": 8,
    "bilm.char_cnn.embedding.dim": 4,
    "bilm.char_cnn.filters": [[1, 4], [2, 8]],
    "training.streams": _STREAMS,
    "training.steps": _STEPS,
    "training.accumulate": _ACCUMULATE,
    "training.total_tokens": _UPDATES * _STREAMS * _STEPS * _ACCUMULATE,
    "training.dropout": 0.1,
    "training.average_share": 0.1,
    "training.workers": 1,
    "training.precision": "float32",
    "training.softmax.negatives": 20,
    "training.schedule.warmup_steps": 10,
    "evaluation.every": 40,
    "evaluation.checkpoint_every": 4,
    "evaluation.sentences": 20,
}
_CLOCK = ("seconds", "tokens_per_second")  # of metrics.jsonl: no two runs have the same


def train_without_kills(folder: Path) -> None:
    """Write a text and a config, and train in a process that nothing stops."""
    import torch._dynamo  # noqa: F401  optimizers import it: what is forked from this process need not

    random = np.random.default_rng(0)
    lines = [" ".join(f"word{k % 150}" for k in random.zipf(1.3, random.integers(3, 12))) for _ in range(300)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    config = read_config(_DEFAULT, {"paths.train": str(folder / "text.txt"), **_SETTINGS})
    write_config(config, folder / "pretrain.cfg")
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(folder / "pretrain.cfg"), str(folder / "whole")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def train(folder: Path) -> None:
    """Train, or go on with a run that was killed."""
    pretrain(read_config(folder / "pretrain.cfg"), folder / "run", Reporter())


def trained(folder: Path) -> str:
    """Return "nothing", "some" if the run has a checkpoint, or "new" if it has come to its end.

    Raises AssertionError if a checkpoint can't be read, if the run ended in other bits than the one without kills, or
    if other files are there.
    """
    run, whole = folder / "run", folder / "whole"
    found = _checkpoint(run)
    if found is None:
        return "nothing"
    if not found["progress/finished"]:
        return "some"
    expected = _checkpoint(whole)
    assert expected is not None
    assert digest_of(found) == digest_of(expected), "another checkpoint at the end than without kills"
    assert _metrics(run) == _metrics(whole), "other rows of metrics.jsonl than without kills"
    for name in ("model-last", "model-best"):
        assert _model(run / name) == _model(whole / name), f"another {name} than without kills"
    assert _names(run) == _names(whole), "other files than without kills"
    return "new"


def _checkpoint(run: Path) -> dict[str, np.ndarray] | None:
    """Return a run's last checkpoint, without what depends on the clock; None if it has none."""
    found = Checkpoints(run / "checkpoints").latest(_fail)
    return found and {name: array for name, array in found[1].items() if name != "progress/seconds"}


def _names(run: Path) -> list[str]:
    return sorted(str(path.relative_to(run)) for path in run.rglob("*"))


def _metrics(run: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [{name: value for name, value in row.items() if name not in _CLOCK} for row in rows]


def _model(folder: Path) -> dict[str, object]:
    """Return what a model's files hold, but for its card, which tells the hours."""
    paths = [path for path in folder.iterdir() if path.name != "README.md"]
    return {path.name: _arrays(path) if path.suffix == ".hdf5" else path.read_bytes() for path in paths}


def _arrays(path: Path) -> str:
    arrays: dict[str, np.ndarray] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(visit)
    return digest_of(arrays)


def _fail(message: str) -> None:
    raise AssertionError(message)
