"""What the processes of a pretraining run send each other in an update, computed from the sizes."""

from typing import NamedTuple

import numpy as np
import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.softmax import LogUniform

FLOAT, ID = 4, 8  # bytes
# Zipf-Mandelbrot: p of the word of rank r in proportion to 1 / (r + 2.7) ** 1.1. With V = 50,000, 20 tokens of each of
# 256 / 384 / 2,048 places in Wikipedia text have 2,054 / 2,816 / 9,059 distinct words; this law 2,093 / 2,858 / 9,587
SHIFT, EXPONENT = 2.7, 1.1


class Traffic(NamedTuple):
    """Bytes of an update. dense: gradients of the biLM; rows: of the softmax's scored rows; ids: of one process's
    distinct targets; full: of all rows of the softmax, in the place of rows and ids.
    """

    dense: int
    rows: int
    ids: int
    full: int

    @property
    def message(self) -> int:
        """Of the gradients, which are summed over all processes as one message."""
        return self.dense + self.rows


def traffic(options: BiLMOptions, n_words: int, negatives: int, positions: int, processes: int) -> Traffic:
    """positions: targets of one direction in an update, of all processes; both directions have nearly the same."""
    with torch.device("meta"):
        dense = sum(parameter.numel() for parameter in BiLM(options).parameters())
    _, tries = LogUniform(n_words, negatives).draw(torch.Generator().manual_seed(0))
    drawn = LogUniform(n_words, negatives).log_expected(torch.arange(n_words), tries).exp().numpy()
    extra = (occurs(n_words, positions) * (1 - drawn)).sum()
    row = options.projection_dim + 1
    return Traffic(
        FLOAT * dense,
        round(FLOAT * row * (negatives + extra)),
        round(ID * occurs(n_words, positions // processes).sum()),
        FLOAT * row * n_words,
    )


def occurs(n_words: int, positions: int) -> np.ndarray:
    """*Shape:* (n_words,): the probability of each word to be a target at least once."""
    p = (np.arange(1, n_words + 1) + SHIFT) ** -EXPONENT
    result: np.ndarray = 1 - (1 - p / p.sum()) ** positions
    return result


def seconds(found: Traffic, processes: int, gigabits: float) -> float:
    """Of an update's messages over links of this speed: a ring all-reduce sends 2 (n - 1) / n of the gradients through
    each link, and the row ids of all others come in.
    """
    sent = 2 * (processes - 1) / processes * found.message + (processes - 1) * found.ids
    return sent * 8 / (gigabits * 1e9)
