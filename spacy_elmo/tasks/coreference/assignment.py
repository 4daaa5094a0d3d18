"""The best one-to-one assignment, which CEAF needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def best_total(similarity: Mapping[tuple[int, int], float]) -> float:
    """Return the highest sum of similarities if each row and each column is used once, at most.

    similarity: (row, column) -> a positive number; other pairs have 0.
    """
    return sum(_dense_total(block) for block in _blocks(similarity))


def _blocks(similarity: Mapping[tuple[int, int], float]) -> list[Array]:
    """Divide into blocks without common rows or columns, which are small: most clusters overlap with few others."""
    block_of_row: dict[int, dict[tuple[int, int], float]] = {}
    block_of_column: dict[int, dict[tuple[int, int], float]] = {}
    for (row, column), value in similarity.items():
        parts = [one for one in (block_of_row.get(row), block_of_column.get(column)) if one is not None]
        block = max(parts, key=len, default={})
        others = [one for one in parts if one is not block]
        for pairs in ({(row, column): value}, *others):
            block.update(pairs)
            for other_row, other_column in pairs:
                block_of_row[other_row] = block_of_column[other_column] = block
    return [_dense(block) for block in {id(block): block for block in block_of_row.values()}.values()]


def _dense(block: Mapping[tuple[int, int], float]) -> Array:
    rows = {row: place for place, row in enumerate(sorted({row for row, _ in block}))}
    columns = {column: place for place, column in enumerate(sorted({column for _, column in block}))}
    result = np.zeros((len(rows), len(columns)))
    for (row, column), value in block.items():
        result[rows[row], columns[column]] = value
    return result if len(rows) <= len(columns) else result.T


def _dense_total(similarity: Array) -> float:
    """Return the highest sum of a matrix that has no more rows than columns: shortest augmenting paths (Kuhn 1955).

    Row and column 0 of the arrays are a dummy, from which each path begins.
    """
    rows, columns = similarity.shape
    cost = -similarity
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    row_of = np.zeros(columns + 1, dtype=np.int64)  # 0: the column is free
    for row in range(1, rows + 1):
        row_of[0], column = row, 0
        shortest, previous = np.full(columns + 1, np.inf), np.zeros(columns + 1, dtype=np.int64)
        done = np.zeros(columns + 1, dtype=bool)
        while row_of[column] or column == 0:
            done[column] = True
            current = row_of[column]
            reduced = cost[current - 1] - row_price[current] - column_price[1:]
            better = ~done[1:] & (reduced < shortest[1:])
            shortest[1:][better], previous[1:][better] = reduced[better], column
            nearest = int(np.argmin(np.where(done, np.inf, shortest)[1:])) + 1
            step = shortest[nearest]
            row_price[row_of[done]] += step
            column_price[done] -= step
            shortest[~done] -= step
            column = nearest
        while column:
            row_of[column], column = row_of[previous[column]], int(previous[column])
    return float(sum(similarity[row - 1, place] for place, row in enumerate(row_of[1:]) if row))
