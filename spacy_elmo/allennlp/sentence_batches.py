"""The sentences that callers of ElmoEmbedder give: checked, and divided into batches."""

from collections.abc import Iterable, Iterator, Sequence

from ..errors import ElmoError, Errors, shown


def checked_words(sentence: Sequence[str]) -> list[str]:
    """A sentence's words. Raises ElmoError if it is one string, or if something in it is no string."""
    if isinstance(sentence, str):  # its letters would be taken as words
        raise ElmoError(Errors.CHARACTERS_STRING.format(got=shown(sentence)))
    words = list(sentence)
    for word in words:
        if not isinstance(word, str):
            raise ElmoError(Errors.CHARACTERS_WORD.format(got=shown(word)))
    return words


def batches_of(
    sentences: Iterable[Sequence[str]], batch_size: int, max_tokens: int | None
) -> Iterator[list[Sequence[str]]]:
    """Divide a stream of sentences into batches, in order.

    sentences: words each.
    batch_size: at most that many sentences in a batch.
    max_tokens: at most that many tokens in a batch, unless one sentence has more; None: any number.
    Raises ElmoError for a sentence that is no list of words.
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
