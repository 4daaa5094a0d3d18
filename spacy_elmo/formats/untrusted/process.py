"""Starts the process that reads an untrusted file, and takes its answer."""

from __future__ import annotations

import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import h5py
import numpy as np
import numpy.typing as npt

from ...errors import ElmoError, Errors, shown
from . import start
from .child import READY
from .limits import MARGIN_SECONDS, seconds_for

Array = npt.NDArray[Any]
Allocate = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]
TASKS = "spacy_elmo.formats.contents.tasks"
# The longest line of an answer. Messages and facts are much shorter.
_MAX_LINE = 2**24
_NUMBERS = re.compile(r"[<>|=]([biu][1248]|b1|f[248]|c8|c16)")
# Seconds on the clock for one of computing time: other processes and slow disks take their share.
_PATIENCE = 6


class Answer(NamedTuple):
    """What the process answers.

    facts: what JSON has.
    arrays: numbers by name.
    warnings: the texts of the warnings of the task.
    """

    facts: Any
    arrays: dict[str, Array]
    warnings: list[str]


def ask(
    task: str,
    path: str | os.PathLike[str],
    arguments: Mapping[str, Any],
    error: type[ElmoError],
    max_bytes: int,
    *,
    module: str = TASKS,
    allocate: Allocate = np.empty,
) -> Answer:
    """Run a task on an untrusted file in a new process.

    That process has limits on memory and computing time (`limits.py`). It imports neither torch nor spaCy nor the
    user's program, and it ends when this one does. Its answer is not trusted either: names, types and sizes are checked
    before memory is allocated for the arrays.

    task: name of a function that returns a `child.Result`.
    path: the file, for messages; it is also the task's argument `path`.
    arguments: the task's other arguments by name, as far as JSON has them.
    error: class of the exception.
    max_bytes: size of all arrays together, at most.
    module: of the function.
    allocate: makes an array of a shape and a type, into which the values are copied.

    Raises `error` if the task raises an ElmoError, and if the process crashes, reaches a limit, can't be started, or
    gives an answer that does not fit.
    """
    request = {"parent": os.getpid(), "module": module, "function": task}
    request["arguments"] = {"path": os.fspath(path), **arguments}
    with _log() as log, _started(log, path, error) as process:
        clock = _Clock(process, _PATIENCE * seconds_for(max_bytes))
        try:
            # Unbuffered, so that closing the pipe to a process that has ended writes nothing.
            stdin = cast(io.FileIO, cast(io.BufferedWriter, process.stdin).raw)
            return _talk(stdin, cast(io.BufferedReader, process.stdout), request, max_bytes, allocate)
        except _TaskError as told:
            raise error(str(told)) from None
        except _UnfitError as unfit:
            raise error(Errors.UNTRUSTED_ANSWER.format(path=path, got=unfit)) from None
        except _EndError as end:
            raise error(_end_of(process, path, clock, None if end.ready else log)) from None
        finally:
            clock.timer.cancel()


class _TaskError(Exception):
    """The task raised an error with this message."""


class _UnfitError(Exception):
    """An answer does not fit. The message is what was got."""


class _EndError(Exception):
    """The process ended before the end of its answer.

    ready: whether it had started its task.
    """

    def __init__(self, ready: bool) -> None:
        self.ready = ready


class _Clock:
    """Kills a process after some seconds.

    process: to be killed.
    seconds: until then.

    The attribute `over` says whether that happened.
    """

    def __init__(self, process: subprocess.Popen[bytes], seconds: int) -> None:
        self.seconds, self.over, self._process = seconds, False, process
        self.timer = threading.Timer(seconds, self._end)
        self.timer.daemon = True
        self.timer.start()

    def _end(self) -> None:
        self.over = True
        self._process.kill()


def _log() -> IO[bytes]:
    """Return a file for what the process writes to standard error; it is lost if no temporary file can be written."""
    with suppress(OSError):  # a full disk, or a machine whose folders are read-only
        return tempfile.TemporaryFile()
    return open(os.devnull, "w+b")


@contextmanager
def _started(log: IO[bytes], path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process, and end it after the block. log: gets what it writes to standard error."""
    folders = dict.fromkeys(str(Path(str(module.__file__)).resolve().parents[1]) for module in (np, h5py))
    # One thread: each further one of OpenBLAS takes address space.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        process = subprocess.Popen(
            [sys.executable or "", "-I", *(["-B"] if sys.dont_write_bytecode else []), str(start.__file__), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, ValueError) as exc:
        raise error(Errors.UNTRUSTED_START.format(path=path, reason=exc)) from exc
    with process:
        try:
            yield process
        finally:
            process.kill()


def _talk(
    stdin: io.FileIO, stdout: io.BufferedReader, request: Mapping[str, Any], max_bytes: int, allocate: Allocate
) -> Answer:
    """Send the request and return the answer. Raises _TaskError, _UnfitError or _EndError."""
    data = json.dumps(request).encode() + b"\n"
    try:
        while data:
            data = data[stdin.write(data) :]
    except OSError:
        raise _EndError(False) from None
    if stdout.readline(len(READY)) != READY:
        raise _EndError(False)
    line = stdout.readline(_MAX_LINE)
    if not line.endswith(b"\n"):
        raise _EndError(True)
    header = _header(line)
    if "error" in header:
        raise _TaskError(header["error"])
    arrays = {}
    for name, (dtype, shape) in _described(header.get("arrays"), max_bytes).items():
        arrays[name] = allocate(shape, dtype)
        if not _fill(stdout, arrays[name]):
            raise _EndError(True)
    warnings = header.get("warnings", [])
    return Answer(header.get("facts"), arrays, [str(text) for text in warnings] if isinstance(warnings, list) else [])


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise _UnfitError(shown(line))
    return header


def _described(arrays: Any, max_bytes: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return type and shape of each array. Raises _UnfitError if they are none, or larger than max_bytes together."""
    result: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
    try:
        for name, dtype, shape in arrays:
            if not _NUMBERS.fullmatch(dtype) or any(type(size) is not int or size < 0 for size in shape):
                raise _UnfitError(shown((name, dtype, shape)))
            result[str(name)] = (np.dtype(dtype), tuple(shape))
    except (TypeError, ValueError):
        raise _UnfitError(shown(arrays)) from None
    if sum(dtype.itemsize * math.prod(shape) for dtype, shape in result.values()) > max_bytes:
        raise _UnfitError(f"more than {max_bytes:,} bytes")
    return result


def _fill(stdout: io.BufferedReader, array: Array) -> bool:
    """Read the values of a contiguous array. Returns whether all of them came."""
    target = array.reshape(-1).view(np.uint8).data
    while len(target):
        n = stdout.readinto(target)
        if not n:
            return False
        target = target[n:]
    return True


def _end_of(
    process: subprocess.Popen[bytes], path: str | os.PathLike[str], clock: _Clock, log: IO[bytes] | None
) -> str:
    """Return a message on a process that gave no complete answer. log: its standard error if it never was ready."""
    try:
        code = process.wait(MARGIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if clock.over:
        return Errors.UNTRUSTED_TIME.format(path=path, limit=f"{clock.seconds} seconds")
    if code == -getattr(signal, "SIGXCPU", 0):
        return Errors.UNTRUSTED_TIME.format(path=path, limit="its limit of computing time")
    try:
        how = signal.Signals(-code).name
    except ValueError:
        how = f"exit code {code}"
    if log is None:
        return Errors.UNTRUSTED_CRASH.format(path=path, how=how)
    log.seek(0)
    tail = log.read(10_000).decode("utf8", "replace").strip().splitlines() or [how]
    return Errors.UNTRUSTED_START.format(path=path, reason=ascii(tail[-1])[1:-1])
