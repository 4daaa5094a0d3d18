"""Batches for truncated back-propagation: streams of sentences, cut into windows of a fixed number of steps.

Both directions read the same sentences at the same time.
"""

import multiprocessing
import multiprocessing.util
import os
import signal
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import CheckpointError, ElmoError, ProcessError
from ..formats.characters import boundary_ids, words_to_ids
from .prepared import PreparedCorpus
from .vocabulary import END, START, Vocabulary

Ids = npt.NDArray[np.int32]
Order = npt.NDArray[np.int64]
Place = Mapping[str, npt.NDArray[np.int64]]  # how far each stream has read, by these names
_PLACE = ("epoch", "position", "offset")
CAPACITY = 1 << 18  # words: 26 MB of character ids at 50 per word


class BlockShuffle:
    """Shuffles n sentences inside blocks of a size, and the blocks among themselves, differently in each epoch."""

    def __init__(self, n: int, block: int, seed: int, n_cached: int) -> None:
        self.n, self.block, self.seed = n, block, seed
        self._blocks = lru_cache(maxsize=4)(self._shuffled_blocks)  # streams are at most a few epochs apart
        self._inside = lru_cache(maxsize=n_cached)(self._shuffled_inside)

    def number(self, epoch: int, position: int) -> int:
        """Return the number of the sentence that is read at a position (0 to n - 1) of an epoch (from 0)."""
        blocks, starts = self._blocks(epoch)
        rank = bisect_right(starts, position) - 1
        block = blocks[rank]
        return block * self.block + int(self._inside(epoch, block)[position - starts[rank]])

    def _shuffled_blocks(self, epoch: int) -> tuple[list[int], list[int]]:
        """The blocks in the order of an epoch, and the position at which each starts."""
        blocks = np.random.default_rng([self.seed, epoch]).permutation(-(-self.n // self.block))
        sizes = np.minimum(self.block, self.n - blocks * self.block)
        return blocks.tolist(), [0, *np.cumsum(sizes)[:-1].tolist()]

    def _shuffled_inside(self, epoch: int, block: int) -> Order:
        size = min(self.block, self.n - block * self.block)
        return np.random.default_rng([self.seed, epoch, block]).permutation(size)


class WordTable:
    """Numbers words in the order in which they come, `<S>` 0 and `</S>` 1, and stores their ids.

    characters, targets: ids of characters and of the vocabulary, by the words' numbers. The targets of `<S>` and
        `</S>` are not used.
    """

    def __init__(self, vocabulary: Vocabulary, max_characters: int) -> None:
        self.vocabulary, self.max_characters, self.capacity = vocabulary, max_characters, CAPACITY
        self.clear()

    def clear(self) -> None:
        """Forget all words. Numbers returned earlier become invalid."""
        self._numbers: dict[str, int] = {}
        self.characters = np.empty((1024, self.max_characters), np.int16)
        self.characters[:2] = boundary_ids(self.max_characters)
        self.targets = np.zeros(1024, np.int32)

    @property
    def full(self) -> bool:
        return len(self._numbers) + 2 >= self.capacity

    def numbers(self, words: Sequence[str]) -> Ids:
        """Return the number of each word, *Shape:* (words,), also of words that are new."""
        try:
            return np.array([self._numbers[word] for word in words], np.int32)
        except KeyError:
            self._add([word for word in dict.fromkeys(words) if word not in self._numbers])
            return self.numbers(words)

    def _add(self, new: Sequence[str]) -> None:
        start, stop = len(self._numbers) + 2, len(self._numbers) + 2 + len(new)
        if stop > len(self.targets):
            n_more = max(stop, 2 * start) - len(self.targets)
            self.characters = np.pad(self.characters, ((0, n_more), (0, 0)))
            self.targets = np.pad(self.targets, (0, n_more))
        self.characters[start:stop] = words_to_ids(new, self.max_characters)
        self.targets[start:stop] = self.vocabulary.ids(new)
        self._numbers.update(zip(new, range(start, stop)))


class Window(NamedTuple):
    """One batch: the next steps of all streams, forward and backward, each in its own reading order.

    characters: *Shape:* (distinct words, max_characters), character ids.
    inputs: *Shape:* (2, steps, streams), the words that are read, as rows of `characters`.
    targets: *Shape:* (2, steps, streams), the words to predict, as ids of the vocabulary.
    starts: *Shape:* (steps, streams), true at the first step of each sentence, for both directions.
    """

    characters: npt.NDArray[np.int64]
    inputs: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.bool_]


class StreamRange(NamedTuple):
    """The streams that one process reads: n of the total number of all processes, from number `first` on."""

    total: int
    first: int
    n: int


def reading_order(words: Ids, targets: Ids) -> Ids:
    """Return what each direction of a sentence reads and predicts, *Shape:* (4, words + 1).

    Forward reads `<S> w1 .. wN` and predicts `w1 .. wN </S>`; backward reads `</S> wN .. w1` and predicts
    `wN .. w1 <S>`. words: their numbers in a `WordTable`; targets: their ids in the vocabulary.
    """
    rows = np.empty((4, len(words) + 1), np.int32)
    rows[0, 0], rows[0, 1:] = START, words
    rows[1, :-1], rows[1, -1] = targets, END
    rows[2, 0], rows[2, 1:] = END, words[::-1]
    rows[3, :-1], rows[3, -1] = targets[::-1], START
    return rows


class Streams:
    """Divides a corpus evenly among streams, each of which reads its part sentence by sentence, epoch after epoch."""

    def __init__(
        self,
        corpus: PreparedCorpus,
        vocabulary: Vocabulary,
        max_characters: int,
        streams: StreamRange,
        block: int,
        seed: int,
    ) -> None:
        self.corpus = corpus
        self.count = streams.n
        bounds = np.linspace(0, len(corpus), streams.total + 1).astype(np.int64)
        self.bounds = bounds[streams.first : streams.first + self.count + 1]
        self.order = BlockShuffle(len(corpus), block, seed, n_cached=2 * self.count)
        self.table = WordTable(vocabulary, max_characters)
        self.epoch = np.zeros(self.count, np.int64)
        self.position = self.bounds[:-1].copy()  # of the sentence in the epoch's order
        self.offset = np.zeros(self.count, np.int64)  # steps of the current sentence that were read already
        self._rows: list[Ids | None] = [None] * self.count

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return how far each stream has read: "epoch", "position" and "offset", each of *Shape:* (streams,)."""
        return {name: getattr(self, name).copy() for name in _PLACE}

    def restore(self, state: Place) -> None:
        """Continue from what `state` returned. Raises CheckpointError, changing nothing, if there is no such place."""
        epoch, position, offset = (state[name].copy() for name in _PLACE)
        inside = (epoch >= 0) & (position >= self.bounds[:-1]) & (position < self.bounds[1:]) & (offset >= 0)
        for stream in np.flatnonzero(inside).tolist():
            sentence = self.order.number(int(epoch[stream]), int(position[stream]))
            inside[stream] = offset[stream] <= self.corpus.lengths[sentence]  # of its words + 1 steps the last is left
        if not inside.all():
            wrong = int(np.argmin(inside))
            place = f"epoch {epoch[wrong]}, sentence {position[wrong]}, word {offset[wrong]}"
            raise CheckpointError(
                f"a checkpoint has the stream {wrong} at {place}, but this run's text has nothing there. The "
                "checkpoint is not of this run: delete it, and the one before it is used, or start a new run in "
                "another output folder."
            )
        self.epoch, self.position, self.offset = epoch, position, offset
        self._rows = [None] * self.count

    def next(self, steps: int) -> Window:
        """Return the next batch, with this many steps of each stream."""
        if self.table.full:
            self.table.clear()
            self._rows = [None] * self.count
        read, starts = np.empty((self.count, 4, steps), np.int32), np.zeros((steps, self.count), np.bool_)
        for stream in range(self.count):
            for step in self._fill(stream, read[stream]):
                starts[step, stream] = True
        rows = read.transpose(1, 2, 0).astype(np.int64, "C")
        words, first, inputs = np.unique(rows[[0, 2]], return_index=True, return_inverse=True)
        # The distinct words are in the order of their first occurrence in the batch. Their numbers in the table depend
        # on earlier batches, and another order of rows would change the last bits of the results.
        order = np.argsort(first)
        row_of_input = np.argsort(order)[inputs].reshape(2, steps, -1)
        return Window(self.table.characters[words[order]].astype(np.int64), row_of_input, rows[[1, 3]], starts)

    def close(self) -> None:
        """Do nothing; `ReadAhead` has processes."""

    def _fill(self, stream: int, rows: Ids) -> list[int]:
        """Write a stream's next steps, *Shape:* (4, steps), and return those at which a sentence starts."""
        filled, steps, starts = 0, rows.shape[1], []
        sentence, offset = self._rows[stream], int(self.offset[stream])
        while filled < steps:
            if sentence is None:
                sentence = self._sentence(int(self.epoch[stream]), int(self.position[stream]))
            if offset == 0:
                starts.append(filled)
            n = min(sentence.shape[1] - offset, steps - filled)
            rows[:, filled : filled + n] = sentence[:, offset : offset + n]
            filled, offset = filled + n, offset + n
            if offset == sentence.shape[1]:
                sentence, offset = None, 0
                self.position[stream] += 1
                if self.position[stream] == self.bounds[stream + 1]:
                    self.position[stream] = self.bounds[stream]
                    self.epoch[stream] += 1
        self._rows[stream], self.offset[stream] = sentence, offset
        return starts

    def _sentence(self, epoch: int, position: int) -> Ids:
        words = self.corpus.sentence(self.order.number(epoch, position))
        numbers = self.table.numbers(words)
        return reading_order(numbers, self.table.targets[numbers])


_AHEAD = 4  # batches that are ready before they are needed


class ReadAhead(Streams):
    """Reads the same, for batches of `steps`, in several processes that divide the streams equally.

    A word that several processes read is several times in the characters of a batch. What was read ahead does not count
    in `state`.
    """

    def __init__(self, readers: int, steps: int, *given: Any) -> None:
        super().__init__(*given)
        self.given, self.readers, self.steps = given, readers, steps
        self._processes: list[tuple[BaseProcess, Connection]] = []
        self._thread: ThreadPoolExecutor | None = None
        self._coming: deque[Future[tuple[Window, Place]]] = deque()
        # at the end of the program: it would wait for readers that wait for it
        self._at_exit = multiprocessing.util.Finalize(self, _end, (self._processes,), exitpriority=0)

    def restore(self, state: Place) -> None:
        super().restore(state)
        self.close()

    def next(self, steps: int) -> Window:
        """Return the next batch, of the steps that this object was made for. Raises ElmoError."""
        if self._thread is None:
            self._start()
            self._thread = ThreadPoolExecutor(1)
        while len(self._coming) <= _AHEAD:
            self._coming.append(self._thread.submit(self._assemble))
        try:
            window, place = self._coming.popleft().result()
        except ElmoError:
            self.close()
            raise
        self.epoch, self.position, self.offset = (place[name] for name in _PLACE)
        return window

    def close(self) -> None:
        """End the processes; `next` starts them again."""
        _end(self._processes)
        if self._thread is not None:
            self._thread.shutdown()  # what it waits for has come to its end
        self._coming.clear()
        self._thread = None

    def _start(self) -> None:
        *text, streams, block, seed = self.given
        context, share = multiprocessing.get_context(), streams.n // self.readers
        pipes: list[Connection] = []
        for begin in range(0, streams.n, share):
            part = StreamRange(streams.total, streams.first + begin, share)
            place = {name: values[begin : begin + share] for name, values in self.state().items()}
            receiving, sending = context.Pipe(duplex=False)
            pipes.append(receiving)
            arguments = (sending, pipes, (*text, part, block, seed), place, self.steps)
            process = context.Process(target=_read, args=arguments, daemon=True)
            process.start()
            sending.close()  # the reader has the only one, so its death ends the pipe
            self._processes.append((process, receiving))

    def _assemble(self) -> tuple[Window, Place]:
        windows: list[Window] = []
        places: list[Place] = []
        for process, pipe in self._processes:
            try:
                part = pipe.recv()
            except (EOFError, OSError) as error:
                process.join(1)
                raise ProcessError(
                    f"a process that reads the text has ended (exit code {process.exitcode}). If it was killed "
                    f"for want of memory (-9), set training.readers, which is {self.readers}, lower. If the files "
                    "of the run's corpus were changed (-7), start a new run. Otherwise the same command, without "
                    "--restart, goes on from the last checkpoint."
                ) from error
            if isinstance(part, ElmoError):
                raise part
            windows.append(part[0])
            places.append(part[1])
        first = np.cumsum([0, *(len(window.characters) for window in windows[:-1])], dtype=np.int32)
        window = Window(
            np.concatenate([window.characters for window in windows]),
            np.concatenate([window.inputs + begin for window, begin in zip(windows, first)], 2),
            np.concatenate([window.targets for window in windows], 2),
            np.concatenate([window.starts for window in windows], 1),
        )
        return window, {name: np.concatenate([place[name] for place in places]) for name in _PLACE}


def _read(
    sending: Connection, receiving: Sequence[Connection], arguments: tuple[Any, ...], place: Place, steps: int
) -> None:
    """Send parts of windows and how far their streams have read, for ever, or up to an ElmoError, which is sent too.

    receiving: the other ends of this pipe and of those of earlier readers, which this process has inherited.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # to the whole group: the process that trains ends the readers itself
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    for pipe in receiving:  # so that only the process that trains keeps the pipe open
        pipe.close()
    try:
        streams = Streams(*arguments)
        streams.restore(place)
        while True:
            try:
                characters, inputs, targets, starts = streams.next(steps)
            except ElmoError as error:
                sending.send(error)
                return
            small = Window(characters.astype(np.int16), inputs.astype(np.int32), targets.astype(np.int32), starts)
            sending.send((small, streams.state()))
    except OSError:  # nothing reads the pipe any more
        os._exit(0)


def _end(processes: list[tuple[BaseProcess, Connection]]) -> None:
    for process, _ in processes:
        process.kill()
    for process, pipe in processes:
        process.join()
        pipe.close()
    processes.clear()
