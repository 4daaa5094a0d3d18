"""Perplexities of a biLM on sentences and texts, which it reads with the zero state or with the state carried.

The perplexity of a direction is exp of the mean of -log p(target), in nats, over all its predictions, by the softmax
over all words. The network runs here: inference's engine gives the same perplexities (to 1e-7 in float32), but needs a
copy of the weights for each evaluation. On a CPU each direction runs on a thread of its own.
"""

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import CorpusError, WeightsError
from ..formats.characters import BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD, words_to_ids
from ..inference.embedder import batches_of
from ..inference.workers import run_all
from ..modules import LstmState
from ..modules.lstm import scan_layers
from ..modules.lstm_cell import LayerWeights
from ..text.stream import Report
from .language_model import LanguageModel
from .prepared import Meta, PreparedCorpus, write_corpus
from .vocabulary import END, START, UNKNOWN


def spooled(sentences: Iterable[list[str]]) -> PreparedCorpus:
    """Return a copy of sentences on the disk, which is deleted with the process."""
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # its files, which are mapped, live on
            if write_corpus(sentences, Path(folder), Meta(Report(), [], None, "")):
                return PreparedCorpus(folder)
    except OSError as error:
        # tempdir is None if Python finds no folder that it can write to
        where = tempfile.tempdir or os.environ.get("TMPDIR", "the folder for temporary files")
        raise CorpusError(
            f"{where}: the temporary copy of the text can't be written ({error}). Make room there, or set the "
            "environment variable TMPDIR to another folder."
        ) from error
    raise _no_sentence()


def _no_sentence() -> CorpusError:
    return CorpusError("no sentence to score. Expected text of at least one sentence.")


class Perplexities(NamedTuple):
    """forward, backward: exp of the mean loss of each direction; mean: exp of the mean of both mean losses."""

    forward: float
    backward: float
    mean: float


@dataclass(frozen=True)
class Score:
    """Losses of one sentence or of a text: sums of -log p(target), in nats, forward and backward.

    unknown: words outside the vocabulary; unknown_loss: of the predictions of `<UNK>`.
    """

    sentences: int
    tokens: int
    unknown: int
    loss: tuple[float, float]
    unknown_loss: tuple[float, float]

    @property
    def predictions(self) -> int:
        """The number of predictions of one direction: all words, and a boundary of each sentence."""
        return self.tokens + self.sentences

    @property
    def unknown_share(self) -> float:
        return self.unknown / max(1, self.tokens)

    @property
    def perplexities(self) -> Perplexities:
        return _perplexities(self.loss, self.predictions)

    @property
    def known_perplexities(self) -> Perplexities:
        """The perplexities over predictions whose target is not `<UNK>`. The probabilities are not renormalised."""
        known = (self.loss[0] - self.unknown_loss[0], self.loss[1] - self.unknown_loss[1])
        return _perplexities(known, self.predictions - self.unknown)


def _perplexities(loss: tuple[float, float], predictions: int) -> Perplexities:
    forward, backward = loss[0] / predictions, loss[1] / predictions
    return Perplexities(*(math.exp(x) if x < 709 else math.inf for x in (forward, backward, (forward + backward) / 2)))


def total(scores: Iterable[Score]) -> Score:
    """Return the sum of scores. Raises CorpusError if there are no sentences."""
    sums = np.zeros(7)
    for s in scores:
        sums += (s.sentences, s.tokens, s.unknown, *s.loss, *s.unknown_loss)
    if not sums[0]:
        raise _no_sentence()
    sentences, tokens, unknown, *losses = sums.tolist()
    return Score(int(sentences), int(tokens), int(unknown), (losses[0], losses[1]), (losses[2], losses[3]))


# dim * projection_dim from which a thread for each direction pays. In smaller networks Python itself takes most of the
# time, which two threads can't do at once: 64 * 32 then takes 1.5 times as long, and 2.5 times the processor time
LEAST_FOR_THREADS = 2**14
BATCH_TOKENS = 2_048  # positions that run through the network together, which bounds the memory
_NO_TARGET = -1  # at steps after the end of a row
# For each direction the word that is read and the id of its target: forward word, forward id, backward word, id.
Position = tuple[str, int, str, int]


@torch.no_grad()
def score_rows(model: LanguageModel, rows: Sequence[Iterable[list[str]]]) -> list[Score]:
    """Return the score of each row of sentences, in which both directions carry their state on, from zero.

    The backward direction reads a sentence from its end to its beginning, and then continues with the next.

    Raises WeightsError if a loss is not finite.
    """
    positions = [_positions(model, row) for row in rows]
    steps = max(1, BATCH_TOKENS // max(1, len(rows)))  # a long sentence continues in the next batch
    state = model.bilm.lstm.zero_state(len(rows))
    device = state.h.device
    ends, predictions, unknown = (np.zeros(len(rows), np.int64) for _ in range(3))
    losses, unknown_losses = np.zeros((len(rows), 2)), np.zeros((len(rows), 2))
    n_threads = torch.get_num_threads() if device.type == "cpu" else 1
    options = model.bilm.options
    together = n_threads == 1 or options.dim * options.projection_dim < LEAST_FOR_THREADS

    @torch.no_grad()
    def encode(ids: Tensor, encoded: Tensor) -> None:
        encoded.copy_(model.bilm.char_cnn(ids))

    @torch.no_grad()
    def read(directions: slice, encoded: Tensor, inputs: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]) -> None:
        weights = model.bilm.lstm.weights()
        layers = [LayerWeights._make(w if w is None else w[directions] for w in layer) for layer in weights]
        before = LstmState(*(part[:, directions] for part in state))
        x = F.embedding(torch.from_numpy(inputs[directions]).to(device), encoded)
        outputs, hs, cs = scan_layers(options, layers, x, before)
        for part, values in zip(before, (hs, cs)):
            part.copy_(torch.stack([each[:, -1] for each in values]))
        for direction, output in zip(range(2)[directions], outputs[-1]):
            step, row = np.nonzero(targets[direction] != _NO_TARGET)
            goal = targets[direction, step, row]
            top = output[torch.from_numpy(step).to(device), torch.from_numpy(row).to(device)]
            loss = model.softmax.loss(top, torch.from_numpy(goal).to(device)).double().cpu().numpy()
            losses[:, direction] += np.bincount(row, loss, len(rows))
            unknown_losses[:, direction] += np.bincount(row, np.where(goal == UNKNOWN, loss, 0), len(rows))

    while any(window := [list(islice(row, steps)) for row in positions]):
        words, inputs, targets = _arrays(window)
        ids = torch.from_numpy(words_to_ids(words, options.max_characters)).to(device)
        encoded = state.h.new_empty(len(words), options.projection_dim)
        size = len(words) if together else -(-len(words) // n_threads)
        run_all([partial(encode, *both) for both in zip(ids.split(size), encoded.split(size))], n_threads)
        parts = [slice(0, 2)] if together else [slice(0, 1), slice(1, 2)]
        run_all([partial(read, part, encoded, inputs, targets) for part in parts], n_threads)
        predictions += (targets[0] != _NO_TARGET).sum(0)
        unknown += (targets[0] == UNKNOWN).sum(0)
        ends += (targets[0] == END).sum(0)
    if not np.isfinite(losses).all():
        raise WeightsError(
            "the loss of a sentence is not finite: the biLM or its softmax holds values that are too large. Get "
            "the files again, or train again with a lower learning rate."
        )
    columns = (ends, predictions - ends, unknown, losses, unknown_losses)
    return [
        Score(sentences, tokens, n_unknown, (loss[0], loss[1]), (on_unknown[0], on_unknown[1]))
        for sentences, tokens, n_unknown, loss, on_unknown in zip(*(column.tolist() for column in columns))
    ]


def _positions(model: LanguageModel, sentences: Iterable[list[str]]) -> Iterator[Position]:
    for sentence in sentences:
        ids = model.vocabulary.ids(sentence).tolist()
        yield from zip(
            [BEGIN_OF_SENTENCE_WORD, *sentence],
            [*ids, END],
            [END_OF_SENTENCE_WORD, *reversed(sentence)],
            [*reversed(ids), START],
        )


def _arrays(window: list[list[Position]]) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct words of a window, and its inputs, their indices, and targets, ids; (2, steps, rows) each."""
    numbers: dict[str, int] = {}
    shape = (2, max(map(len, window)), len(window))
    inputs, targets = np.zeros(shape, np.int64), np.full(shape, _NO_TARGET)
    for row, positions in enumerate(window):
        if not positions:
            continue
        forward, following, backward, preceding = zip(*positions)
        for direction, (read, predicted) in enumerate([(forward, following), (backward, preceding)]):
            inputs[direction, : len(read), row] = [numbers.setdefault(word, len(numbers)) for word in read]
            targets[direction, : len(read), row] = predicted
    return list(numbers), inputs, targets


STREAMS = 16  # parts of a text that are read side by side if the state is carried
# A block is in memory, and runs sorted by length. It ends with the sentence in which it reaches one of these numbers.
BLOCK_SENTENCES, BLOCK_TOKENS = 20_000, 1_000_000


@dataclass(frozen=True)
class Evaluation:
    """Scores from the zero state, and carried on in `streams` parts. unigram: None if the vocabulary has no counts."""

    zero: Score
    carried: Score
    streams: int
    unigram: Score | None


def evaluate_text(
    model: LanguageModel,
    sentences: Iterable[list[str]],
    streams: int = STREAMS,
    sum_up: Callable[[Iterable[Score]], Score] | None = None,
) -> Evaluation:
    """Score a text, which is read once, with the zero state, with the state carried, and with a unigram model.

    streams: consecutive parts of about equally many sentences, read at the same time if the state is carried.
    sum_up: returns the total of the sentences' scores (zero state), which it gets one by one; None: `total`.
    """
    text = spooled(sentences)
    zero, streams = (sum_up or total)(score_sentences(model, text)), min(streams, len(text))
    bounds = [k * len(text) // streams for k in range(streams + 1)]
    carried = total(score_rows(model, [text.part(start, stop) for start, stop in pairwise(bounds)]))
    frequencies = model.vocabulary.log_unigram()
    unigram = None if frequencies is None else score_unigram(model, text, frequencies)
    return Evaluation(zero, carried, streams, unigram)


def score_text(
    model: LanguageModel, sentences: Iterable[list[str]], tell: Callable[[int], None] | None = None
) -> Score:
    """Return the total of `score_sentences`."""
    return total(score_sentences(model, sentences, tell))


def score_sentences(
    model: LanguageModel,
    sentences: Iterable[list[str]],
    tell: Callable[[int], None] | None = None,
) -> Iterator[Score]:
    """Yield the score of each sentence, from the zero state, in the order of the text.

    tell: is called after each batch, with its number of sentences.
    """
    for block in _blocks(sentences):
        scores: dict[int, Score] = {}
        for numbers in batches_of([(len(sentence) + 1,) for sentence in block], BATCH_TOKENS):
            scores |= zip(numbers, score_rows(model, [[block[number]] for number in numbers]))
            if tell is not None:
                tell(len(numbers))
        yield from (scores[number] for number in range(len(block)))


def _blocks(sentences: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    block: list[list[str]] = []
    tokens = 0
    for sentence in sentences:
        block.append(sentence)
        tokens += len(sentence)
        if len(block) == BLOCK_SENTENCES or tokens >= BLOCK_TOKENS:
            yield block
            block, tokens = [], 0
    if block:
        yield block


def score_unigram(
    model: LanguageModel, sentences: Iterable[list[str]], log_probabilities: npt.NDArray[np.float64]
) -> Score:
    """Return the score of a model that knows only `Vocabulary.log_unigram`, on the targets of a biLM."""

    def scores() -> Iterator[Score]:
        for sentence in sentences:
            ids = model.vocabulary.ids(sentence)
            unknown = int(np.count_nonzero(ids == UNKNOWN))
            losses = [-float(log_probabilities[ids].sum() + log_probabilities[end]) for end in (END, START)]
            on_unknown = -float(log_probabilities[ids[ids == UNKNOWN]].sum())
            yield Score(1, len(ids), unknown, (losses[0], losses[1]), (on_unknown, on_unknown))

    return total(scores())
