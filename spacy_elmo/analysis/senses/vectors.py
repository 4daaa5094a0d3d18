"""The vectors of words that have senses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from ...corpus.bilm import EmbeddingBiLM
from ..rows import Array, with_mean
from .corpus import Instance, SenseSentence

OnSentences = Callable[[int], object]  # gets a number of sentences that are done
_SENTENCES = 1000  # embedded at a time: no other vectors are in memory


def instance_vectors(
    bilm: EmbeddingBiLM, sentences: Sequence[SenseSentence], progress: OnSentences = lambda sentences: None
) -> Iterator[tuple[Instance, Array]]:
    """Yield each instance, in the order of the text, and its vectors: those of each layer, and their mean.

    They have the *Shape:* (layers + 1, width). The vector of an instance of several words is the mean of theirs.

    bilm: the biLM. It reads each sentence from the zero state.
    sentences: with senses.
    progress: is told the number of sentences that were embedded.
    """
    for start in range(0, len(sentences), _SENTENCES):
        block = sentences[start : start + _SENTENCES]
        found: list[list[tuple[Instance, Array]]] = [[] for _ in block]
        for i, layers in bilm.embed([sentence.words for sentence in block]):  # in an order of its own
            for instance in block[i].instances:
                found[i].append((instance, with_mean(layers[:, instance.start : instance.end].mean(1))))
        yield from chain.from_iterable(found)
        progress(len(block))
