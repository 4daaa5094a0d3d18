"""Vectors of length 1."""

import numpy as np
import pytest

from spacy_elmo.analysis.neighbours import unit_vectors


@pytest.mark.parametrize("size", [1e-6, 0.01, 1.0, 500.0])
def test_vectors_of_any_length_and_zeros(size: float) -> None:
    directions = np.array([[0.6, 0.8], [1.0, 0.0], [-0.8, 0.6]], np.float32)
    layers = np.zeros((3, 4, 2), np.float32)
    layers[1, :3] = size * directions
    layers[2, :3] = 2 * size * directions[::-1]
    np.testing.assert_allclose(unit_vectors(layers, 1), [*directions, [0, 0]], atol=1e-6)
    sums = directions.astype(np.float64) + 2 * directions[::-1]
    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(unit_vectors(layers, "mix"), [*expected, [0, 0]], atol=1e-6)
