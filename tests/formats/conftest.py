"""Small models and their files."""

from pathlib import Path

import numpy as np
import pytest
from weight_files import random_arrays

from spacy_elmo.formats import BiLMOptions, VectorsWriter, write_weights


@pytest.fixture
def options() -> BiLMOptions:
    return BiLMOptions(3, ((1, 2), (3, 4)), 1, "relu", 50, 8, 5, 2, 3.0, 3.0, True)


@pytest.fixture
def arrays(options: BiLMOptions) -> dict[str, np.ndarray]:
    """Random parameters of the sizes of `options`."""
    return random_arrays(options)


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
