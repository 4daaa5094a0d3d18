"""Checks the arrays of a checkpoint before a run goes on from them."""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError, Errors

Forms = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
Value = TypeVar("Value")
AVERAGE = "average/"  # begins the names of the average of the weights


def fitting(arrays: Mapping[str, npt.NDArray[Any]], expected: Forms, path: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a checkpoint that a run needs, after a check of their names, types and shapes.

    An average of the weights may be absent or not needed, because `training.average_share` may change.

    arrays: of the checkpoint.
    expected: type and shape of each array that the run has.
    path: name of the checkpoint in messages.

    Raises CheckpointError if they are not those of this run.
    """
    if not (_has_average(arrays) and _has_average(expected)):
        arrays, expected = _without_average(arrays), _without_average(expected)
    problems = [f"{name} is missing" for name in expected if name not in arrays]
    problems += [
        f"{name} is {array.dtype} of shape {array.shape}, expected {expected[name][0]} of {expected[name][1]}"
        for name, array in arrays.items()
        if name in expected and (array.dtype, array.shape) != expected[name]
    ]
    problems += [f"{name} is unexpected" for name in arrays if name not in expected]
    if not problems:
        problems = [f"{name} is {arrays[name]}" for name in ("step", AVERAGE + "n_averaged") if arrays.get(name, 0) < 0]
    if problems:
        raise CheckpointError(Errors.CHECKPOINT_PARTS.format(path=path, problems="; ".join(problems[:5])))
    return dict(arrays)


def _has_average(arrays: Mapping[str, object]) -> bool:
    return any(name.startswith(AVERAGE) for name in arrays)


def _without_average(arrays: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in arrays.items() if not name.startswith(AVERAGE)}
