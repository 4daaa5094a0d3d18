"""Reads the HDF5 files of strangers in a new process, with limits on memory and time.

The HDF5 library is not safe against hostile files: they make it crash, run in a circle, or fill the memory.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import ElmoError, shown

Array = npt.NDArray[Any]
# What a task returns: facts, which is anything that JSON has, and numbers by name.
Result = tuple[Any, Mapping[str, Array]]

# Memory and computing time that any file may cost, beside what its values need.
_MARGIN_BYTES, _MARGIN_SECONDS = 2**28, 10
# The values are in memory at most twice, the second time dataset by dataset; then come chunks and checks of values.
_COPIES = 3
# Slow machines decompress and check about 100 MB/s.
_BYTES_A_SECOND = 2**24
# A week. A timer can't wait for centuries, which the largest max_bytes would give.
_MAX_SECONDS = 7 * 24 * 3600
# Seconds on the clock for one of computing time: other processes and slow disks take their share.
_PATIENCE = 6
# The longest line of an answer. Messages and facts are much shorter.
_MAX_LINE = 2**24
_NUMBERS = re.compile(r"[<>|=]([biu][1248]|b1|f[248]|c8|c16)")
_READY = b"ready\n"
_NOT_STARTED = (
    "{path}: not read, because the process that reads untrusted files could not be started ({reason}). Read the file "
    "without untrusted=True only if you trust it."
)
_SUSPECT = "The file is damaged or made to do harm: get it again from a place that you trust, and compare its SHA-256."
# An empty package in the place of spacy_elmo, whose own __init__ loads torch and spaCy.
_START = """
import sys, types
package = types.ModuleType("spacy_elmo")
package.__path__ = [sys.argv[1]]
sys.modules["spacy_elmo"] = package
sys.path += sys.argv[2:]
from spacy_elmo.formats.untrusted import main
main()
"""
_apart = False  # whether this is the process that reads a file of a stranger


def ask(
    task: Callable[..., Result],
    path: str | os.PathLike[str],
    arguments: Mapping[str, Any],
    error: type[ElmoError],
    max_bytes: int,
    allocate: Callable[[tuple[int, ...], np.dtype[Any]], Array] = np.empty,
) -> tuple[Any, dict[str, Array]]:
    """Run a task on an untrusted file in a new process without torch and spaCy, which ends when this one does.

    task: a function of a module that needs neither, from `path` and `arguments`, which are what JSON has, to facts and
        arrays. It should call `allow`.
    max_bytes: size of all arrays together, at most. allocate: makes the arrays into which values are copied.

    Raises `error` if the task raises an ElmoError, and if the process crashes, reaches a limit, can't be started, or
    gives an answer that does not fit.
    """
    request = {"parent": os.getpid(), "module": task.__module__, "function": task.__name__}
    request["arguments"] = {"path": os.fspath(path), **arguments}
    seconds = _PATIENCE * seconds_for(max_bytes)
    try:
        process = _start()
    except (OSError, ValueError) as exc:
        raise error(_NOT_STARTED.format(path=path, reason=exc)) from exc
    clock = threading.Timer(seconds, process.kill)
    clock.daemon = True
    with process:
        assert process.stdin
        assert process.stdout
        try:
            end = time.monotonic() + seconds
            clock.start()
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            except OSError:  # the process has ended, which its missing answer tells
                with contextlib.suppress(OSError):
                    process.stdin.close()  # else it would be written again
            ready = process.stdout.readline(len(_READY)) == _READY
            answer = _answer(process.stdout, path, error, max_bytes, allocate) if ready else None
            clock.cancel()
            if answer is None:
                raise error(_end_of(process, path, ready, seconds if time.monotonic() >= end else None))
            return answer
        finally:
            clock.cancel()
            process.kill()


def unfit_error(path: str | os.PathLike[str], got: str, error: type[ElmoError]) -> ElmoError:
    """Return the error for an answer of the process that is not what the task returns."""
    return error(f"{path}: the process that reads this file gave an answer that does not fit: {got}. {_SUSPECT}")


def seconds_for(n_bytes: int) -> int:
    """Return the seconds of computing time that values of `n_bytes` may cost."""
    return min(_MARGIN_SECONDS + n_bytes // _BYTES_A_SECOND, _MAX_SECONDS)


def _start() -> subprocess.Popen[bytes]:
    folders = dict.fromkeys(str(Path(str(module.__file__)).resolve().parents[1]) for module in (np, h5py))
    flags = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
    return subprocess.Popen(
        [sys.executable or "", *flags, "-c", _START, str(Path(__file__).resolve().parents[1]), *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # One thread: each further one of OpenBLAS takes address space.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def _answer(
    stdout: IO[bytes],
    path: str | os.PathLike[str],
    error: type[ElmoError],
    max_bytes: int,
    allocate: Callable[[tuple[int, ...], np.dtype[Any]], Array],
) -> tuple[Any, dict[str, Array]] | None:
    """Return the answer; None if the process ends before its end."""
    line = stdout.readline(_MAX_LINE)
    if not line.endswith(b"\n"):
        return None
    described: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
    try:
        header = json.loads(line)
        if "error" in header:
            raise error(str(header["error"]))
        facts = header["facts"]
        for name, dtype, shape in header["arrays"]:
            if not _NUMBERS.fullmatch(dtype) or any(type(size) is not int or size < 0 for size in shape):
                raise ValueError
            described[str(name)] = np.dtype(dtype), tuple(shape)
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        if isinstance(exc, ElmoError):
            raise
        raise unfit_error(path, shown(line), error) from None
    if sum(dtype.itemsize * math.prod(shape) for dtype, shape in described.values()) > max_bytes:
        raise unfit_error(path, f"more than {max_bytes:,} bytes", error)
    arrays = {}
    for name, (dtype, shape) in described.items():
        arrays[name] = allocate(shape, dtype)
        target = arrays[name].reshape(-1).view(np.uint8).data
        if stdout.readinto(target) < len(target):  # type: ignore[attr-defined]
            return None
    return facts, arrays


def _end_of(process: subprocess.Popen[bytes], path: str | os.PathLike[str], ready: bool, seconds: int | None) -> str:
    """Return a message on a process that gave no complete answer, though it was ready, or was killed after seconds."""
    try:
        code = process.wait(_MARGIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if seconds is not None or code == -getattr(signal, "SIGXCPU", 0):
        limit = "its limit of computing time" if seconds is None else f"{seconds} seconds"
        return f"{path}: the HDF5 library came to no end on this file within {limit}. {_SUSPECT}"
    try:
        how = signal.Signals(-code).name
    except ValueError:
        how = f"exit code {code}"
    if ready:
        return f"{path}: the HDF5 library crashed on this file, in a process of its own ({how}). {_SUSPECT}"
    assert process.stderr
    lines = process.stderr.read(10_000).decode("utf8", "replace").strip().splitlines() or [how]
    return _NOT_STARTED.format(path=path, reason=ascii(lines[-1])[1:-1])


def main() -> None:
    """Be that process: read a task, a line of JSON, from standard input, run it, and write its result."""
    global _apart
    task = json.loads(sys.stdin.buffer.readline())
    _die_with(task["parent"])
    function = getattr(import_module(task["module"]), task["function"])
    # Nothing that a library prints gets into the answer.
    output = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    _apart = True
    allow(0)
    try:
        output.write(_READY)
        output.flush()
        for part in _run(function, task["arguments"]):
            output.write(part)
        output.flush()
    except OSError:  # nobody reads the answer any more
        os._exit(1)
    os._exit(0)  # HDF5's own cleaning up could still crash


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when the one that started it ends. Only Linux can do that."""
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def _end_with(file: IO[bytes]) -> None:
    """End this process when the file ends, which the starting process holds open as long as it waits."""
    file.read()
    os._exit(1)


def allow(n_bytes: int) -> None:
    """Limit a process that reads an untrusted file to what it uses now, and to what values of this size need."""
    if sys.platform == "win32" or not _apart:
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        resource.RLIMIT_AS: _address_space() + _MARGIN_BYTES + _COPIES * n_bytes,
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + seconds_for(n_bytes),
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,  # it writes no file
    }
    for kind, value in limits.items():
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


def _run(function: Callable[..., Result], arguments: Mapping[str, Any]) -> list[Any]:
    """Run the task. Returns the parts of the answer: a line of JSON, and the bytes of the arrays."""
    try:
        facts, arrays = function(**arguments)
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        described = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
        line = json.dumps({"facts": facts, "arrays": described}).encode() + b"\n"
        return [line, *(array.reshape(-1).view(np.uint8).data for array in arrays.values())]
    except ElmoError as error:
        text = str(error)
    except MemoryError:
        text = f"{arguments['path']}: reading this file takes far more memory than its values need. {_SUSPECT}"
    except Exception as error:  # whatever a damaged file leads to
        text = f"{arguments['path']}: can't be read ({type(error).__name__}: {error}). {_SUSPECT}"
    return [json.dumps({"error": text}).encode() + b"\n"]
