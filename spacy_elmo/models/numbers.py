"""What counts as a number in a setting: spaCy passes a number in quotes on as a string."""

from typing import Any, TypeGuard

import numpy as np

MAX_FLOAT32 = float(np.finfo(np.float32).max)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number that fits into float32. True and False are none."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    size: Any = abs(value)
    return bool(size <= MAX_FLOAT32)


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether this is a whole number. True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)
