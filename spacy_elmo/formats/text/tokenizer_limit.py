"""Bounds the time of spaCy's tokenizer, which grows with the square of a word's length if the word is full of marks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]

from .lines import Unusable

Rule = Callable[[str], Any]

_FREE, _FOR_EACH = 500_000, 20  # about 0.2 s for a text, and 8 s for a text of a million characters
_CHEAPER = 10  # a character takes about a tenth of the time in the rule for URLs


class TokenizerLimit:
    """Counts the characters that a tokenizer's rules read, and refuses a text for which they read too many.

    spaCy reads a word again for each mark that it cuts off the beginning or the end, and its rule for URLs reads a word
    again for each colon. What the tokenizer returns is not changed.

    tokenizer: its rules are replaced by those that count.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._left: float = math.inf  # spaCy calls the rules for its special cases as soon as one is replaced
        for name, cost in (("prefix_search", len), ("suffix_search", len), ("url_match", _cost_of_url)):
            rule = getattr(tokenizer, name)
            if rule is not None:
                setattr(tokenizer, name, self._counted(rule, cost))

    def allow(self, text: str) -> None:
        """Let the rules read what a text may take, from now on."""
        self._left = _FREE + _FOR_EACH * len(text)

    def _counted(self, rule: Rule, cost: Callable[[str], int]) -> Rule:
        def counted(word: str) -> Any:
            self._left -= cost(word)
            if self._left < 0:
                raise Unusable("too many punctuation marks without a blank between them to be tokenised")
            return rule(word)

        return counted


def _cost_of_url(word: str) -> int:
    return len(word) * (1 + word.count(":")) // _CHEAPER
