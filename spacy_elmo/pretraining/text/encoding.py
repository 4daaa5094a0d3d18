"""A table of words and their character ids, filled while a text is read, in bounded memory."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...formats.characters import boundary_ids, words_to_ids

Ids = npt.NDArray[np.int32]
CAPACITY = 1 << 18  # words: 26 MB of character ids at 50 per word


class WordTable:
    """Numbers distinct words in the order in which they come, and stores their character ids.

    Number 0 is `<S>` and number 1 is `</S>`. The table grows until `full` is true. It never clears itself, since that
    would invalidate numbers in use: its owner calls `clear`.

    max_characters: character ids of a word.
    capacity: words at which the table is full.
    """

    def __init__(self, max_characters: int, capacity: int = CAPACITY) -> None:
        self.max_characters, self.capacity = max_characters, capacity
        self.clear()

    def clear(self) -> None:
        """Forget all words. Numbers returned earlier become invalid."""
        self._numbers: dict[str, int] = {}
        self._characters = np.empty((1024, self.max_characters), np.int16)
        self._characters[:2] = boundary_ids(self.max_characters)
        self._n = 2

    @property
    def full(self) -> bool:
        """Whether the capacity is reached, so that the table should be cleared."""
        return self._n >= self.capacity

    def numbers(self, words: Sequence[str]) -> Ids:
        """Return the number of each word, *Shape:* (words,). New words are added to the table."""
        known = self._numbers
        new = list(dict.fromkeys(word for word in words if word not in known))
        if new:
            self._add(new)
        return np.array([known[word] for word in words], np.int32)

    def _add(self, words: list[str]) -> None:
        stop = self._n + len(words)
        if stop > len(self._characters):
            grown = np.empty((max(stop, 2 * len(self._characters)), self.max_characters), np.int16)
            grown[: self._n] = self._characters[: self._n]
            self._characters = grown
        self._characters[self._n : stop] = words_to_ids(words, self.max_characters)
        self._numbers.update(zip(words, range(self._n, stop)))
        self._n = stop

    def characters(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the character ids of words.

        numbers: *Shape:* (words,), as `numbers` returned them.

        Returns *Shape:* (words, max_characters).
        """
        return self._characters[numbers].astype(np.int64)
