"""Held-out perplexity by the full softmax."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from ..modules import BiLM, LstmState
from ..modules.softmax import Softmax
from .batches import NO_TARGET, Streams, Window, reading
from .corpus import UNKNOWN, Sentences


class Perplexity(NamedTuple):
    """Of each direction; predictions: how many each direction made (tokens + sentences)."""

    forward: float
    backward: float
    predictions: int

    @property
    def mean(self) -> float:
        """exp of the mean of both directions' losses."""
        return math.sqrt(self.forward * self.backward)


@torch.no_grad()
def perplexity(
    bilm: BiLM,
    softmax: Softmax,
    sentences: Sentences,
    character_ids: npt.NDArray[np.int16],
    *,
    carried_state: bool = False,
    streams: int = 16,
    batch_tokens: int = 2048,
) -> Perplexity:
    """exp of the mean loss over all words and boundaries; words outside the vocabulary count as `<UNK>`.

    character_ids: (words, characters) of every word id in `sentences`.
    carried_state: False: every sentence from the zero state. True: the text is read in order in `streams` parts, the
        state handed from sentence to sentence.
    """
    totals, predictions = np.zeros(2), 0
    state: LstmState | None = None
    windows = _in_order(sentences, streams) if carried_state else _by_length(sentences, batch_tokens)
    for window in windows:
        words, inverse = np.unique(window.inputs, return_inverse=True)
        encoded = bilm.char_cnn(torch.from_numpy(character_ids[words].astype(np.int64)))
        x = F.embedding(torch.from_numpy(np.asarray(inverse).reshape(window.inputs.shape)), encoded)
        if state is None or not carried_state:
            state = bilm.lstm.zero_state(x.shape[2])
        outputs, hs, cs = bilm.lstm.scan(x, state)
        state = LstmState(torch.stack([h[:, -1] for h in hs]), torch.stack([c[:, -1] for c in cs]))
        for direction in (0, 1):
            targets = torch.from_numpy(window.targets[direction].reshape(-1).copy())
            real = targets != NO_TARGET
            targets[targets >= len(softmax.bias)] = UNKNOWN
            losses = softmax.loss(outputs[-1][direction].reshape(len(targets), -1)[real], targets[real])
            totals[direction] += losses.double().sum().item()
            predictions += len(losses)
    forward, backward = np.exp(totals / (predictions // 2))
    return Perplexity(float(forward), float(backward), predictions // 2)


def unigram_perplexity(log_probabilities: npt.NDArray[np.float64], sentences: Sentences) -> float:
    """Perplexity of a model that knows the words' frequencies alone, on the same targets (either direction)."""
    ids = np.where(sentences.ids < len(log_probabilities), sentences.ids, UNKNOWN)
    total = log_probabilities[ids].sum() + sentences.n_sentences * log_probabilities[1]
    return float(np.exp(-total / (len(ids) + sentences.n_sentences)))


def _in_order(sentences: Sentences, n_streams: int) -> Iterator[Window]:
    streams = Streams(sentences, min(n_streams, sentences.n_sentences), seed=None)
    while (window := streams.next(20)) is not None:
        yield window


def _by_length(sentences: Sentences, batch_tokens: int) -> Iterator[Window]:
    """Windows that hold whole sentences, shortest first."""
    lengths = np.diff(sentences.offsets) + 1
    batch: list[npt.NDArray[np.int32]] = []
    for number in np.argsort(lengths, kind="stable"):
        if batch and (len(batch) + 1) * int(lengths[number]) > batch_tokens:
            yield _stack(batch)
            batch = []
        batch.append(reading(sentences.sentence(int(number))))
    if batch:
        yield _stack(batch)


def _stack(batch: list[npt.NDArray[np.int32]]) -> Window:
    longest = max(rows.shape[1] for rows in batch)
    stacked = np.zeros((4, longest, len(batch)), np.int64)
    stacked[[1, 3]] = NO_TARGET
    for k, rows in enumerate(batch):
        stacked[:, : rows.shape[1], k] = rows
    return Window(stacked[[0, 2]], stacked[[1, 3]], np.zeros(stacked.shape[1:], np.bool_))
