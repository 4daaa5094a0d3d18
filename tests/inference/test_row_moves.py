"""Rows moved by numpy, and by torch where they are not in the CPU's memory."""

import numpy as np
import pytest
import torch

from spacy_elmo.inference.packing import gather_rows, scatter_rows

TABLE = torch.arange(12.0).view(4, 3)
PLACES = np.array([2, 0, 2])


def test_taken() -> None:
    out = torch.full((3, 3), -1.0)
    gather_rows(TABLE, PLACES, out)
    assert out.tolist() == [[6, 7, 8], [0, 1, 2], [6, 7, 8]]
    gather_rows(TABLE, PLACES[:0], out[:0])


def test_taken_into_some_of_a_larger_tensor() -> None:
    room = torch.full((5, 3), -1.0)
    gather_rows(TABLE, PLACES, room[1:4])
    assert room[:, 0].tolist() == [-1, 6, 0, 6, -1]


def test_put() -> None:
    table = TABLE.clone()
    scatter_rows(table, np.array([3, 1]), torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert table.tolist() == [[0, 1, 2], [4, 5, 6], [6, 7, 8], [1, 2, 3]]
    scatter_rows(table, PLACES[:0], TABLE[:0])


@pytest.mark.parametrize("device", ["meta"])
def test_another_device(device: str) -> None:
    """No values there: that the calls are torch's, and that they take such shapes."""
    table, out = TABLE.to(device), torch.empty(3, 3, device=device)
    gather_rows(table, PLACES, out)
    scatter_rows(table, PLACES, out)
