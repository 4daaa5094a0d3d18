"""Streams of sentences in windows of a fixed number of steps, both directions side by side."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .corpus import END, START, Sentences

NO_TARGET = -1


class Window(NamedTuple):
    """inputs, targets: *Shape:* (2, steps, streams), word ids, each direction in its own reading order; target
    NO_TARGET where a stream has ended. starts: *Shape:* (steps, streams), true where a sentence begins.
    """

    inputs: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.bool_]


def reading(sentence: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """*Shape:* (4, tokens + 1): forward inputs and targets, backward inputs and targets.

    Forward reads `<S> w1 .. wN` and predicts `w1 .. wN </S>`; backward reads `</S> wN .. w1` and predicts
    `wN .. w1 <S>`.
    """
    rows = np.empty((4, len(sentence) + 1), np.int32)
    rows[0, 0], rows[0, 1:] = START, sentence
    rows[1, :-1], rows[1, -1] = sentence, END
    rows[2, 0], rows[2, 1:] = END, sentence[::-1]
    rows[3, :-1], rows[3, -1] = sentence[::-1], START
    return rows


class Streams:
    """Splits the sentences evenly among streams; each reads its part from beginning to end, sentence after sentence.

    seed: sentences are shuffled anew for every epoch, and streams never end; None: in order, and only once.
    """

    def __init__(self, sentences: Sentences, n_streams: int, seed: int | None) -> None:
        self.sentences, self.seed = sentences, seed
        self.bounds = np.linspace(0, sentences.n_sentences, n_streams + 1).astype(np.int64)
        self.epoch = np.zeros(n_streams, np.int64)
        self.next_sentence = self.bounds[:-1].copy()
        self.offset = np.zeros(n_streams, np.int64)  # positions of the current sentence that were read already
        self._orders: dict[int, npt.NDArray[np.int64]] = {}

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """Where every stream stands; with the seed and the sentences, all that a resumed run needs."""
        return {"epoch": self.epoch.copy(), "next_sentence": self.next_sentence.copy(), "offset": self.offset.copy()}

    def restore(self, state: dict[str, npt.NDArray[np.int64]]) -> None:
        """Go to where state() was taken."""
        self.epoch, self.next_sentence, self.offset = (
            state[name].copy() for name in ("epoch", "next_sentence", "offset")
        )

    def next(self, steps: int) -> Window | None:
        """The next window, or None when every stream has ended."""
        n_streams = len(self.epoch)
        rows = np.zeros((4, steps, n_streams), np.int64)
        rows[[1, 3]] = NO_TARGET
        starts = np.zeros((steps, n_streams), np.bool_)
        for stream in range(n_streams):
            self._fill(stream, rows[:, :, stream], starts[:, stream])
        if (rows[1] == NO_TARGET).all():
            return None
        return Window(rows[[0, 2]], rows[[1, 3]], starts)

    def _fill(self, stream: int, rows: npt.NDArray[np.int64], starts: npt.NDArray[np.bool_]) -> None:
        filled, steps = 0, rows.shape[1]
        while filled < steps:
            sentence = self._current(stream)
            if sentence is None:
                return
            offset = self.offset[stream]
            part = reading(sentence)[:, offset : offset + steps - filled]
            rows[:, filled : filled + part.shape[1]] = part
            starts[filled] = offset == 0
            filled += part.shape[1]
            if offset + part.shape[1] == len(sentence) + 1:
                self.next_sentence[stream] += 1
                self.offset[stream] = 0
            else:
                self.offset[stream] += part.shape[1]

    def _current(self, stream: int) -> npt.NDArray[np.int32] | None:
        if self.next_sentence[stream] == self.bounds[stream + 1]:
            if self.seed is None or self.bounds[stream] == self.bounds[stream + 1]:
                return None
            self.epoch[stream] += 1
            self.next_sentence[stream] = self.bounds[stream]
        number = int(self.next_sentence[stream])
        if self.seed is not None:
            number = int(self._order(int(self.epoch[stream]))[number])
        return self.sentences.sentence(number)

    def _order(self, epoch: int) -> npt.NDArray[np.int64]:
        if epoch not in self._orders:
            oldest = int(self.epoch.min())
            self._orders = {e: order for e, order in self._orders.items() if e >= oldest}
            rng = np.random.default_rng([0 if self.seed is None else self.seed, epoch])
            self._orders[epoch] = rng.permutation(self.sentences.n_sentences)
        return self._orders[epoch]
