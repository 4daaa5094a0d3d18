"""A counter of words that are too long for a biLM, with one warning."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any

from ..errors import Errors, TruncatedWordsWarning, shown


class TruncatedWords:
    """Counts words that have more bytes than the biLM reads, and warns at the first one. Thread-safe.

    A pickled or copied counter starts again at 0. If warnings are errors, the first words raise and are not counted.

    where: the attribute that holds the count, as the warning names it.

    The attribute `n` is the number of words counted so far.
    """

    def __init__(self, where: str) -> None:
        self.where, self.n = where, 0
        self._lock = threading.RLock()

    def count(self, words: Sequence[str], max_characters: int) -> None:
        """Count the words with more than `max_characters` - 2 bytes of UTF-8.

        words: any strings; each occurrence counts.
        max_characters: positions per word of the biLM.

        Warns (TruncatedWordsWarning) at the first such word of this counter.
        """
        limit = max_characters - 2
        # A character has at most 4 bytes of UTF-8, so most words need no encoding.
        long = [w for w in words if len(w) * 4 > limit and len(w.encode("utf8", "ignore")) > limit]
        if not long:
            return
        with self._lock:
            if not self.n:
                got = len(long[0].encode("utf8", "ignore"))
                message = Errors.TRUNCATED.format(word=shown(long[0]), got=got, limit=limit, where=self.where)
                # The empty registry: else Python would drop a warning that another counter gave in the same words.
                # Line 0 has no text; Python would print that of another line.
                warnings.warn_explicit(message, TruncatedWordsWarning, __file__, 0, registry={})
            self.n += len(long)

    def __getstate__(self) -> dict[str, Any]:
        return {"where": self.where}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.where, self.n, self._lock = state["where"], 0, threading.RLock()
