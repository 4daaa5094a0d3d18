"""Divides a text into the blocks and batches that are scored together."""

from collections.abc import Iterable, Iterator, Sequence


def blocks(sentences: Iterable[list[str]], n_sentences: int, n_tokens: int) -> Iterator[list[list[str]]]:
    """Yield the sentences of a text in blocks.

    sentences: lists of words.
    n_sentences: largest number of sentences of a block.
    n_tokens: a block ends with the sentence in which it reaches this number of words.
    """
    block: list[list[str]] = []
    tokens = 0
    for sentence in sentences:
        block.append(sentence)
        tokens += len(sentence)
        if len(block) == n_sentences or tokens >= n_tokens:
            yield block
            block, tokens = [], 0
    if block:
        yield block


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of the sentences that run through the network together, the shortest first.

    lengths: positions of each sentence.
    batch_tokens: largest number of positions of a batch, padding counted, unless one sentence alone has more.
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[number] > batch_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
