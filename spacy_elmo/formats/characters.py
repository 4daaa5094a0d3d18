"""Words as character ids, as the original biLMs read them.

A word is begin-of-word, its UTF-8 bytes, end-of-word, then padding up to `max_characters` positions.
In arrays, 1 is added to every id, so that 0 marks positions without a word (the mask).
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ElmoError, TruncatedWordsWarning, check_whole, shown
from ..locks import Lock

# Ids before 1 is added. Ids 0 to 255 are the bytes.
BEGIN_OF_SENTENCE = 256
END_OF_SENTENCE = 257
BEGIN_OF_WORD = 258
END_OF_WORD = 259
PADDING = 260
# Rows of the embedding in weights.hdf5. The network's embedding has one more, row 0, for the mask.
N_CHARACTERS = 261

MAX_CHARACTERS = 50  # of the official models
# AllenNLP encodes exactly these two words as sentence boundaries.
BEGIN_OF_SENTENCE_WORD = "<S>"
END_OF_SENTENCE_WORD = "</S>"

Ids = npt.NDArray[np.int64]


def words_to_ids(words: Sequence[str], max_characters: int = MAX_CHARACTERS) -> Ids:
    """Return the character ids of words, 1 added to each.

    words: any strings. Of each, the first `max_characters` - 2 bytes of UTF-8 are used, even if that splits a
        character (see `count_truncated`). Lone surrogates have no UTF-8 form and are dropped, as in AllenNLP.
    max_characters: positions per word, at least 3.

    Returns *Shape:* (words, max_characters), int64.
    Raises ElmoError if `words` is not a list of strings.
    """
    n_bytes = _n_bytes(max_characters)
    encoded = [word.encode("utf-8", "ignore")[:n_bytes] for word in checked_words(words)]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    table = np.array(encoded, dtype=f"S{n_bytes}").view(np.uint8).reshape(len(encoded), n_bytes)
    ids = np.full((len(encoded), max_characters), PADDING + 1, dtype=np.int64)
    ids[:, 0] = BEGIN_OF_WORD + 1
    inside = np.arange(n_bytes) < lengths[:, None]
    ids[:, 1:-1][inside] = table[inside].astype(np.int64) + 1
    ids[np.arange(len(encoded)), lengths + 1] = END_OF_WORD + 1
    for boundary, own in zip((BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD), boundary_ids(max_characters)):
        ids[np.array([word == boundary for word in words], bool)] = own
    return ids


def boundary_ids(max_characters: int = MAX_CHARACTERS) -> Ids:
    """Return the character ids of `<S>` and `</S>`, 1 added to each. *Shape:* (2, max_characters), int64."""
    _n_bytes(max_characters)
    ids = np.full((2, max_characters), PADDING + 1, dtype=np.int64)
    ids[:, 0] = BEGIN_OF_WORD + 1
    ids[:, 1] = (BEGIN_OF_SENTENCE + 1, END_OF_SENTENCE + 1)
    ids[:, 2] = END_OF_WORD + 1
    return ids


def batch_to_ids_array(sentences: Sequence[Sequence[str]], max_characters: int = MAX_CHARACTERS) -> Ids:
    """Return the ids of sentences, *Shape:* (sentences, longest, max_characters), int64: 0 after a sentence's end."""
    for sentence in sentences:
        if isinstance(sentence, str):
            checked_words(sentence)
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    longest = int(lengths.max(initial=0))
    flat = words_to_ids([word for sentence in sentences for word in sentence], max_characters)
    ids = np.zeros((len(sentences), longest, max_characters), dtype=np.int64)
    ids[np.arange(longest) < lengths[:, None]] = flat
    return ids


def count_truncated(words: Sequence[str], max_characters: int = MAX_CHARACTERS) -> int:
    """Return how many of the words have more than `max_characters` - 2 bytes of UTF-8, so that bytes are cut off.

    Raises ElmoError if `words` is not a list of strings.
    """
    _n_bytes(max_characters)
    return len(too_long(checked_words(words), max_characters))


def _n_bytes(max_characters: int) -> int:
    check_whole(3, max_characters=max_characters)  # the word's begin, one byte, the word's end
    return int(max_characters) - 2


def checked_words(sentence: Iterable[str]) -> list[str]:
    """Return the words of a sentence. A string in its place is an error, and so is a word that is no string."""
    if isinstance(sentence, str):  # else its letters would be embedded as words
        raise ElmoError(
            f"a sentence is the string {shown(sentence)}. Expected a list of words: split it into tokens first."
        )
    words: list[Any] = [sentence] if _is_spacys(sentence) else list(sentence)
    for word in words:
        if isinstance(word, str):
            continue
        if _is_spacys(word):
            raise ElmoError(
                f"{shown(word)} was given. Expected words, which are strings: of a doc [token.text for token in doc]. "
                "Or run a pipeline with elmo: doc._.elmo has the vectors of a doc's tokens, and spacy_elmo.encode(nlp, "
                "docs) returns one for each doc."
            )
        raise ElmoError(f"a word is {shown(word)}. Expected a string.")
    return words


def _is_spacys(thing: object) -> bool:
    return type(thing).__module__.startswith("spacy.tokens")  # spaCy itself is not imported here


def too_long(words: Sequence[str], max_characters: int) -> list[str]:
    """Return the words with more than `max_characters` - 2 bytes of UTF-8, which is all that a biLM reads of a word."""
    limit = max_characters - 2
    # A character has at most 4 bytes of UTF-8, so most words need no encoding.
    return [w for w in words if len(w) * 4 > limit and len(w.encode("utf8", "ignore")) > limit]


class TruncatedWords:
    """Counts in `n` the words with more bytes than the biLM reads, and warns of the first one. Thread-safe.

    A copy starts again at 0. where: the attribute that holds the count, as the warning names it.
    """

    def __init__(self, where: str) -> None:
        self.where, self.n = where, 0
        self._lock = Lock()

    def count(self, words: Sequence[str], max_characters: int) -> None:
        """Count the words that are `too_long`. Warns (TruncatedWordsWarning) at the first such word of this counter."""
        long = too_long(words, max_characters)
        if not long:
            return
        with self._lock:
            if not self.n:
                got = len(long[0].encode("utf8", "ignore"))
                message = (
                    f"the token {shown(long[0])} has {got:,} bytes in UTF-8, but the biLM reads the first "
                    f"{max_characters - 2} of a token: the others make no difference to its vectors. This warning is "
                    "given once."
                )
                warning = TruncatedWordsWarning(message, f"How many tokens were cut so far is in {self.where}.")
                # The empty registry: else Python would drop a warning that another counter gave in the same words.
                warnings.warn_explicit(warning, None, __file__, 0, registry={})
            self.n += len(long)

    def __reduce__(self) -> "tuple[type[TruncatedWords], tuple[str]]":
        return TruncatedWords, (self.where,)
