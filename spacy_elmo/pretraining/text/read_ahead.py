"""Batches that processes of their own read ahead of the updates, for a GPU that would wait for them.

Each reader sends its batches through a pipe of its own. So the death of any process is seen at once by those it talks
to, even in the middle of a message. With torch's DataLoader, whose processes share a queue, the others could wait for
ever.
"""

import multiprocessing
import multiprocessing.util
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import ElmoError, Errors, ProcessError, SettingsError
from .batches import StreamRange, Streams, Window
from .prepared import PreparedCorpus
from .vocabulary import Vocabulary

Place = Mapping[str, npt.NDArray[np.int64]]
_AHEAD = 4  # batches that are ready before they are needed
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class _Part(NamedTuple):
    """The next steps of some of the streams.

    window: as `Streams.next` returns it, but in smaller types, because it is sent to another process.
    place: how far these streams have read.
    """

    window: Window
    place: Place


class _Reader(NamedTuple):
    """A process that reads some of the streams.

    process: it ends when nothing reads the pipe any more.
    pipe: where its parts come from.
    """

    process: BaseProcess
    pipe: Connection


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
        check_readers(readers, streams.n)
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
        self._processes: list[_Reader] = []
        self._thread: ThreadPoolExecutor | None = None
        self._coming: deque[Future[tuple[Window, Place] | ElmoError]] = deque()
        # at the end of the program: it would wait for readers that wait for it
        self._at_exit = multiprocessing.util.Finalize(self, _end, (self._processes,), exitpriority=0)

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
        if self._thread is None:
            self._start()
            self._thread = ThreadPoolExecutor(1)
        while len(self._coming) <= _AHEAD:
            self._coming.append(self._thread.submit(self._assemble))
        coming = self._coming.popleft().result()
        if isinstance(coming, ElmoError):
            self.close()
            raise coming
        window, self._place = coming
        return window

    def close(self) -> None:
        """End the processes. What they have read ahead is read again by the next call of `next`."""
        _end(self._processes)
        if self._thread is not None:
            self._thread.shutdown()  # what it waits for has come to its end
        self._coming.clear()
        self._thread = None

    def _start(self) -> None:
        context, share = multiprocessing.get_context(), self._streams.n // self.readers
        pipes: list[Connection] = []
        for number in range(self.readers):
            begin = number * share
            streams = StreamRange(self._streams.total, self._streams.first + begin, share)
            place = {name: values[begin : begin + share] for name, values in self._place.items()}
            receiving, sending = context.Pipe(duplex=False)
            pipes.append(receiving)
            arguments = (sending, pipes, self._arguments | {"streams": streams}, place, self.steps)
            process = context.Process(target=_read, args=arguments, daemon=True)
            process.start()
            sending.close()  # the reader has the only one, so its death ends the pipe
            self._processes.append(_Reader(process, receiving))

    def _assemble(self) -> tuple[Window, Place] | ElmoError:
        parts: list[_Part] = []
        for process, pipe in self._processes:
            try:
                part = pipe.recv()
            except (EOFError, OSError):
                process.join(1)
                return ProcessError(Errors.READER_DIED.format(code=process.exitcode, readers=self.readers))
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


def check_readers(readers: int, streams: int) -> None:
    """Raise SettingsError if streams can't be divided among readers.

    readers: number of processes; 0: none.
    streams: of the process that trains.
    """
    if readers and streams % readers:
        divisors = [str(number) for number in range(1, min(streams, 256) + 1) if streams % number == 0]
        raise SettingsError(Errors.READERS.format(got=readers, streams=streams, divisors=", ".join(divisors)))


def _read(
    sending: Connection, receiving: Sequence[Connection], arguments: Mapping[str, Any], place: Place, steps: int
) -> None:
    """Send the parts of some streams for ever; an ElmoError is sent, too, as the last.

    sending: where they are sent to.
    receiving: the other ends of this pipe and of those of earlier readers, which this process has inherited.
    arguments: of `Streams`.
    place: where the streams begin.
    steps: positions of each stream in a batch.
    """
    for name in _SIGNALS:  # to the whole group: the process that trains ends the readers after its update
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    for pipe in receiving:  # so that only the process that trains keeps the pipe open
        pipe.close()
    try:
        streams = Streams(**arguments)
        streams.restore(dict(place))
        while True:
            try:
                characters, inputs, targets, starts = streams.next(steps)
            except ElmoError as error:
                sending.send(error)
                return
            small = Window(characters.astype(np.int16), inputs.astype(np.int32), targets.astype(np.int32), starts)
            sending.send(_Part(small, streams.state()))
    except OSError:  # nothing reads the pipe any more
        os._exit(0)


def _end(processes: list[_Reader]) -> None:
    """Kill processes, wait for them, and empty the list."""
    for process, _ in processes:
        process.kill()
    for process, pipe in processes:
        process.join()
        pipe.close()
    processes.clear()
