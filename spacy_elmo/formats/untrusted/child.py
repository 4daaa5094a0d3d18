"""What the process that reads an untrusted file does: one task, whose result it writes to its standard output.

It first writes the line `READY`. Then it writes one line of JSON, which `process.ask` describes, and the bytes of the
arrays.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import ElmoError, Errors
from .limits import allow, die_with

READY = b"ready\n"


class Result(NamedTuple):
    """What a task returns.

    facts: anything that JSON has.
    arrays: numbers of any type and shape, by name.
    """

    facts: Any
    arrays: Mapping[str, npt.NDArray[Any]] = {}


def main() -> None:
    """Read a task from standard input, run it under limits, and write its result to standard output.

    The task is a line of JSON: parent (number of the process that waits), module, function (returns a `Result`) and
    arguments. The process ends when its standard input ends.
    """
    task = json.loads(sys.stdin.buffer.readline())
    die_with(task["parent"])
    function = getattr(import_module(task["module"]), task["function"])
    # Nothing that a library prints gets into the answer.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    allow(0)
    output.write(READY)
    output.flush()
    try:
        for part in _answer(function, task["arguments"]):
            output.write(part)
        output.flush()
    except OSError:  # nobody reads the answer any more
        os._exit(1)
    os._exit(0)  # HDF5's own cleaning up could still crash


def _answer(function: Any, arguments: Mapping[str, Any]) -> list[Any]:
    """Run the function. Returns the parts of the answer, which are bytes."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            result = function(**arguments)
        arrays = {name: np.ascontiguousarray(array) for name, array in result.arrays.items()}
        described = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
        texts = [str(warning.message) for warning in caught]
        line = _line({"facts": result.facts, "arrays": described, "warnings": texts})
        return [line, *(array.reshape(-1).view(np.uint8).data for array in arrays.values())]
    except ElmoError as error:
        return [_line({"error": str(error)})]
    except MemoryError:
        return [_line({"error": Errors.UNTRUSTED_MEMORY.format(path=arguments["path"])})]
    except Exception as error:  # whatever a damaged file leads to
        reason = f"{type(error).__name__}: {error}"
        return [_line({"error": Errors.UNTRUSTED_OTHER.format(path=arguments["path"], reason=reason)})]


def _line(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def _end_with(file: IO[bytes]) -> None:
    """End this process when the file ends, which the starting process holds open as long as it waits."""
    file.read()
    os._exit(1)
