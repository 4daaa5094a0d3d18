"""Words that are longer than a biLM reads: counted, and said once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any

from ..errors import Errors, TruncatedWordsWarning, shown


class TruncatedWords:
    """Counts words of which the biLM does not see all bytes, and warns of the first. Thread-safe.

    where: what holds the count, for the warning. n: how many there were so far.
    Where warnings are errors, words that would be the first to be counted are not.
    """

    def __init__(self, where: str) -> None:
        self.where, self.n = where, 0
        self._lock = threading.RLock()

    def count(self, words: Sequence[str], max_characters: int) -> None:
        """Add those of the words with more than `max_characters` - 2 bytes of UTF-8."""
        limit = max_characters - 2
        # a character has 4 bytes at most: most words need no encoding
        long = [w for w in words if len(w) * 4 > limit and len(w.encode("utf8", "ignore")) > limit]
        if not long:
            return
        with self._lock:
            if not self.n:
                got = len(long[0].encode("utf8", "ignore"))
                message = Errors.TRUNCATED.format(word=shown(long[0]), got=got, limit=limit, where=self.where)
                # a registry of its own: else Python would drop what another counter said in the same words
                # line 0 has no text, which Python would print
                warnings.warn_explicit(message, TruncatedWordsWarning, __file__, 0, registry={})
            self.n += len(long)

    def __getstate__(self) -> dict[str, Any]:
        return {"where": self.where}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.where, self.n, self._lock = state["where"], 0, threading.RLock()  # a copy begins at 0
