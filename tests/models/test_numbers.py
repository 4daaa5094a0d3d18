"""What counts as a number in a setting."""

from typing import Any

import numpy as np
import pytest

from spacy_elmo.models.types import is_number, is_whole


@pytest.mark.parametrize("value", [0, -1, 0.5, 3e38, np.float32(0.5), np.int64(3)])
def test_numbers(value: Any) -> None:
    assert is_number(value)


@pytest.mark.parametrize("value", ["0.5", True, None, [1], float("nan"), float("inf"), 1e39, 10**400])
def test_no_numbers(value: Any) -> None:
    assert not is_number(value)


def test_whole_numbers() -> None:
    assert [is_whole(value) for value in (3, -3, True, 3.0, "3", None)] == [True, True, False, False, False, False]
