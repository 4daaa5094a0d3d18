"""A run that takes a second: its text and settings; what it starts from; small prepared corpora."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining import run as loop
from spacy_elmo.pretraining.checkpoint import latest_checkpoint
from spacy_elmo.pretraining.config import (
    CorpusSettings,
    EvaluationSettings,
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    ScheduleSettings,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)
from spacy_elmo.pretraining.evaluating import Reporter
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.trainer import Trainer

OPTIONS = BiLMOptions(4, ((1, 4), (2, 8)), 1, "relu", 20, 16, 8, 2, 3.0, 3.0, True)
STREAMS, STEPS = 4, 5


def write_text(path: Path, n: int = 60, seed: int = 0) -> Path:
    """Sentences of 3 to 11 of 50 words."""
    random = np.random.default_rng(seed)
    lines = [" ".join(f"word{k % 50}" for k in random.zipf(1.3, random.integers(3, 12))) for _ in range(n)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path


def config_of(
    text: Path | str, updates: int = 4, paths: dict[str, Any] | None = None, **training: Any
) -> PretrainConfig:
    """Evaluated and kept every second update; paths: further ones."""
    given: dict[str, Any] = {
        "streams": STREAMS,
        "steps": STEPS,
        "total_tokens": updates * STREAMS * STEPS,
        "workers": 1,
        "precision": "float32",
        "softmax": SoftmaxSettings("full"),
        "optimizer": OptimizerSettings(learning_rate=0.01),
        "schedule": ScheduleSettings("constant", 0),
    }
    further = {name: str(path) for name, path in (paths or {}).items()}
    return PretrainConfig(
        PathSettings(str(text), **further),
        OPTIONS,
        CorpusSettings(heldout_share=0.1, shuffle_block=8),
        VocabularySettings(30),
        TrainingSettings(**given | training),
        EvaluationSettings(2, 2, 5),
    )


def with_paths(config: PretrainConfig, **paths: Any) -> PretrainConfig:
    """The same run with other paths."""
    return replace(config, paths=replace(config.paths, **{k: v and str(v) for k, v in paths.items()}))


def run(config: PretrainConfig, output: Path, reporter: Reporter | None = None) -> int | None:
    """To its end, or its error."""
    return loop.pretrain(config, output, Reporter() if reporter is None else reporter)


def last_checkpoint(output: Path) -> tuple[int, dict[str, np.ndarray]]:
    """Step and arrays of a run's last checkpoint, which is undamaged."""
    found = latest_checkpoint(output / "checkpoints", pytest.fail)
    assert found is not None
    return found


def trainer_of(config: PretrainConfig, model: LanguageModel, corpus: PreparedCorpus) -> Trainer:
    """A trainer in a single process."""
    return Trainer(config.training, model, corpus, config.corpus.shuffle_block)


def by_frequency(folder: Path) -> PreparedCorpus:
    """60 sentences of 1 to 9 words; frequent ones are drawn more often."""
    rng = random.Random(0)
    words = [f"w{number}" for number in range(30)]
    weights = [1 / (number + 1) for number in range(30)]
    lines = [" ".join(rng.choices(words, weights, k=rng.randint(1, 9))) for _ in range(60)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    return prepare(folder / "text.txt", folder / "prepared")


def evenly_drawn(folder: Path) -> PreparedCorpus:
    """101 sentences of 1 to 8 words, drawn from 60."""
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{k}" for k in rng.integers(0, 60, rng.integers(1, 9))) for _ in range(101)]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf8")
    return prepare(folder / "text.txt", folder / "prepared")
