"""Losses of a biLM on sentences, under the softmax over all words.

Each direction predicts every word of a sentence and its far boundary: tokens + 1 predictions. The forward direction
reads `<S> w1 .. wN` and predicts `w1 .. wN </S>`, the backward one reads `</S> wN .. w1` and predicts `wN .. w1 <S>`.
A word outside the vocabulary is read by its own characters and predicted as `<UNK>`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from ...formats.characters import BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD, words_to_ids
from ...modules import LstmState
from ..text.vocabulary_file import END, START, UNKNOWN
from .language_model import LanguageModel

NO_TARGET = -1

Position = tuple[str, int, str, int]  # the word read and the id predicted, forward, then backward


class RowLosses(NamedTuple):
    """What the predictions of some rows of sentences cost. A loss is -log p, natural logarithm.

    counts: *Shape:* (rows, 3): predictions of one direction, those of `<UNK>`, and sentences.
    losses: *Shape:* (rows, 2): sums over the predictions, forward and backward.
    unknown_losses: *Shape:* (rows, 2): the part of losses on `<UNK>`.
    """

    counts: npt.NDArray[np.float64]
    losses: npt.NDArray[np.float64]
    unknown_losses: npt.NDArray[np.float64]


@torch.no_grad()
def row_losses(model: LanguageModel, rows: Sequence[Iterator[list[str]]], batch_tokens: int) -> RowLosses:
    """The losses of each row, whose sentences are read one after the other with the state carried between them.

    rows: sentences as lists of words; each row begins with the zero state.
    batch_tokens: positions of all rows that run through the network together.
    """
    positions = [_positions(model, row) for row in rows]
    steps = max(1, batch_tokens // max(1, len(rows)))  # so that a long sentence needs no more memory than a short one
    state = model.bilm.lstm.zero_state(len(rows))
    device = state.h.device
    counts, losses, unknown_losses = (np.zeros((len(rows), n)) for n in (3, 2, 2))
    while any(window := [list(islice(row, steps)) for row in positions]):
        words, inputs, targets = _arrays(window)
        ids = torch.from_numpy(words_to_ids(words, model.bilm.options.max_characters)).to(device)
        encoded = F.embedding(torch.from_numpy(inputs).to(device), model.bilm.char_cnn(ids))
        outputs, hs, cs = model.bilm.lstm.scan(encoded, state)
        state = LstmState(torch.stack([h[:, -1] for h in hs]), torch.stack([c[:, -1] for c in cs]))
        counts += np.stack([(targets[0] >= 0).sum(0), (targets[0] == UNKNOWN).sum(0), (targets[0] == END).sum(0)], 1)
        for direction in (0, 1):
            step, row = np.nonzero(targets[direction] != NO_TARGET)
            goal = targets[direction, step, row]
            top = outputs[-1][direction, torch.from_numpy(step).to(device), torch.from_numpy(row).to(device)]
            loss = model.softmax.loss(top, torch.from_numpy(goal).to(device)).double().cpu().numpy()
            losses[:, direction] += np.bincount(row, loss, len(rows))
            unknown_losses[:, direction] += np.bincount(row, np.where(goal == UNKNOWN, loss, 0), len(rows))
    return RowLosses(counts, losses, unknown_losses)


def _positions(model: LanguageModel, sentences: Iterable[list[str]]) -> Iterator[Position]:
    for sentence in sentences:
        ids = model.ids(sentence).tolist()
        yield from zip(
            [BEGIN_OF_SENTENCE_WORD, *sentence],
            [*ids, END],
            [END_OF_SENTENCE_WORD, *reversed(sentence)],
            [*reversed(ids), START],
        )


def _arrays(window: list[list[Position]]) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct words, and their places and the targets, *Shape:* (2, steps, rows); NO_TARGET after a row's end."""
    places: dict[str, int] = {}
    shape = (2, max(map(len, window)), len(window))
    inputs, targets = np.zeros(shape, np.int64), np.full(shape, NO_TARGET)
    for row, positions in enumerate(window):
        if not positions:
            continue
        forward, following, backward, preceding = zip(*positions)
        for direction, (read, predicted) in enumerate([(forward, following), (backward, preceding)]):
            inputs[direction, : len(read), row] = [places.setdefault(word, len(places)) for word in read]
            targets[direction, : len(read), row] = predicted
    return list(places), inputs, targets
