"""Divides a stream of docs into batches."""

from collections.abc import Iterable, Iterator

from spacy.tokens import Doc


def batches_of(stream: Iterable[Doc], batch_size: int, max_tokens: int) -> Iterator[list[Doc]]:
    """Yield batches of at most batch_size docs and max_tokens tokens. A longer doc is a batch alone.

    stream: the docs.
    batch_size: number of docs, at most.
    max_tokens: number of tokens, at most.
    """
    batch: list[Doc] = []
    tokens = 0
    for doc in stream:
        if batch and (len(batch) == batch_size or tokens + len(doc) > max_tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(doc)
        tokens += len(doc)
    if batch:
        yield batch
