"""Bounds the time of spaCy's tokenizer, which grows with the square of a word's length if the word is full of marks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]

from .lines import Unusable

Rule = Callable[[str], Any]

# A unit is about 0.4 microseconds: reading a character of a word by a rule for prefixes or suffixes (measured).
_FREE, _FOR_EACH = 2_000_000, 20  # units: less than a second, and 5 s more for a million characters
_URL_COLON = 10  # the rule for URLs reads so many characters for each colon in a unit
_DOTS = 50  # the suffix "..." reads a run of dots for each of them, so many in a unit
# languages whose suffixes and infixes read a run of letters and digits for each of them, so many in a unit
_SQUARED = {"el": (8.0, 4.0), "pt": (math.inf, 60.0)}
_LONG_WORD = re.compile(r"\S{100}")  # shorter ones take at most 0.03 ms for each character (measured)
_SHORT_TEXT = 300  # characters: of those languages, too
_DOT_RUN, _LETTER_RUN = re.compile(r"\.{2,}"), re.compile(r"[\w.-]{2,}")


def may_be_slow(text: str, language: str) -> bool:
    """Whether a tokenizer needs a TokenizerLimit for a text. language: spaCy's code of it."""
    return bool(_LONG_WORD.search(text)) or (language in _SQUARED and len(text) > _SHORT_TEXT)


class TokenizerLimit:
    """Counts the characters that a tokenizer's rules read, and refuses a text for which they read too many.

    spaCy reads a word again for each mark that it cuts off the beginning or the end. What the tokenizer returns is not
    changed.

    tokenizer: its rules are replaced by those that count.
    language: spaCy's code of its language.
    """

    def __init__(self, tokenizer: Tokenizer, language: str) -> None:
        self._left: float = math.inf  # spaCy calls the rules for its special cases as soon as one is replaced
        suffix, infix = _SQUARED.get(language, (math.inf, math.inf))
        costs: dict[str, Callable[[str], float]] = {
            "prefix_search": len,
            "suffix_search": lambda w: len(w) + _squares(_DOT_RUN, w) / _DOTS + _squares(_LETTER_RUN, w) / suffix,
            "infix_finditer": lambda w: len(w) + _squares(_LETTER_RUN, w) / infix,
            "url_match": lambda w: len(w) * (1 + w.count(":")) / _URL_COLON,
        }
        for name, cost in costs.items():
            rule = getattr(tokenizer, name)
            if rule is not None:
                setattr(tokenizer, name, self._counted(rule, cost))

    def allow(self, text: str | None) -> None:
        """Let the rules read what a text may take, from now on.

        text: one for which `may_be_slow` is true; None: another one, for which nothing is limited.
        """
        self._left = math.inf if text is None else _FREE + _FOR_EACH * len(text)

    def _counted(self, rule: Rule, cost: Callable[[str], float]) -> Rule:
        def counted(word: str) -> Any:
            self._left -= cost(word)
            if self._left < 0:
                raise Unusable("words too long or with too many punctuation marks to be tokenised in reasonable time")
            return rule(word)

        return counted


def _squares(runs: re.Pattern[str], word: str) -> int:
    return sum(len(run) ** 2 for run in runs.findall(word))
