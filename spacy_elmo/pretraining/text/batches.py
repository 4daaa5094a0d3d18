"""Streams of sentences in windows of a fixed number of steps, both directions side by side."""

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
    """inputs, targets: *Shape:* (2, steps, streams), each direction in its own reading order: numbers of the distinct
    words, whose characters are (words, characters), and of the vocabulary. starts: (steps, streams), true where a
    sentence begins.
    """

    characters: npt.NDArray[np.int64]
    inputs: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.bool_]


def reading(words: Ids, targets: Ids) -> Ids:
    """*Shape:* (4, words + 1): forward inputs and targets, backward inputs and targets.

    Forward reads `<S> w1 .. wN` and predicts `w1 .. wN </S>`; backward reads `</S> wN .. w1` and predicts
    `wN .. w1 <S>`.
    """
    rows = np.empty((4, len(words) + 1), np.int32)
    rows[0, 0], rows[0, 1:] = START, words
    rows[1, :-1], rows[1, -1] = targets, END
    rows[2, 0], rows[2, 1:] = END, words[::-1]
    rows[3, :-1], rows[3, -1] = targets[::-1], START
    return rows


class Streams:
    """Splits each epoch's sentences evenly among streams; each reads its part sentence after sentence, without end.

    first, count: the streams of this process, of n_streams. block, seed: of the shuffling.
    """

    def __init__(
        self,
        corpus: PreparedCorpus,
        vocabulary: Vocabulary,
        max_characters: int,
        n_streams: int,
        block: int,
        seed: int,
        first: int = 0,
        count: int | None = None,
    ) -> None:
        self.corpus, self.vocabulary = corpus, vocabulary
        self.count = n_streams - first if count is None else count
        bounds = np.linspace(0, len(corpus), n_streams + 1).astype(np.int64)
        self.bounds = bounds[first : first + self.count + 1]
        self.order = BlockShuffle(len(corpus), block, seed, kept=2 * self.count)
        self.table = WordTable(max_characters)
        self.epoch = np.zeros(self.count, np.int64)
        self.position = self.bounds[:-1].copy()
        self.offset = np.zeros(self.count, np.int64)  # of the current sentence, what was read already
        self._rows: list[Ids | None] = [None] * self.count

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """Where each stream stands, *Shape:* (streams,); with corpus and seed all that a resumed run needs."""
        return {"epoch": self.epoch.copy(), "position": self.position.copy(), "offset": self.offset.copy()}

    def restore(self, state: dict[str, npt.NDArray[np.int64]]) -> None:
        """Go to where state() was taken. Raises CheckpointError for a place that these streams do not have."""
        epoch, position, offset = (state[name].copy() for name in ("epoch", "position", "offset"))
        inside = (epoch >= 0) & (position >= self.bounds[:-1]) & (position < self.bounds[1:]) & (offset >= 0)
        for stream in np.flatnonzero(inside).tolist():
            sentence = self.order.number(int(epoch[stream]), int(position[stream]))
            inside[stream] = offset[stream] <= self.corpus.lengths[sentence]  # a boundary and its words are read
        if not inside.all():
            wrong = int(np.argmin(inside))
            place = f"epoch {epoch[wrong]}, sentence {position[wrong]}, word {offset[wrong]}"
            raise CheckpointError(Errors.CHECKPOINT_PLACE.format(stream=wrong, place=place))
        self.epoch, self.position, self.offset = epoch, position, offset
        self._rows = [None] * self.count

    def next(self, steps: int) -> Window:
        """The next window of all streams."""
        if self.table.full:
            self.table.clear()
            self._rows = [None] * self.count
        rows = np.empty((4, steps, self.count), np.int64)
        starts = np.zeros((steps, self.count), np.bool_)
        for stream in range(self.count):
            self._fill(stream, rows[:, :, stream], starts[:, stream])
        words, first, inputs = np.unique(rows[[0, 2]], return_index=True, return_inverse=True)
        # by first occurrence: numbers depend on what was read before, and other orders give other last bits
        order = np.argsort(first)
        place = np.argsort(order)[inputs].reshape(2, steps, -1)
        return Window(self.table.characters(words[order]), place, rows[[1, 3]], starts)

    def _fill(self, stream: int, rows: npt.NDArray[np.int64], starts: npt.NDArray[np.bool_]) -> None:
        filled, steps = 0, rows.shape[1]
        while filled < steps:
            sentence, offset = self._current(stream), int(self.offset[stream])
            part = sentence[:, offset : offset + steps - filled]
            rows[:, filled : filled + part.shape[1]] = part
            starts[filled] |= offset == 0
            filled += part.shape[1]
            self.offset[stream] = offset + part.shape[1]
            if self.offset[stream] >= sentence.shape[1]:  # never beyond, but that would not end
                self._advance(stream)

    def _current(self, stream: int) -> Ids:
        rows = self._rows[stream]
        if rows is None:
            words = self.corpus.sentence(self.order.number(int(self.epoch[stream]), int(self.position[stream])))
            rows = self._rows[stream] = reading(self.table.numbers(words), self.vocabulary.ids(words))
        return rows

    def _advance(self, stream: int) -> None:
        self._rows[stream], self.offset[stream] = None, 0
        self.position[stream] += 1
        if self.position[stream] == self.bounds[stream + 1]:
            self.position[stream] = self.bounds[stream]
            self.epoch[stream] += 1
