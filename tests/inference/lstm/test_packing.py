"""Packing rows of different lengths, against plain padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.inference.packing import Packing, groups_of, with_boundaries

lengths_lists = st.lists(st.integers(1, 12), min_size=1, max_size=10)


def rows_of(lengths: list[int]) -> list[np.ndarray]:
    """Rows whose every item is unlike the others."""
    return [100 * row + np.arange(length) for row, length in enumerate(lengths)]


def test_a_case_by_hand() -> None:
    packing = Packing.of([2, 4, 1])
    assert packing.order.tolist() == [1, 0, 2]
    assert packing.lengths.tolist() == [4, 2, 1]
    assert packing.active.tolist() == [3, 2, 1, 1]
    assert packing.offsets.tolist() == [0, 3, 5, 6]
    items = np.array([10, 11, 20, 21, 22, 23, 30])
    assert items[packing.source].tolist() == [20, 10, 30, 21, 11, 22, 23]
    assert packing.places.tolist() == [1, 4, 0, 3, 5, 6, 2]
    assert packing.ends.tolist() == [6, 4, 2]


@given(lengths_lists)
def test_time_major_without_padding(lengths: list[int]) -> None:
    packing, rows = Packing.of(lengths), rows_of(lengths)
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    assert packing.order.tolist() == order
    expected = [rows[row][t] for t in range(max(lengths)) for row in order if t < lengths[row]]
    packed = np.concatenate(rows)[packing.source]
    assert packed.tolist() == expected
    np.testing.assert_array_equal(packed[packing.places], np.concatenate(rows))


@given(lengths_lists)
def test_steps_are_slices_of_the_rows_still_active(lengths: list[int]) -> None:
    packing = Packing.of(lengths)
    assert packing.active.tolist() == [sum(length > t for length in lengths) for t in range(max(lengths))]
    assert packing.offsets[0] == 0
    ends = (packing.offsets + packing.active).tolist()
    assert packing.offsets[1:].tolist() == ends[:-1]
    assert ends[-1] == sum(lengths)


@given(lengths_lists)
def test_each_rows_first_and_last_item(lengths: list[int]) -> None:
    packing, rows = Packing.of(lengths), rows_of(lengths)
    packed = np.concatenate(rows)[packing.source]
    assert packed[packing.firsts].tolist() == [rows[row][0] for row in packing.order]
    assert packed[packing.ends].tolist() == [rows[row][-1] for row in packing.order]


@given(st.lists(st.integers(0, 5), max_size=10))
def test_each_row_between_its_boundaries(lengths: list[int]) -> None:
    words = np.arange(2, 2 + sum(lengths))
    rows = np.split(words, np.cumsum(lengths)[:-1]) if lengths else []
    expected = [index for row in rows for index in (0, *row.tolist(), 1)]
    assert with_boundaries(words, np.array(lengths, np.int64)).tolist() == expected


@pytest.mark.parametrize(("threads", "rows", "groups"), [(1, 200, 1), (4, 63, 1), (4, 64, 2), (5, 999, 2), (8, 999, 4)])
def test_groups_of_about_equally_many_positions(threads: int, rows: int, groups: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 40, rows)
    slices = groups_of(lengths, threads)
    assert len(slices) == groups
    assert [row for part in slices for row in range(part.start, part.stop)] == list(range(rows))
    for part in slices:
        assert abs(int(lengths[part].sum()) - lengths.sum() / groups) <= 2 * 40


def test_a_row_as_long_as_all_others_together() -> None:
    lengths = np.array([1000] + [1] * 127)
    covered = [row for part in groups_of(lengths, 8) for row in range(part.start, part.stop)]
    assert covered == list(range(128))
