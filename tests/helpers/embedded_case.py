"""A tiny biLM in the place of en_core, and a package with its softmax."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets

from spacy_elmo import bilms
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining.language_model import GROUP, LanguageModel, write_digest
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary

OPTIONS = BiLMOptions(8, ((1, 16), (3, 32)), 1, "relu", 20, 32, 16, 2, 3.0, 3.0, True)
WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "dog", "."]
COUNTS = np.array([40, 40, 0, 30, 20, 10, 5, 35])
TEXT = "the cat sat .\nthe dog sat\nthe newt .\n"


def model_of(seed: int = 0) -> LanguageModel:
    softmax = Softmax(len(WORDS), OPTIONS.projection_dim)
    softmax.reset_parameters(torch.arange(8.0) - 9, torch.Generator().manual_seed(seed))
    return LanguageModel(bilm_of(OPTIONS, random_datasets(OPTIONS, seed)), softmax, Vocabulary(WORDS, COUNTS))


def embed(monkeypatch: pytest.MonkeyPatch, folder: Path, seed: int = 0) -> Path:
    """Put options and weights of a tiny biLM in the place of en_core's; no package with a softmax is installed."""
    model_of(seed).save(folder)
    for name in ("softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy"):
        (folder / name).unlink()
    monkeypatch.setattr(bilms, "paths", lambda name: (str(folder / "options.json"), str(folder / "weights.hdf5")))
    install(monkeypatch, [])
    return folder


def make_package(monkeypatch: pytest.MonkeyPatch, folder: Path, weights: Path, seed: int = 0) -> Path:
    """Write a package with the softmax of the tiny biLM, and install it; its module has the folder's name."""
    model_of(seed).save(folder)
    for name in ("options.json", "weights.hdf5"):
        (folder / name).unlink()
    (folder / "__init__.py").write_text(
        "from pathlib import Path\n\ndef folder():\n    return Path(__file__).parent\n", encoding="utf8"
    )
    write_digest(folder, weights)
    monkeypatch.syspath_prepend(str(folder.parent))
    install(monkeypatch, [f"{folder.name}:folder"])
    return folder


def install(monkeypatch: pytest.MonkeyPatch, values: Sequence[str]) -> None:
    """Have these entry points for en_core's softmax, and no others."""
    points = metadata.EntryPoints(metadata.EntryPoint("en_core", value, GROUP) for value in values)
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: points.select(**wanted))
