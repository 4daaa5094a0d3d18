"""Small prepared corpora of made-up words."""

import random
from pathlib import Path

import numpy as np

from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare


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
