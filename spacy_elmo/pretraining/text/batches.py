"""Batches for truncated back-propagation: streams of sentences, cut into windows of a fixed number of steps.

Both directions read the same sentences at the same time.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError, Errors
from .encoding import WordTable
from .prepared import PreparedCorpus
from .shuffling import BlockShuffle
from .vocabulary import Vocabulary
from .vocabulary_file import END, START

Ids = npt.NDArray[np.int32]


class Window(NamedTuple):
    """One batch: the next steps of all streams.

    The first axis of `inputs` and `targets` is the direction, forward then backward. Each direction is in its own
    reading order.

    characters: *Shape:* (distinct words, max_characters), character ids of the distinct words of the batch.
    inputs: *Shape:* (2, steps, streams), the words that are read, as rows of `characters`.
    targets: *Shape:* (2, steps, streams), the words to predict, as ids of the vocabulary.
    starts: *Shape:* (steps, streams), true at the first step of each sentence, for both directions.
    """

    characters: npt.NDArray[np.int64]
    inputs: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.bool_]


class StreamRange(NamedTuple):
    """The streams that one process reads.

    total: number of streams of all processes.
    first: number of this process's first stream, from 0.
    n: number of this process's streams.
    """

    total: int
    first: int
    n: int


def reading_order(words: Ids, targets: Ids) -> Ids:
    """Return a sentence as each direction reads and predicts it.

    Forward reads `<S> w1 .. wN` and predicts `w1 .. wN </S>`. Backward reads `</S> wN .. w1` and predicts
    `wN .. w1 <S>`.

    words: *Shape:* (words,), numbers of the words that are read (`WordTable`).
    targets: *Shape:* (words,), ids of the same words in the vocabulary.

    Returns *Shape:* (4, words + 1): forward inputs, forward targets, backward inputs, backward targets.
    """
    rows = np.empty((4, len(words) + 1), np.int32)
    rows[0, 0], rows[0, 1:] = START, words
    rows[1, :-1], rows[1, -1] = targets, END
    rows[2, 0], rows[2, 1:] = END, words[::-1]
    rows[3, :-1], rows[3, -1] = targets[::-1], START
    return rows


class Streams:
    """Divides a corpus evenly among streams, each of which reads its part sentence by sentence, epoch after epoch.

    `next` returns the next batch. To resume a run, save what `state` returns and hand it to `restore` of new Streams
    with the same arguments: they return the same batches from there on.

    corpus: the sentences.
    vocabulary: of the targets.
    max_characters: character ids of a word.
    streams: the streams of this process.
    block: sentences of a block; see BlockShuffle.
    seed: of the shuffling.
    """

    def __init__(
        self,
        corpus: PreparedCorpus,
        vocabulary: Vocabulary,
        max_characters: int,
        streams: StreamRange,
        block: int,
        seed: int,
    ) -> None:
        self.corpus, self.vocabulary = corpus, vocabulary
        self.count = streams.n
        bounds = np.linspace(0, len(corpus), streams.total + 1).astype(np.int64)
        self.bounds = bounds[streams.first : streams.first + self.count + 1]
        self.order = BlockShuffle(len(corpus), block, seed, n_cached=2 * self.count)
        self.table = WordTable(max_characters)
        self.epoch = np.zeros(self.count, np.int64)
        self.position = self.bounds[:-1].copy()
        self.offset = np.zeros(self.count, np.int64)  # steps of the current sentence that were read already
        self._rows: list[Ids | None] = [None] * self.count

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return how far each stream has read.

        Returns "epoch", "position" (of the sentence in the epoch's order) and "offset" (steps of that sentence which
        were read), each of *Shape:* (streams,).
        """
        return {"epoch": self.epoch.copy(), "position": self.position.copy(), "offset": self.offset.copy()}

    def restore(self, state: dict[str, npt.NDArray[np.int64]]) -> None:
        """Continue from a saved state.

        state: as `state` returned it.

        Raises CheckpointError if a stream has no such position; then nothing is changed.
        """
        epoch, position, offset = (state[name].copy() for name in ("epoch", "position", "offset"))
        inside = (epoch >= 0) & (position >= self.bounds[:-1]) & (position < self.bounds[1:]) & (offset >= 0)
        for stream in np.flatnonzero(inside).tolist():
            sentence = self.order.number(int(epoch[stream]), int(position[stream]))
            inside[stream] = offset[stream] <= self.corpus.lengths[sentence]  # of its words + 1 steps the last is left
        if not inside.all():
            wrong = int(np.argmin(inside))
            place = f"epoch {epoch[wrong]}, sentence {position[wrong]}, word {offset[wrong]}"
            raise CheckpointError(Errors.CHECKPOINT_PLACE.format(stream=wrong, place=place))
        self.epoch, self.position, self.offset = epoch, position, offset
        self._rows = [None] * self.count

    def next(self, steps: int) -> Window:
        """Return the next batch.

        steps: positions of each stream in the batch, 1 or more.
        """
        if self.table.full:
            self.table.clear()
            self._rows = [None] * self.count
        rows = np.empty((4, steps, self.count), np.int64)
        starts = np.zeros((steps, self.count), np.bool_)
        for stream in range(self.count):
            self._fill(stream, rows[:, :, stream], starts[:, stream])
        words, first, inputs = np.unique(rows[[0, 2]], return_index=True, return_inverse=True)
        # The distinct words are in the order of their first occurrence in the batch. Their numbers in the table depend
        # on earlier batches, and another order of rows would change the last bits of the results.
        order = np.argsort(first)
        row_of_input = np.argsort(order)[inputs].reshape(2, steps, -1)
        return Window(self.table.characters(words[order]), row_of_input, rows[[1, 3]], starts)

    def close(self) -> None:
        """Do nothing: there is nothing to end. `ReadAhead` has processes."""

    def _fill(self, stream: int, rows: npt.NDArray[np.int64], starts: npt.NDArray[np.bool_]) -> None:
        filled, steps = 0, rows.shape[1]
        while filled < steps:
            sentence, offset = self._current(stream), int(self.offset[stream])
            part = sentence[:, offset : offset + steps - filled]
            rows[:, filled : filled + part.shape[1]] = part
            starts[filled] |= offset == 0
            filled += part.shape[1]
            self.offset[stream] = offset + part.shape[1]
            if self.offset[stream] >= sentence.shape[1]:  # it is never greater; if it were, == would loop forever
                self._advance(stream)

    def _current(self, stream: int) -> Ids:
        rows = self._rows[stream]
        if rows is None:
            words = self.corpus.sentence(self.order.number(int(self.epoch[stream]), int(self.position[stream])))
            rows = self._rows[stream] = reading_order(self.table.numbers(words), self.vocabulary.ids(words))
        return rows

    def _advance(self, stream: int) -> None:
        self._rows[stream], self.offset[stream] = None, 0
        self.position[stream] += 1
        if self.position[stream] == self.bounds[stream + 1]:
            self.position[stream] = self.bounds[stream]
            self.epoch[stream] += 1
