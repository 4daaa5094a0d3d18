"""What a biLM's losses on a text come to."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import CorpusError, Errors


class Perplexities(NamedTuple):
    """Of each direction: exp of its mean loss; mean: exp of the mean of both directions' mean losses."""

    forward: float
    backward: float
    mean: float


@dataclass(frozen=True)
class Score:
    """Losses of one sentence or of a text, forward and backward.

    loss: sums of -log p, natural logarithm, over all predictions; unknown_loss: the part of it on `<UNK>`.
    unknown: tokens outside the vocabulary.
    """

    sentences: int
    tokens: int
    unknown: int
    loss: tuple[float, float]
    unknown_loss: tuple[float, float]

    @property
    def predictions(self) -> int:
        """Predictions of one direction: the tokens, and a boundary for each sentence."""
        return self.tokens + self.sentences

    @property
    def perplexities(self) -> Perplexities:
        """Over all predictions."""
        return _perplexities(self.loss, self.predictions)

    @property
    def known_perplexities(self) -> Perplexities:
        """Over the predictions whose target is not `<UNK>`; the model's probabilities stay as they are."""
        known = (self.loss[0] - self.unknown_loss[0], self.loss[1] - self.unknown_loss[1])
        return _perplexities(known, self.predictions - self.unknown)


def total(scores: Iterable[Score]) -> Score:
    """The score of the sentences together. Raises CorpusError where there is none."""
    sums = np.zeros(7)
    for s in scores:
        sums += (s.sentences, s.tokens, s.unknown, *s.loss, *s.unknown_loss)
    if not sums[0]:
        raise CorpusError(Errors.SCORE_NO_SENTENCES)
    sentences, tokens, unknown, *losses = sums.tolist()
    forward, backward, unknown_forward, unknown_backward = losses
    return Score(int(sentences), int(tokens), int(unknown), (forward, backward), (unknown_forward, unknown_backward))


def _perplexities(loss: tuple[float, float], predictions: int) -> Perplexities:
    means = (loss[0] / predictions, loss[1] / predictions)
    return Perplexities(_exp(means[0]), _exp(means[1]), _exp((means[0] + means[1]) / 2))


def _exp(mean_loss: float) -> float:
    try:
        return math.exp(mean_loss)
    except OverflowError:
        return math.inf
