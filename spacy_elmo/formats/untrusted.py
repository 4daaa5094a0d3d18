"""Starts the process that reads an untrusted file, and takes its answer."""

from __future__ import annotations

import contextlib
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
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import ElmoError, shown

# Memory and computing time that any file may cost, beside what its values need.
MARGIN_BYTES, MARGIN_SECONDS = 2**28, 10
# The values are in memory at most twice, the second time dataset by dataset; then come chunks and checks of values.
_COPIES = 3
# Slow machines decompress and check about 100 MB/s.
_BYTES_A_SECOND = 2**24
# A week. A timer can't wait for centuries, which the largest max_bytes would give.
_MAX_SECONDS = 7 * 24 * 3600


def seconds_for(n_bytes: int) -> int:
    """Return the seconds of computing time that values of `n_bytes` may cost."""
    return min(MARGIN_SECONDS + n_bytes // _BYTES_A_SECOND, _MAX_SECONDS)


def die_with(parent: int) -> None:
    """Let the kernel kill this process when the one that started it ends. Only Linux can do that.

    parent: number of the process that started this one.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def allow(n_bytes: int) -> None:
    """Limit this process to what it uses now, and to what values of this size need. Raises no error.

    Windows has no such limits, and macOS has none on memory.

    n_bytes: size of the values in bytes.
    """
    if sys.platform == "win32":
        return
    import resource

    _limit(resource.RLIMIT_AS, _address_space() + MARGIN_BYTES + _COPIES * n_bytes)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds_for(n_bytes))
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)  # it writes no file


def _limit(kind: int, value: int) -> None:
    import resource

    with contextlib.suppress(OSError, ValueError):  # of systems that do not have this limit
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _address_space() -> int:
    """Return the bytes of this process's address space; an estimate if the system does not tell it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**30


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
        told = "reading this file takes far more memory than its values need"
    except Exception as error:  # whatever a damaged file leads to
        told = f"can't be read ({type(error).__name__}: {error})"
    text = (
        f"{arguments['path']}: {told}. The file is damaged or made to do harm: get it again from a place that you "
        "trust, and compare its SHA-256."
    )
    return [_line({"error": text})]


def _line(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def _end_with(file: IO[bytes]) -> None:
    """End this process when the file ends, which the starting process holds open as long as it waits."""
    file.read()
    os._exit(1)


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
            raise error(
                f"{path}: the process that reads this file gave an answer that does not fit: {unfit}. The file is "
                "damaged or made to do harm: get it again from a place that you trust, and compare its SHA-256."
            ) from None
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
    flags = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
    try:
        process = subprocess.Popen(
            [sys.executable or "", *flags, str(Path(__file__).with_name("untrusted_start.py")), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, ValueError) as exc:
        raise error(
            f"{path}: not read, because the process that reads untrusted files could not be started ({exc}). Read "
            "the file without untrusted=True only if you trust it."
        ) from exc
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
        return (
            "{path}: the HDF5 library came to no end on this file within {limit}. The file is damaged or made to "
            "do harm: get it again from a place that you trust, and compare its SHA-256."
        ).format(path=path, limit=f"{clock.seconds} seconds")
    if code == -getattr(signal, "SIGXCPU", 0):
        return (
            f"{path}: the HDF5 library came to no end on this file within {'its limit of computing time'}. The "
            "file is damaged or made to do harm: get it again from a place that you trust, and compare its "
            "SHA-256."
        )
    try:
        how = signal.Signals(-code).name
    except ValueError:
        how = f"exit code {code}"
    if log is None:
        return (
            f"{path}: the HDF5 library crashed on this file, in a process of its own ({how}). The file is damaged "
            "or made to do harm: get it again from a place that you trust, and compare its SHA-256."
        )
    log.seek(0)
    tail = log.read(10_000).decode("utf8", "replace").strip().splitlines() or [how]
    return (
        f"{path}: not read, because the process that reads untrusted files could not be started "
        f"({ascii(tail[-1])[1:-1]}). Read the file without untrusted=True only if you trust it."
    )
