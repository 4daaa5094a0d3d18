"""Words to numbers while a text is read, in bounded memory."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...formats.characters import boundary_ids, words_to_ids

Ids = npt.NDArray[np.int32]
MOST_WORDS = 1 << 18  # 26 MB of characters at 50 a word


class WordTable:
    """Numbers distinct words as they come, and keeps their characters: 0 is `<S>`, 1 is `</S>`.

    max_characters: positions of a word.
    """

    def __init__(self, max_characters: int, most: int = MOST_WORDS) -> None:
        self.max_characters, self.most = max_characters, most
        self.clear()

    def clear(self) -> None:
        """Forget all words; numbers given before are no longer right."""
        self._numbers: dict[str, int] = {}
        self._characters = np.empty((1024, self.max_characters), np.int16)
        self._characters[:2] = boundary_ids(self.max_characters)
        self._n = 2

    @property
    def full(self) -> bool:
        """Whether it is time to clear it."""
        return self._n >= self.most

    def numbers(self, words: Sequence[str]) -> Ids:
        """*Shape:* (words,)."""
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
        """*Shape:* (words, max_characters) of these numbers."""
        return self._characters[numbers].astype(np.int64)
