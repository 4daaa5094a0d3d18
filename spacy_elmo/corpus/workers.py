"""Makes the shards of a corpus in several processes, or on the machines of a Ray cluster.

On a cluster, a shard is a Ray task, which Ray starts again if its process or its machine dies. Ray Data can't be used:
it wants to know all of its input beforehand. These shards are cut from one stream, and each is compared with the
manifest first.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import torch
from spacy.util import import_file

from ..errors import CorpusError, ElmoError, ProcessError, SettingsError
from ..formats.atomic import writing
from ..formats.options import BiLMOptions
from ..inference.linear import dtype_of
from ..modules import Arrays
from .bilm import BiLMChoice
from .shards import Shard, ShardFacts, ShardSettings, ShardWriter

Done = Callable[[ShardFacts, int], None]  # is called with each finished shard, and its bytes of text


def _run(
    shards: Iterable[Shard],
    done: Done,
    pending: dict[Any, int],
    submit: Callable[[Shard], Any],
    most_pending: Callable[[], int],
    finished: Callable[[Collection[Any]], Collection[Any]],
    result: Callable[[Any], ShardFacts],
) -> None:
    """Make shards as tasks, of which `pending` has the bytes. `finished` waits until one of them is, or several."""

    def collect(left: int) -> None:
        while len(pending) > left:
            found = finished(list(pending))
            for task in [task for task in pending if task in found]:  # in the order of the shards
                size = pending.pop(task)
                done(result(task), size)

    for shard in shards:
        pending[submit(shard)] = shard.bytes
        collect(most_pending())
    collect(0)


_writer: ShardWriter | Exception  # of a worker process; the error with which it has started


def run_workers(
    shards: Iterable[Shard], settings: ShardSettings, workers: int | None, folder: Path, done: Done
) -> None:
    """Make shards in several processes, which share the threads that torch has here.

    After an error, or if a signal stops this process, the workers end at once.
    """
    workers = workers or 1
    threads = max(1, torch.get_num_threads() // workers)
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (settings, threads))
    try:
        _run(
            shards,
            done,
            {},
            submit=lambda shard: pool.submit(_make, shard, folder),
            most_pending=lambda: 2 * workers - 1,  # a shard for each worker waits
            finished=lambda tasks: wait(tasks, return_when=FIRST_COMPLETED).done,
            result=lambda task: task.result(),
        )
    except BrokenProcessPool as error:
        raise ProcessError(
            "a worker process ended in the middle; perhaps the system had no memory left. The finished shards "
            "stay: give the same command again, with fewer workers or smaller shards."
        ) from error
    except BaseException:
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(settings: ShardSettings, threads: int) -> None:
    """Load the biLM of a worker. An error is kept for `_make`: raised here, it would only end the process."""
    global _writer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _writer = _load(settings, threads)
    except Exception as error:
        _writer = error


def _load(settings: ShardSettings, threads: int, weights: tuple[BiLMOptions, Arrays] | None = None) -> ShardWriter:
    torch.set_num_threads(threads)
    if settings.code is not None:
        import_file("python_code", settings.code)  # as spaCy's commands do
    return ShardWriter(settings, settings.bilm.load(weights))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # otherwise it would wait for shards for ever


def _make(shard: Shard, folder: Path) -> ShardFacts:
    if isinstance(_writer, ElmoError):
        raise _writer
    if isinstance(_writer, Exception):  # of a class that the process which gets it may not know
        raise ProcessError(
            f"a worker process could not start ({type(_writer).__name__}: {_writer}). If the error comes from the file "
            "that code (--code) names, correct that file: each worker imports it. Otherwise leave out workers "
            "(--workers): then no process starts."
        ) from _writer
    return _writer.write_shard(shard, folder, lambda tokens, size: None)


RETRIES = 10  # times that a shard is begun again after its process or machine died
_SECONDS = 10.0  # that a machine has to answer, and tasks to end
_PATIENCE, _PAUSE = 60.0, 600.0  # that pass without a finished shard before it is told; between two such warnings

_cluster_writer: tuple[str, ShardWriter] | None = None  # of a Ray process, and the command that it was made for


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise SettingsError(
            f"the engine ray needs Ray, which can't be imported ({error}). Get it with pip install "
            '"spacy-elmo[ray]", or leave out the engine: one machine needs no Ray.'
        ) from error


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Be connected to a Ray cluster during a `with` block. address: as in `embed`."""
    ray = _ray()
    if address is None and ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a Ray that is started here sends no statistics
    try:
        host, _, port = (address or "").removeprefix("ray://").rpartition(":")
        if host and port.isdecimal():  # Ray itself would wait for minutes if nothing answers
            socket.create_connection((host.strip("[]"), int(port)), _SECONDS).close()
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # a node that starts too slowly raises just that
        raise SettingsError(
            f"no Ray cluster could be reached or started; its address is {address or 'left out'} ({error}). "
            "Expected auto, on a machine of a cluster; host:port, as `ray start --head` prints it; or no "
            "address, to start Ray on this machine."
        ) from error
    finally:
        if main:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if handler is None else handler)  # Ray has set its own
    try:
        yield
    finally:
        ray.shutdown()


def run_cluster(
    shards: Iterable[Shard], settings: ShardSettings, workers: int | None, folder: Path, done: Done
) -> None:
    """Make shards on all machines of the cluster that this process is connected to.

    The biLM comes from this machine. A task has one core, and one GPU if the biLM's device is one. After an error, or
    if a signal stops this process, the tasks that wait are left out, and the others end after their window.

    workers: tasks at once; None: as many as the cluster can run, and as many more that wait.
    folder: of the files, which all machines must share.
    """
    ray = _ray()
    folder = folder.absolute()
    mark = folder / f".{uuid.uuid4().hex}.tmp"  # of a name that remove_leftovers knows
    with writing(folder, CorpusError):
        mark.touch()
    kinds = ("CPU",) if torch.device(settings.bilm.device).type == "cpu" else ("CPU", "GPU")
    shared = ray.put((version_of("spacy-elmo"), _for_tasks(settings), *settings.bilm.load_arrays()))
    make = ray.remote(_make_on_cluster).options(num_cpus=1, num_gpus=len(kinds) - 1, max_retries=RETRIES)
    pending: dict[Any, int] = {}

    def most() -> int:
        if workers is not None:
            return workers - 1
        return 2 * max(1, int(ray.cluster_resources().get(kinds[-1], 0))) - 1  # machines come and go

    try:
        _run(
            shards,
            done,
            pending,
            submit=lambda shard: make.remote([shared], shared.hex(), shard, mark),  # a list is not fetched
            most_pending=most,
            finished=lambda tasks: _finished(ray, tasks, kinds),
            result=lambda task: _result(ray, task),
        )
    finally:
        mark.unlink(missing_ok=True)  # the tasks end. ray.cancel may abort this process (seen with Ray 2.60)
        if pending:
            ray.wait(list(pending), num_returns=len(pending), timeout=_SECONDS)


def _for_tasks(settings: ShardSettings) -> ShardSettings:
    # in a process of another folder and machine
    pipeline = settings.bilm.saved_pipeline
    if pipeline is not None and Path(pipeline).exists():
        pipeline = str(Path(pipeline).absolute())
    device = torch.device(settings.bilm.device)
    dtype = dtype_of(settings.bilm.precision, device)
    # Ray shows a task its own GPU only
    bilm = BiLMChoice(
        pipeline=pipeline, device=device.type, precision="float32" if dtype == torch.float32 else "bfloat16"
    )
    return replace(settings, bilm=bilm, code=None if settings.code is None else Path(settings.code).absolute())


def _finished(ray: Any, tasks: Collection[Any], kinds: tuple[str, ...]) -> list[Any]:
    """Return finished tasks, at least one. Warns if there is none for a while. kinds: what a task needs one of each."""
    begun, pause = time.monotonic(), _PATIENCE
    while not (finished := ray.wait(list(tasks), timeout=pause)[0]):
        needed, has, left = (
            " and ".join(f"{resources.get(kind, 0):g} {kind}" for kind in kinds)
            for resources in (dict.fromkeys(kinds, 1), ray.cluster_resources(), ray.available_resources())
        )
        warnings.warn(
            f"no shard was finished for {round(time.monotonic() - begun)} seconds. {len(tasks)} are being made or "
            f"wait: a shard needs {needed}, and the Ray cluster has {has}, of which {left} are free. The command goes "
            "on when they are free, or when a machine with more joins (`ray start --address FIRST:6379`).",
            stacklevel=2,
        )
        pause = min(2 * pause, _PAUSE)
    return list(finished)


def _result(ray: Any, task: Any) -> ShardFacts:
    try:
        facts: ShardFacts = ray.get(task)
    except ray.exceptions.RayError as error:
        last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        problem = f"a shard could not be made, because its Ray process or machine ended, {RETRIES + 1} times at most"
        todo = "on machines with more memory or with smaller shards"
        if isinstance(error, ray.exceptions.RayTaskError):
            if isinstance(error.cause, ElmoError):
                raise error.cause from None
            problem, todo = "a Ray task failed", "after installing the same packages on all machines of the cluster"
        raise ProcessError(
            f"{problem}: {last}. The finished shards stay: give the same command again, {todo}."
        ) from error
    return facts


def _make_on_cluster(shared: list[Any], command: str, shard: Shard, mark: Path) -> ShardFacts:
    """Make a shard in a Ray process, which keeps the biLM for the next one. It ends if the file `mark` is deleted."""
    global _cluster_writer

    def check(tokens: int = 0, size: int = 0) -> None:
        if not mark.exists():
            raise CorpusError(
                f"{mark.parent}: the machine {socket.gethostname()} of the Ray cluster does not have the same "
                "folder at this path. Expected a folder that all machines share, on a network file system for "
                "example: give one as the output."
            )

    check()
    if _cluster_writer is None or _cluster_writer[0] != command:
        _cluster_writer = None  # two biLMs at once may be too many
        _cluster_writer = command, _load_of(*_ray().get(shared[0]))
    return _cluster_writer[1].write_shard(shard, mark.parent, check)  # after each window


def _load_of(version: str, settings: ShardSettings, options: BiLMOptions, arrays: Arrays) -> ShardWriter:
    if (own := version_of("spacy-elmo")) != version:
        raise SettingsError(
            f"the machine {socket.gethostname()} of the Ray cluster has spacy-elmo {own}. Expected {version}, as "
            "the machine has where the command runs: install the same version on all machines."
        )
    return _load(settings, 1, (options, arrays))
