"""Which sentences run together."""

from collections.abc import Sequence


def token_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Indices of sentences in batches of at most max_tokens tokens, longest first; a longer one runs alone.

    Sentences of like length run together, so that the recurrent products keep their full number of rows.
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
