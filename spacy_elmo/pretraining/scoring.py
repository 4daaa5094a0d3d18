"""Losses of sentences by the full softmax, and perplexities of texts.

Each direction predicts every word of a sentence and its far boundary: tokens + 1 predictions. The forward direction
reads `<S> w1 .. wN` and predicts `w1 .. wN </S>`, the backward one reads `</S> wN .. w1` and predicts `wN .. w1 <S>`.
A word outside the vocabulary is read by its own characters and predicted as `<UNK>`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from ..errors import Errors, SettingsError, WeightsError
from ..formats.characters import BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD, words_to_ids
from ..modules import LstmState
from .model.language_model import LanguageModel
from .score import Score, total
from .text.spooled import SpooledText
from .text.vocabulary_file import END, START, UNKNOWN

NO_TARGET = -1
STREAMS = 16  # parts of a text that are read side by side where the state is carried

Position = tuple[str, int, str, int]  # the word read and the id predicted, forward, then backward


def score_sentences(
    model: LanguageModel,
    sentences: Iterable[list[str]],
    *,
    block_sentences: int = 20_000,
    block_tokens: int = 1_000_000,
    batch_tokens: int = 2_048,
) -> Iterator[Score]:
    """The score of each sentence, from the zero state, in the order of the text.

    At most block_sentences of them, or somewhat more than block_tokens, are kept in memory, and run by length.
    Raises WeightsError for a loss that is not finite.
    """
    for block in _blocks(sentences, block_sentences, block_tokens):
        scores: list[Score | None] = [None] * len(block)
        for numbers in _batches([len(sentence) + 1 for sentence in block], batch_tokens):
            rows = [iter([block[number]]) for number in numbers]
            for number, score in zip(numbers, _score_rows(model, rows, batch_tokens)):
                scores[number] = score
        yield from (score for score in scores if score is not None)


def score_text(model: LanguageModel, sentences: Iterable[list[str]]) -> Score:
    """The score of a text, every sentence from the zero state. Raises CorpusError for no sentence; WeightsError."""
    return total(score_sentences(model, sentences))


def score_carried(
    model: LanguageModel, text: SpooledText, streams: int = STREAMS, *, batch_tokens: int = 2_048
) -> Score:
    """The score of a text with the state of each direction handed from sentence to sentence.

    The text is cut into `streams` parts of equally many sentences (no more parts than sentences; see
    SpooledText.parts). Each part starts from the zero state and is read in order, from its first sentence to its last,
    by both directions: the backward one reads each sentence from its end, and then goes on to the next sentence.

    Raises SettingsError for streams less than 1, CorpusError for no sentence, WeightsError for a loss not finite.
    """
    if streams < 1:
        raise SettingsError(Errors.SCORE_STREAMS.format(got=streams))
    rows = text.parts(min(streams, text.n_sentences)) if text.n_sentences else []
    return total(_score_rows(model, rows, batch_tokens))


def score_unigram(
    model: LanguageModel, sentences: Iterable[list[str]], log_probabilities: npt.NDArray[np.float64]
) -> Score:
    """The score of a model that knows the words' frequencies alone, on the same targets.

    log_probabilities: (words,); `<S>` has the probability of `</S>`, since each direction predicts one of them.
    Raises CorpusError for no sentence.
    """

    def scores() -> Iterator[Score]:
        for sentence in sentences:
            ids = model.ids(sentence)
            unknown = int(np.count_nonzero(ids == UNKNOWN))
            losses = [-float(log_probabilities[ids].sum() + log_probabilities[end]) for end in (END, START)]
            on_unknown = -float(log_probabilities[ids[ids == UNKNOWN]].sum())
            yield Score(1, len(ids), unknown, (losses[0], losses[1]), (on_unknown, on_unknown))

    return total(scores())


def _blocks(sentences: Iterable[list[str]], n_sentences: int, n_tokens: int) -> Iterator[list[list[str]]]:
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


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of the sentences that run together, shortest first."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[number] > batch_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


@torch.no_grad()
def _score_rows(model: LanguageModel, rows: Sequence[Iterator[list[str]]], batch_tokens: int) -> list[Score]:
    """Each row's score, its sentences read one after the other, the state handed on; the first from the zero state."""
    positions = [_positions(model, row) for row in rows]
    steps = max(1, batch_tokens // max(1, len(rows)))  # so that a long sentence takes no more memory than a short one
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
    if not np.isfinite(losses).all():
        raise WeightsError(Errors.SCORE_NOT_FINITE)
    return [
        Score(int(ends), int(predictions - ends), int(unknown), (loss[0], loss[1]), (on_unknown[0], on_unknown[1]))
        for (predictions, unknown, ends), loss, on_unknown in zip(counts, losses.tolist(), unknown_losses.tolist())
    ]


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
    """The distinct words, and their places and the targets, *Shape:* (2, steps, rows); NO_TARGET behind a row's end."""
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
