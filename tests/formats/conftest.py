"""Small models and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.formats import BiLMOptions, VectorsWriter, expected_parameters, write_weights


@pytest.fixture
def options() -> BiLMOptions:
    return BiLMOptions(
        char_dim=3,
        filters=((1, 2), (3, 4)),
        n_highway=1,
        activation="relu",
        max_characters=50,
        dim=8,
        projection_dim=5,
        n_layers=2,
        cell_clip=3.0,
        proj_clip=3.0,
        use_skip_connections=True,
    )


@pytest.fixture
def arrays(options: BiLMOptions) -> dict[str, np.ndarray]:
    """Random parameters of the sizes of `options`."""
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.standard_normal(shape).astype(np.float32) for name, shape in expected_parameters(options).items()
    }
    arrays["char_cnn.embedding.weight"][0] = 0
    return arrays


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A file of three embedded sentences, (3, 2, 4) each. The first and the third have the same text."""
    path = tmp_path / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        for i, sentence in enumerate(["a b", "c d", "a b"]):
            writer.write(sentence, np.full((3, 2, 4), i, np.float32))
    return path


@pytest.fixture
def weights(tmp_path: Path, options: BiLMOptions, arrays: dict[str, np.ndarray]) -> Path:
    """A weight file that holds `arrays`."""
    path = tmp_path / "weights.hdf5"
    write_weights(path, options, arrays)
    return path
