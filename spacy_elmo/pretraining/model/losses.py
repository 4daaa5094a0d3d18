"""Losses of a biLM on sentences, by the softmax over all words.

Each direction predicts the words of a sentence and then a boundary: tokens + 1 predictions. The forward direction
reads `<S> w1 .. wN` and predicts `w1 .. wN </S>`, the backward one reads `</S> wN .. w1` and predicts `wN .. w1 <S>`.
A word outside the vocabulary is read by its own characters, and its target is `<UNK>`.
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

NO_TARGET = -1  # at steps after the end of a row

# For each direction the word that is read and the id of its target: forward word, forward id, backward word, id.
Position = tuple[str, int, str, int]


class RowLosses(NamedTuple):
    """Losses of rows, each of which is a sequence of sentences. A loss is -log p(target), in nats.

    counts: *Shape:* (rows, 3), predictions of one direction, those among them whose target is `<UNK>`, and sentences.
    losses: *Shape:* (rows, 2), sums over all predictions, forward and backward.
    unknown_losses: *Shape:* (rows, 2), sums over the predictions whose target is `<UNK>`.
    """

    counts: npt.NDArray[np.float64]
    losses: npt.NDArray[np.float64]
    unknown_losses: npt.NDArray[np.float64]


@torch.no_grad()
def row_losses(model: LanguageModel, rows: Sequence[Iterator[list[str]]], batch_tokens: int) -> RowLosses:
    """Return the losses of rows of sentences.

    The sentences of a row are read in order. The LSTM's state is zero at the beginning of a row, and carried from
    sentence to sentence.

    model: the biLM with its softmax.
    rows: for each row its sentences, as lists of words.
    batch_tokens: positions of all rows that run through the network together, which bounds the memory.
    """
    positions = [_positions(model, row) for row in rows]
    steps = max(1, batch_tokens // max(1, len(rows)))  # a long sentence continues in the next batch
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
    """Return the distinct words of a window, and its inputs and targets.

    window: the next positions of each row.

    Returns the words; inputs, *Shape:* (2, steps, rows), as indices into the words; and targets, *Shape:*
    (2, steps, rows), as ids of the vocabulary.
    """
    numbers: dict[str, int] = {}
    shape = (2, max(map(len, window)), len(window))
    inputs, targets = np.zeros(shape, np.int64), np.full(shape, NO_TARGET)
    for row, positions in enumerate(window):
        if not positions:
            continue
        forward, following, backward, preceding = zip(*positions)
        for direction, (read, predicted) in enumerate([(forward, following), (backward, preceding)]):
            inputs[direction, : len(read), row] = [numbers.setdefault(word, len(numbers)) for word in read]
            targets[direction, : len(read), row] = predicted
    return list(numbers), inputs, targets
