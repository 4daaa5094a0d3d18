"""Division of sentences into batches that run together."""

from collections.abc import Sequence


def token_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Return the indices of the sentences of each batch, longest sentences first.

    Sentences of similar length are in one batch, so that the matrix multiplications of the recurrent weights have as
    many rows as possible at all positions.

    lengths: number of tokens of each sentence.
    max_tokens: number of tokens in a batch, at most. A longer sentence is a batch alone.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batches: list[list[int]] = []
    tokens = 0
    for i in order:
        if not batches or tokens + lengths[i] > max_tokens:
            batches.append([])
            tokens = 0
        batches[-1].append(i)
        tokens += lengths[i]
    return batches
