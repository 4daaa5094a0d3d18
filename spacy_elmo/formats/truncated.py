"""A counter of words that are too long for a biLM, with one warning."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ..errors import Errors, TruncatedWordsWarning, shown

_INSIDE = ("spacy_elmo", "spacy", "thinc", "torch", "contextlib")  # what may stand between a user's line and a warning


def users_line() -> tuple[str, int]:
    """Return the file and the number of the line that called this package, directly or through spaCy.

    In a thread that no such line has started, return this file and 0: a line that has no text.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame = frame.f_back
    if frame is None or frame.f_globals.get("__name__") == "threading":
        return __file__, 0
    return frame.f_code.co_filename, frame.f_lineno


def too_long(words: Sequence[str], max_characters: int) -> list[str]:
    """Return the words with more than `max_characters` - 2 bytes of UTF-8, which is all that a biLM reads of a word.

    words: any strings.
    max_characters: positions per word of the biLM.
    """
    limit = max_characters - 2
    # A character has at most 4 bytes of UTF-8, so most words need no encoding.
    return [w for w in words if len(w) * 4 > limit and len(w.encode("utf8", "ignore")) > limit]


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
        long = too_long(words, max_characters)
        if not long:
            return
        with self._lock:
            if not self.n:
                got = len(long[0].encode("utf8", "ignore"))
                message = Errors.TRUNCATED.format(word=shown(long[0]), got=got, limit=limit)
                warning = TruncatedWordsWarning(message, Errors.TRUNCATED_WHERE.format(where=self.where))
                # The empty registry: else Python would drop a warning that another counter gave in the same words.
                warnings.warn_explicit(warning, None, *users_line(), registry={})
            self.n += len(long)

    def __getstate__(self) -> dict[str, Any]:
        return {"where": self.where}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.where, self.n, self._lock = state["where"], 0, threading.RLock()
