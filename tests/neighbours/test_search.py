"""Blocks of cosines, and their order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_elmo.analysis import neighbours as search


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 100])
def test_blocks(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_BLOCK", 4 * 5 * 8)  # eight rows
    rng = np.random.default_rng(n)
    vectors, query = rng.normal(size=(n, 5)).astype(np.float16), rng.normal(size=5).astype(np.float32)
    cosines = search.cosines_with(vectors, query)
    assert cosines.dtype == np.float32
    np.testing.assert_allclose(cosines, vectors.astype(np.float64) @ query.astype(np.float64), atol=1e-5)


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.float32, st.integers(0, 60), elements=st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])),
    st.integers(1, 5),
)
def test_order(numbers: np.ndarray, first: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_FIRST", first)
        expected = sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))
        assert list(search.best_first(numbers)) == expected
