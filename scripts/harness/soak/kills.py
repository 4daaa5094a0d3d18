"""SIGKILL at random moments of what writes files. Nothing half-written may be accepted as complete."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from .writers import WRITERS


@dataclass(frozen=True)
class Writer:
    """What is killed.

    prepare: sets up a folder, once.
    write: is run in a child process, and killed.
    read: tells what the folder holds now: "nothing", "old", "new", or a refusal. Raises AssertionError if it holds
        something else and nothing refuses it.
    """

    prepare: Callable[[Path], None]
    write: Callable[[Path], None]
    read: Callable[[Path], str]


def kill(name: str, times: int, seed: int = 0) -> str:
    """Kill a writer again and again, and let it run to its end at last. Returns what was there after each kill."""
    writer, random, found = Writer(*WRITERS[name]), Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name_of_folder:
        first, folder = Path(name_of_folder, "first"), Path(name_of_folder, "killed")
        first.mkdir()
        writer.prepare(first)
        shutil.copytree(first, folder)
        start = time.monotonic()
        assert _code(_forked(writer, folder)) == 0
        seconds = time.monotonic() - start
        assert writer.read(folder) == "new"
        kills = 0
        while kills < times:
            if random.random() < 0.5:  # else it goes on in what the kill before has left
                shutil.rmtree(folder)
                shutil.copytree(first, folder)
            child = _forked(writer, folder)
            time.sleep(random.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
            code = _code(child)
            assert code in (0, -signal.SIGKILL), code
            kills += code != 0
            found[writer.read(folder)] += 1
        assert _code(_forked(writer, folder)) == 0
        assert writer.read(folder) == "new", "what a kill has left is in the way"
    return f"{name}: {times} kills within {seconds:.2f} s each; after them: {dict(found)}"


def _forked(writer: Writer, folder: Path) -> int:
    """Start a child that writes; the imports are paid for once."""
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        errors = os.dup(2)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            writer.write(folder)
            os._exit(0)
        except BaseException:
            os.write(errors, traceback.format_exc().encode())
        finally:
            os._exit(1)
    return child


def _code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
