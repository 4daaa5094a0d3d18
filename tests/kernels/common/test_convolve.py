"""The compiled convolution by table against numpy in float64."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

N_IDS, WORDS, STRIDE = 11, 9, 14


class Case(NamedTuple):
    """table: (width, ids, filters); ids: (words, stride); lengths: (words,)."""

    table: npt.NDArray[np.float32]
    ids: npt.NDArray[np.int16]
    lengths: npt.NDArray[np.int32]


def drawn(width: int, filters: int) -> Case:
    rng = np.random.default_rng(width * filters)
    lengths = rng.integers(width, STRIDE + 1, WORDS).astype(np.int32)
    lengths[:2] = width, STRIDE
    return Case(
        rng.normal(size=(width, N_IDS, filters)).astype(np.float32),
        rng.integers(0, N_IDS, (WORDS, STRIDE)).astype(np.int16),
        lengths,
    )


def convolved(library: ctypes.CDLL, case: Case) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Into arrays that are wider than the filters: what lies beside must stay."""
    width, n_ids, filters = case.table.shape
    out, where = np.full((WORDS, filters + 3), 9, np.float32), np.full((WORDS, filters + 3), 9, np.uint8)
    arrays = (case.ids, case.lengths, case.table, out, where)
    library.convolve(WORDS, STRIDE, width, n_ids, filters, filters + 3, *(array.ctypes.data for array in arrays))
    assert (out[:, filters:] == 9).all()
    assert (where[:, filters:] == 9).all()
    return out[:, :filters], where[:, :filters]


def windows(case: Case, word: int) -> npt.NDArray[np.float64]:
    """All sums of a word, (windows, filters)."""
    width = len(case.table)
    ids = case.ids[word, : case.lengths[word]]
    return np.array(
        [sum(case.table[k, ids[p + k]].astype(np.float64) for k in range(width)) for p in range(len(ids) - width + 1)]
    )


@pytest.mark.parametrize("width", range(1, 10))
@pytest.mark.parametrize("filters", [1, 5, 33, 64, 130])
def test_maxima_and_their_gradient(compiled: ctypes.CDLL, width: int, filters: int) -> None:
    case = drawn(width, filters)
    out, where = convolved(compiled, case)
    d_out = np.random.default_rng(0).normal(size=(WORDS, filters)).astype(np.float32)
    d_out[:, ::3] = 0  # what relu stops
    expected = np.ones((width, N_IDS, filters))
    for word in range(WORDS):
        sums = windows(case, word)
        np.testing.assert_allclose(out[word], sums.max(0), rtol=0, atol=1e-5)
        np.testing.assert_array_equal(where[word], sums.argmax(0))  # the first of several
        for k in range(width):
            np.add.at(expected[k], (case.ids[word, sums.argmax(0) + k], np.arange(filters)), d_out[word])
    d_table = np.ones((width, N_IDS, filters), np.float32)  # added to
    arrays = (case.ids, d_out, np.ascontiguousarray(where), d_table)
    addresses = (array.ctypes.data for array in arrays)
    compiled.convolve_backward(WORDS, STRIDE, width, N_IDS, filters, filters, *addresses)
    np.testing.assert_allclose(d_table, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("filters", [5, 64, 130])
def test_nan_comes_through_and_stays_alone(compiled: ctypes.CDLL, filters: int) -> None:
    """A NaN is larger than nothing: a maximum by comparison alone would pass it by."""
    case = drawn(3, filters)
    case.table[1, 4, 2] = np.nan
    out, _ = convolved(compiled, case)
    for word in range(WORDS):
        np.testing.assert_array_equal(np.isnan(out[word]), np.isnan(windows(case, word)).any(0))
    assert 0 < np.isnan(out).sum() < WORDS


def test_infinite_sums(compiled: ctypes.CDLL) -> None:
    case = drawn(2, 5)
    case.table[0, :, 1], case.table[0, :, 2] = np.inf, -np.inf
    out, where = convolved(compiled, case)
    assert (out[:, 1] == np.inf).all()
    assert (out[:, 2] == -np.inf).all()
    assert (where[:, 1:3] == 0).all()


@pytest.mark.parametrize("filters", [1, 64, 70])
def test_maxima_alone(compiled: ctypes.CDLL, filters: int) -> None:
    """What a pass without gradients runs."""
    case = drawn(3, filters)
    case.table[0, :, 0] = np.nan
    expected, _ = convolved(compiled, case)
    out = np.full((WORDS, filters + 3), 9, np.float32)
    arrays = (case.ids, case.lengths, case.table, out)
    compiled.convolve_maxima(WORDS, STRIDE, 3, N_IDS, filters, filters + 3, *(array.ctypes.data for array in arrays))
    np.testing.assert_array_equal(out[:, :filters], expected)
    assert (out[:, filters:] == 9).all()
