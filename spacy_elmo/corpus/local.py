"""Makes the shards of a corpus on one machine, in one process or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path

import torch
from spacy.util import import_file

from ..errors import ElmoError, Errors, ProcessError
from .documents import Shard
from .manifest import ShardFacts
from .shards import OnProgress, ShardSettings, ShardWriter

_writer: ShardWriter | Exception  # of a worker process; the error with which it has started


def run_here(
    shards: Iterator[Shard], writer: ShardWriter, folder: Path, done: Callable[[ShardFacts], None], progress: OnProgress
) -> None:
    """Make shards in this process, one after the other.

    shards: that are to be made.
    writer: makes their files.
    folder: of their files.
    done: is called with each finished shard.
    progress: is called with what was done.
    """
    for shard in shards:
        done(writer.write_shard(shard, folder, progress))


def run_workers(
    shards: Iterator[Shard],
    settings: ShardSettings,
    workers: int,
    folder: Path,
    done: Callable[[ShardFacts], None],
    progress: OnProgress,
) -> None:
    """Make shards in several processes, which share the threads that torch has here.

    If reading or making a shard fails, those that are being made are finished first, unless another one fails too. Then
    the first error is raised. If a signal stops this process, the workers end at once.

    workers: number of processes.
    shards, settings, folder, done, progress: as in `run_here`.

    Raises ProcessError if a worker can't start or dies.
    """
    threads = max(1, torch.get_num_threads() // workers)
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (settings, threads))
    pending: dict[Future[ShardFacts], int] = {}

    def collect(most: int) -> None:
        while len(pending) > most:
            finished = wait(pending, return_when=FIRST_COMPLETED).done
            for future in [future for future in pending if future in finished]:  # in the order of the shards
                size = pending.pop(future)
                facts = future.result()
                done(facts)
                progress(facts.tokens, size)

    try:
        try:
            for shard in shards:
                pending[pool.submit(_make, shard, folder)] = shard.bytes
                collect(2 * workers - 1)  # a shard for each worker waits
        except Exception:
            with suppress(Exception):  # the first error tells more than a second one
                collect(0)
            raise
        collect(0)
    except BrokenProcessPool as error:
        raise ProcessError(Errors.CORPUS_WORKER) from error
    except BaseException:
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(settings: ShardSettings, threads: int) -> None:
    """Load the biLM of a worker process. An error is kept for `_make`: raised here, it would only end the process."""
    global _writer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    try:
        if settings.code is not None:
            import_file("python_code", settings.code)  # as spaCy's commands do
        _writer = ShardWriter(settings)
    except Exception as error:
        _writer = error


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # otherwise it would wait for shards for ever


def _make(shard: Shard, folder: Path) -> ShardFacts:
    if isinstance(_writer, ElmoError):
        raise _writer
    if isinstance(_writer, Exception):  # of a class that the process which gets it may not know
        raise ProcessError(Errors.CORPUS_START.format(reason=f"{type(_writer).__name__}: {_writer}")) from _writer
    return _writer.write_shard(shard, folder)
