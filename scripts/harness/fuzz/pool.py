"""Child processes that read one input after another, and are replaced when one crashes, hangs or takes all memory."""

from __future__ import annotations

import math
import multiprocessing
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from spacy_elmo.errors import ElmoError

SECONDS, BYTES = 20, 2 * 2**30  # of processor time and of memory, for one input
WAITING_SECONDS = 300.0  # by the clock, for an input that waits and so uses no processor
_ENDING_SECONDS = 5.0  # how long a process that has closed its connection may take to be gone
# The clock that Linux compares with RLIMIT_CPU: CPUCLOCK_PROF of the calling process, counted in ticks. It drifts from
# time.process_time() by some seconds in ten minutes, so that a limit set by that one would end a process too early.
_LIMITED_CLOCK = ~0 << 3
_FORK = multiprocessing.get_context("fork")  # the imports are paid for once


@dataclass(frozen=True)
class Target:
    """A kind of input.

    make: writes an input into an empty folder.
    load: reads it. Only an ElmoError may come of it.
    safely: reads it in a process of its own, if the package can do that. Then this is what must read or refuse an input
        on which `load` crashes, hangs or takes too much memory.
    """

    make: Callable[[Path, Random], None]
    load: Callable[[Path], object]
    safely: Callable[[Path], object] | None = None


@dataclass(frozen=True)
class Finding:
    """What an input did that it must not do.

    seed: makes the input again.
    kind: "crash", "hang", "memory", or the name of an exception, and where it was raised.
    detail: the traceback, or the signal.
    folder: the input's files.
    contained: whether a process of its own read or refused it, as SECURITY.md promises.
    """

    seed: int
    kind: str
    detail: str
    folder: Path
    contained: bool = False


class _Child:
    def __init__(self, target: Target) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self.connection, theirs = _FORK.Pipe()
        self.process: BaseProcess = _FORK.Process(target=_serve, args=(target, self.folder, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.seed, self.since = -1, 0.0

    def send(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.connection.send(seed)

    def end(self) -> int | None:
        """Wait for a process that has closed its connection. Returns its exit code."""
        self.process.join(_ENDING_SECONDS)
        code = self.process.exitcode
        self.kill()
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def run(target: Target, seeds: Iterator[int], workers: int, findings: Path) -> Iterator[Finding | None]:
    """Read one input for each seed, in parallel. Yields a finding, or None if the input was read or refused.

    findings: folder to which the files of a finding are moved.
    """
    children = [_Child(target) for _ in range(workers)]
    try:
        for child in children:
            child.send(next(seeds))
        while True:
            ready = wait([child.connection for child in children], timeout=0.2)
            for number, child in enumerate(children):
                finding: Finding | None = None
                if child.connection in ready:
                    finding = _answer(child, findings)
                elif time.monotonic() - child.since > WAITING_SECONDS and not child.connection.poll():
                    child.kill()
                    finding = _stored(child, "hang", f"more than {WAITING_SECONDS:.0f} s by the clock", findings)
                else:
                    continue
                if finding is not None and finding.kind in ("hang", "crash"):
                    shutil.rmtree(child.folder, ignore_errors=True)
                    child = children[number] = _Child(target)
                if finding is not None and finding.kind in ("hang", "crash", "memory") and target.safely is not None:
                    finding = _read_safely(finding, target.safely)
                yield finding
                child.send(next(seeds))
    finally:
        for child in children:
            child.kill()
            shutil.rmtree(child.folder, ignore_errors=True)


def _answer(child: _Child, findings: Path) -> Finding | None:
    try:
        answer = child.connection.recv()
    except (EOFError, OSError):
        code = child.end()
        if code == -signal.SIGXCPU:
            return _stored(child, "hang", f"more than {SECONDS} s of processor time", findings)
        return _stored(child, "crash", f"exit code {code}", findings)
    if answer is None:
        return None
    kind, detail = answer
    return _stored(child, kind, detail, findings)


def _stored(child: _Child, kind: str, detail: str, findings: Path) -> Finding:
    folder = findings / f"seed-{child.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    if child.folder.is_dir():
        shutil.copytree(child.folder, folder, symlinks=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "finding.txt").write_text(f"{kind}\n{detail}\n", encoding="utf8", errors="backslashreplace")
    return Finding(child.seed, kind, detail, folder)


def _read_safely(finding: Finding, safely: Callable[[Path], object]) -> Finding:
    try:
        safely(finding.folder)
    except ElmoError:
        pass
    except Exception as error:
        kind = f"{finding.kind}, and {type(error).__name__} in a process of its own"
        return replace(finding, kind=kind, detail=traceback.format_exc())
    return replace(finding, contained=True)


def _serve(target: Target, folder: Path, connection: Connection) -> None:
    """Read inputs until the other end is closed."""
    warnings.simplefilter("ignore")
    limit = _virtual_bytes() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            seed = connection.recv()
        except EOFError:
            return
        _limit_seconds()
        connection.send(_outcome(target, folder, seed))


def _limit_seconds() -> None:
    """Let the system end this process by SIGXCPU if it uses more than SECONDS of processor time from now on."""
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.clock_gettime(_LIMITED_CLOCK)) + SECONDS, most))


def _outcome(target: Target, folder: Path, seed: int) -> tuple[str, str] | None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        target.make(folder, Random(seed))
    except MemoryError:  # the limit is for what reads
        return None
    try:
        target.load(folder)
    except ElmoError:
        return None
    except MemoryError:
        return "memory", traceback.format_exc()
    except BaseException as error:
        return f"{type(error).__name__} {_place(error)}", traceback.format_exc()
    return None


def _place(error: BaseException) -> str:
    """Return the last file and line of the package in a traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "spacy_elmo" in frame.filename]
    return f"{frames[-1].filename.rpartition('spacy_elmo/')[2]}:{frames[-1].lineno}" if frames else "outside"


def _virtual_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
