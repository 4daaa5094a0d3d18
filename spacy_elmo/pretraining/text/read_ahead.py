"""Batches that processes of their own read ahead of the updates, for a GPU that would wait for them."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ...errors import ElmoError, Errors, ProcessError, SettingsError
from .batches import StreamRange, Streams, Window
from .prepared import PreparedCorpus
from .vocabulary import Vocabulary

Place = Mapping[str, npt.NDArray[np.int64]]
_AHEAD = 4  # batches that each process has ready
_GRACE = 60.0  # seconds after SIGTERM in which a process goes on


class _Part(NamedTuple):
    """The next steps of some of the streams.

    window: as `Streams.next` returns it, but in smaller types, because it is sent to another process.
    place: how far these streams have read.
    """

    window: Window
    place: Place


class _Parts(IterableDataset["_Part | ElmoError"]):
    """What the processes read. Each has as many streams as the others, in the order of the processes.

    arguments: of `Streams`, without the range.
    streams: the streams of all processes of `readers`.
    readers: number of processes.
    steps: positions of each stream in a batch.
    place: where the streams begin.
    """

    def __init__(
        self, arguments: Mapping[str, Any], streams: StreamRange, readers: int, steps: int, place: Place
    ) -> None:
        self.arguments, self.streams, self.readers, self.steps, self.place = arguments, streams, readers, steps, place

    def __iter__(self) -> Iterator[_Part | ElmoError]:
        info = get_worker_info()
        assert info is not None
        share = self.streams.n // self.readers
        begin = info.id * share
        streams = Streams(streams=StreamRange(self.streams.total, self.streams.first + begin, share), **self.arguments)
        streams.restore({name: values[begin : begin + share] for name, values in self.place.items()})
        while True:
            try:
                characters, inputs, targets, starts = streams.next(self.steps)
            except ElmoError as error:  # raised here, it would arrive with a traceback in its message
                yield error
                return
            small = Window(characters.astype(np.int16), inputs.astype(np.int32), targets.astype(np.int32), starts)
            yield _Part(small, streams.state())


class ReadAhead:
    """Reads what `Streams` reads, in several processes.

    A word that several processes read in a batch is in it several times. So the numbers of rows differ from those of
    `Streams`; what they mean is the same.

    corpus, vocabulary, max_characters, streams, block, seed: as of `Streams`.
    readers: number of processes, a divisor of the number of streams.
    steps: positions of each stream in a batch.

    Raises SettingsError if the streams can't be divided.
    """

    def __init__(
        self,
        corpus: PreparedCorpus,
        vocabulary: Vocabulary,
        max_characters: int,
        streams: StreamRange,
        block: int,
        seed: int,
        readers: int,
        steps: int,
    ) -> None:
        if streams.n % readers:
            raise SettingsError(Errors.READERS.format(got=readers, streams=streams.n))
        self._arguments: dict[str, Any] = {
            "corpus": corpus,
            "vocabulary": vocabulary,
            "max_characters": max_characters,
            "block": block,
            "seed": seed,
        }
        self._streams, self.readers, self.steps = streams, readers, steps
        self._in_place = Streams(streams=streams, **self._arguments)  # which checks a place that is restored
        self._place: Place = self._in_place.state()
        self._parts: Iterator[_Part | ElmoError] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._coming: Future[tuple[Window, Place] | ElmoError] | None = None

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return how far each stream has been used, as `Streams.state` does. What was read ahead does not count."""
        return {name: values.copy() for name, values in self._place.items()}

    def restore(self, state: dict[str, npt.NDArray[np.int64]]) -> None:
        """Continue from a saved state, as `Streams.restore` does. Raises CheckpointError if there is no such place."""
        self._in_place.restore(state)
        self.close()
        self._place = self._in_place.state()

    def next(self, steps: int) -> Window:
        """Return the next batch.

        steps: those that this object was made for.

        Raises CorpusError as `Streams.next` does, and ProcessError if one of the processes was killed.
        """
        assert steps == self.steps
        if self._thread is None or self._coming is None:
            parts = _Parts(self._arguments, self._streams, self.readers, self.steps, self._place)
            loader = DataLoader(
                parts,
                batch_size=None,
                num_workers=self.readers,
                collate_fn=_unchanged,
                prefetch_factor=_AHEAD,
                worker_init_fn=_own_signals,
                generator=torch.Generator(),  # of its own: torch's is not to be changed
            )
            thread = ThreadPoolExecutor(1)
            # Not in the main thread: there torch would raise in any line once a process is killed.
            self._parts = thread.submit(iter, loader).result()
            self._thread = thread
            self._coming = thread.submit(self._assemble)
        coming = self._coming.result()
        if isinstance(coming, ElmoError):  # raised here, it holds no frame that would keep the processes
            self.close()
            raise coming
        window, self._place = coming
        self._coming = self._thread.submit(self._assemble)
        return window

    def close(self) -> None:
        """End the processes. What they have read ahead is read again by the next call of `next`."""
        if self._thread is not None:
            self._thread.shutdown()
        self._parts = self._thread = self._coming = None

    def _assemble(self) -> tuple[Window, Place] | ElmoError:
        assert self._parts is not None
        parts: list[_Part] = []
        for _ in range(self.readers):
            try:
                part = next(self._parts)
            except RuntimeError as error:
                reason = str(error)
                if "exited unexpectedly" not in reason and "is killed by signal" not in reason:
                    raise
                return ProcessError(Errors.READER_DIED.format(reason=reason, readers=self.readers))
            if isinstance(part, ElmoError):
                return part
            parts.append(part)
        windows = [part.window for part in parts]
        first = np.cumsum([0, *(len(window.characters) for window in windows[:-1])], dtype=np.int32)
        window = Window(
            np.concatenate([window.characters for window in windows]),
            np.concatenate([window.inputs + begin for window, begin in zip(windows, first)], 2),
            np.concatenate([window.targets for window in windows], 2),
            np.concatenate([window.starts for window in windows], 1),
        )
        return window, {name: np.concatenate([part.place[name] for part in parts]) for name in self._place}


def _own_signals(number: int) -> None:
    """Let a process outlive signals to its group, after which the process that trains still makes its update.

    number: of the process.
    """
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def end_later(*_: object) -> None:
        timer = threading.Timer(_GRACE, os._exit, [0])
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGTERM, end_later)


def _unchanged(part: Any) -> Any:
    return part
