"""BiLMs of many sizes for the tests of the engine, and each kind of its LSTM layers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from bilm_cases import bilm_of, random_datasets

from spacy_elmo import kernels
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.inference import lstm
from spacy_elmo.inference.lstm import KINDS
from spacy_elmo.modules import BiLM

SMALL = BiLMOptions(4, ((1, 4), (2, 8), (3, 8)), 1, "relu", 50, 24, 8, 2, 3.0, 3.0, True)
OPTIONS = dataclasses.replace(SMALL, dim=128, projection_dim=64)
# rows of one tile, of a part of one, of two, of a part of two, of more than a block
LENGTHS = [[5], [1, 1, 1], list(range(1, 17)), [3] * 17, [2] * 32, list(range(40, 0, -1)), [1] * 70, [2] * 130]


def allow(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled calls of this kind alone, or none."""
    kinds = tuple(kind for kind in KINDS if kind.name == name)
    if not all(kernels.has(kind.name, kernels.load()) for kind in kinds):
        pytest.skip(f"this machine has no {name}, or the loops were not compiled")
    monkeypatch.setattr(lstm, "KINDS", kinds)


def small(**changes: object) -> BiLM:
    options = dataclasses.replace(SMALL, **changes)  # type: ignore[arg-type]
    return bilm_of(options, random_datasets(options, seed=5))


def bilm_with(**changes: object) -> BiLM:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return bilm_of(options, random_datasets(options, seed=3, scale=0.1, lstm_projection=True))


def sentences_of(lengths: list[int]) -> list[list[str]]:
    words = [f"w{k % 23}" for k in range(sum(lengths))]
    ends = np.cumsum(lengths)
    return [words[end - n : end] for n, end in zip(lengths, ends, strict=True)]
