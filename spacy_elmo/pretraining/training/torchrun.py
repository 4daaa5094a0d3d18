"""Reads the environment variables that torchrun sets for each process of a run."""

import os
from typing import NoReturn

from ...errors import Errors, ProcessError, shown

_MOST = 2**31 - 1  # torch.distributed counts processes in a C int
_LAST_PORT = 2**16 - 1


def environment() -> tuple[int, int]:
    """Return the rank of this process, from 0, and the number of processes: RANK and WORLD_SIZE.

    If WORLD_SIZE is not set or 1, the result is (0, 1), and the other variables are ignored.

    Raises ProcessError, which names the variable, if a number is out of range, or if MASTER_ADDR or MASTER_PORT can't
    be used.
    """
    if "WORLD_SIZE" not in os.environ:
        return 0, 1
    size = _number("WORLD_SIZE", 1, _MOST)
    if size == 1:
        return 0, 1
    rank = _number("RANK", 0, size - 1)
    if not os.environ.get("MASTER_ADDR"):
        _refuse("MASTER_ADDR", "the address of the first process's machine")
    _number("MASTER_PORT", 1, _LAST_PORT)
    return rank, size


def local_rank() -> int:
    """Return the rank of this process among those of its machine, LOCAL_RANK; 0 if there is one process.

    Raises ProcessError as `environment` does.
    """
    size = environment()[1]
    return 0 if size == 1 or "LOCAL_RANK" not in os.environ else _number("LOCAL_RANK", 0, size - 1)


def _number(name: str, least: int, most: int) -> int:
    try:
        number = int(os.environ[name])
    except (KeyError, ValueError):
        number = least - 1
    if not least <= number <= most:
        _refuse(name, f"a whole number from {least} to {most}")
    return number


def _refuse(name: str, expected: str) -> NoReturn:
    got = shown(os.environ[name]) if name in os.environ else "not set"
    raise ProcessError(Errors.PROCESS_VARIABLE.format(name=name, got=got, expected=expected))
