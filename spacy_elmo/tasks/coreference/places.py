"""Places in a text that two docs have in common: spaCy pairs docs whose texts differ in whitespace and capitals."""

from __future__ import annotations

import numpy as np
from spacy.tokens import Doc

from .parts import Array


def places_of(doc: Doc) -> Array:
    """Return how many characters that are no whitespace come before each character of a doc's text.

    *Shape:* (characters + 1,); the last number is that of all of them.
    """
    return np.cumsum([0, *(not character.isspace() for character in doc.text)])


def tokens_at(doc: Doc) -> tuple[dict[int, int], dict[int, int]]:
    """Return, for the places of `places_of`, which token begins there, and which follows the one that ends there.

    Both are numbers of tokens in the doc. Whitespace tokens neither begin nor end anywhere.
    """
    places = places_of(doc)
    words = [token for token in doc if not token.is_space]
    starts = {int(places[token.idx]): token.i for token in words}
    return starts, {int(places[token.idx + len(token)]): token.i + 1 for token in words}
