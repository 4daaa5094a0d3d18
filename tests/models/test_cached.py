"""Which rows are run again, and what equal rows share."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spacy_elmo.models.bilm import LayerCache, Row, with_cache


def row(doc: int, words: list[str]) -> Row:
    return Row(doc, words, np.arange(len(words)), np.arange(len(words)))


def shim(dtype: str = "float32", fingerprint: str = "bilm") -> Any:
    options = SimpleNamespace(layers=2, width=3)
    return SimpleNamespace(compute_fingerprint=lambda: fingerprint, dtype=dtype, options=options)


def test_equal_rows_are_run_once_and_can_not_be_changed() -> None:
    cache, ran = LayerCache(2**20), []

    def run(rows: list[Row]) -> list[np.ndarray]:
        ran.append([row.words for row in rows])
        return [np.full((2, len(row.words), 3), len(ran), np.float32) for row in rows]

    cache.open()
    rows = [row(0, ["a", "b"]), row(1, ["c"]), row(2, ["a", "b"])]
    for layers in (*with_cache(cache, shim(), rows, run, False), *with_cache(cache, shim(), rows, run, False)):
        assert (layers == 1).all()
        with pytest.raises(ValueError, match="read-only"):
            layers[:] = 0
    assert ran == [[["a", "b"], ["c"]]]
    for number, other in enumerate((shim(dtype="bfloat16"), shim(fingerprint="another")), 2):
        assert all((layers == number).all() for layers in with_cache(cache, other, rows, run, False))
