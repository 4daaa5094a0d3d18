"""Checks of the sentences that ElmoEmbedder is called with, and their division into batches."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..errors import ElmoError, Errors, SettingsError, shown

# of a batch of sentences from a stream; only a longer sentence, alone, has more
MAX_TOKENS = 8192
BATCH_SIZE = 64


def checked_words(sentence: Iterable[str]) -> list[str]:
    """Return the words of a sentence as a list.

    sentence: the words.

    Raises ElmoError if the sentence is a string, or a word is not a string.
    """
    if isinstance(sentence, str):  # else its letters would be embedded as words
        raise ElmoError(Errors.CHARACTERS_STRING.format(got=shown(sentence)))
    words = list(sentence)
    for word in words:
        if not isinstance(word, str):
            raise ElmoError(Errors.CHARACTERS_WORD.format(got=shown(word)))
    return words


def check_batch_size(batch_size: int) -> None:
    """Raise SettingsError if a number of sentences in a batch is no whole number, or below 1."""
    if not isinstance(batch_size, int | np.integer) or isinstance(batch_size, bool) or batch_size < 1:
        raise SettingsError(Errors.EMBED_BATCH_SIZE.format(got=batch_size))


def batches_of(
    sentences: Iterable[Sequence[str]], batch_size: int, max_tokens: int | None
) -> Iterator[list[Sequence[str]]]:
    """Divide a stream of sentences into batches, in order.

    sentences: lists of words.
    batch_size: number of sentences in a batch, at most.
    max_tokens: number of tokens in a batch, at most; None: any number. A longer sentence is a batch alone.

    Raises ElmoError if a sentence is not a list of words.
    """
    batch: list[Sequence[str]] = []
    tokens = 0
    for sentence in sentences:
        words = checked_words(sentence)
        if batch and max_tokens is not None and tokens + len(words) > max_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(words)
        tokens += len(words)
        if len(batch) == batch_size:
            yield batch
            batch, tokens = [], 0
    if batch:
        yield batch
