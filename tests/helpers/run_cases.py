"""A run on a made-up text, and its evaluations."""

from pathlib import Path
from typing import Any

import numpy as np

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining.config import CorpusSettings, PathSettings, PretrainConfig, TrainingSettings
from spacy_elmo.pretraining.evaluating import EvaluationRow
from spacy_elmo.pretraining.folder import Run
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.pretraining.scoring import Score
from spacy_elmo.pretraining.vocabulary import Vocabulary

OPTIONS = BiLMOptions(16, ((1, 32), (3, 64)), 1, "relu", 50, 512, 128, 2, 3.0, 3.0, True)
# 2 ** 7 and 2 ** 9 over 1,000 predictions, so the mean is 2 ** 8
SCORE = Score(
    sentences=50, tokens=950, unknown=19, loss=(4852.030263919617, 6238.324625039508), unknown_loss=(40.0, 50.0)
)


def run_of(folder: Path, language: str | None = None, init: str | None = None, **facts: Any) -> Run:
    """A run on 1,000 sentences of 20,000 words and two bad lines, with 50 held-out sentences of 950 words.

    Of 1,000 of its words, 987 are among the 5,000 of its vocabulary.
    """
    texts = folder / "texts"
    texts.mkdir(exist_ok=True)
    lines = [b"the " * 20] * 1_000
    lines[6:6], lines[8:8] = [b"\xff"], [b"a\0b"]
    (texts / "train.txt").write_bytes(b"\n".join(lines) + b"\n")
    (texts / "held|out1.txt").write_text(("the " * 19 + "\n") * 50, encoding="utf8")
    paths = PathSettings(str(texts / "train.txt"), str(texts / "held|out*.txt"), init=init)
    config = PretrainConfig(paths, OPTIONS, CorpusSettings(language), training=TrainingSettings(epochs=2.5))
    train, heldout = prepare(paths.train, folder / "corpus"), prepare(str(paths.heldout), folder / "heldout")
    words = ["<S>", "</S>", "<UNK>", "the", *(f"word{number}" for number in range(4_996))]
    counts = np.array([1_000, 1_000, 260, 19_740] + [0] * 4_996)
    return Run(config, train, heldout, Vocabulary(words, counts), "identity", False, **{"init_sha256": None} | facts)


def row(step: int, perplexity: float = 100.0) -> EvaluationRow:
    """An evaluation."""
    return EvaluationRow(
        step=step,
        tokens=step * 5_120,
        epochs=step / 400,
        seconds=step * 0.5,
        loss=5.4321,
        rate=0.00312,
        perplexity_forward=perplexity + 10,
        perplexity_backward=perplexity - 10,
        perplexity=perplexity,
        predictions=1_000,
        tokens_per_second=15_432.1,
    )
