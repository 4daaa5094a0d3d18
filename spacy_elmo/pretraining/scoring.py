"""Perplexities of a biLM on sentences and texts, which it reads with the zero state or with the state carried.

The perplexity of a direction is exp of the mean of -log p(target), in nats, over all its predictions, by the softmax
over all words. model/losses.py defines the predictions of a direction. It runs the network itself: inference's engine
gives the same perplexities (to 1e-7 in float32), but needs a copy of the weights for each evaluation, and more code.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import CorpusError, Errors, SettingsError, WeightsError
from .model.language_model import LanguageModel
from .model.losses import row_losses
from .score_batches import batches, blocks
from .text.spooled import SpooledText
from .text.vocabulary_file import END, START, UNKNOWN

STREAMS = 16  # parts of a text that are read side by side if the state is carried


class Perplexities(NamedTuple):
    """forward, backward: exp of the mean loss of each direction; mean: exp of the mean of both mean losses."""

    forward: float
    backward: float
    mean: float


@dataclass(frozen=True)
class Score:
    """Losses of one sentence or of a text.

    sentences: number of sentences.
    tokens: number of words.
    unknown: number of words outside the vocabulary.
    loss: sums of -log p(target), in nats, over all predictions, forward and backward.
    unknown_loss: the same over the predictions whose target is `<UNK>`.
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
        """The share of words outside the vocabulary; 0 if there are no words."""
        return self.unknown / max(1, self.tokens)

    @property
    def perplexities(self) -> Perplexities:
        """The perplexities over all predictions."""
        return _perplexities(self.loss, self.predictions)

    @property
    def known_perplexities(self) -> Perplexities:
        """The perplexities over predictions whose target is not `<UNK>`. The probabilities are not renormalised."""
        known = (self.loss[0] - self.unknown_loss[0], self.loss[1] - self.unknown_loss[1])
        return _perplexities(known, self.predictions - self.unknown)


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on a text.

    zero: each sentence starts from the zero state.
    carried: the state is carried from sentence to sentence.
    streams: number of parts that the text was cut into for `carried`.
    unigram: of a model that knows only the frequencies of words; None if the vocabulary has no counts.
    """

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
    """Score a text with the zero state, with the state carried, and with a unigram model.

    model: the biLM with its softmax.
    sentences: lists of words. They are read once, and copied to a temporary file.
    streams: see `score_carried`.
    sum_up: gets an iterator over the scores of the sentences (zero state), and returns their total; None: `total`.

    Raises SettingsError if `streams` is less than 1, CorpusError if there is no sentence, and WeightsError if a loss is
    not finite.
    """
    with SpooledText(sentences) as text:
        zero = (sum_up or total)(score_sentences(model, text))
        carried = score_carried(model, text, streams)
        frequencies = model.vocabulary.log_unigram()
        unigram = None if frequencies is None else score_unigram(model, text, frequencies)
        return Evaluation(zero, carried, min(streams, text.n_sentences), unigram)


def score_text(
    model: LanguageModel, sentences: Iterable[list[str]], tell: Callable[[int], None] | None = None
) -> Score:
    """Return the total of `score_sentences`, with the same arguments.

    Raises CorpusError if there is no sentence, WeightsError as it does.
    """
    return total(score_sentences(model, sentences, tell=tell))


def score_sentences(
    model: LanguageModel,
    sentences: Iterable[list[str]],
    *,
    block_sentences: int = 20_000,
    block_tokens: int = 1_000_000,
    batch_tokens: int = 2_048,
    tell: Callable[[int], None] | None = None,
) -> Iterator[Score]:
    """Yield the score of each sentence, from the zero state, in the order of the text.

    The sentences of a block are in memory together, and run through the network sorted by length.

    model: the biLM with its softmax.
    sentences: lists of words.
    block_sentences: largest number of sentences of a block.
    block_tokens: a block ends with the sentence in which it reaches this number of words.
    batch_tokens: positions that run through the network together.
    tell: is called after each batch, with its number of sentences.

    Raises WeightsError if a loss is not finite.
    """
    for block in blocks(sentences, block_sentences, block_tokens):
        scores: list[Score | None] = [None] * len(block)
        for numbers in batches([len(sentence) + 1 for sentence in block], batch_tokens):
            rows = [iter([block[number]]) for number in numbers]
            for number, score in zip(numbers, _score_rows(model, rows, batch_tokens)):
                scores[number] = score
            if tell is not None:
                tell(len(numbers))
        yield from (score for score in scores if score is not None)


def score_carried(
    model: LanguageModel, text: SpooledText, streams: int = STREAMS, *, batch_tokens: int = 2_048
) -> Score:
    """Return the score of a text with the state of each direction carried from sentence to sentence.

    The text is cut into parts of about equally many sentences (`SpooledText.parts`), which are read at the same time.
    Each part starts from the zero state. Both directions read the sentences of a part in order: the backward direction
    reads a sentence from its end to its beginning, and then continues with the next sentence.

    model: the biLM with its softmax.
    text: the sentences.
    streams: number of parts, at most the number of sentences.
    batch_tokens: positions of all parts that run through the network together.

    Raises SettingsError if `streams` is less than 1, CorpusError if there is no sentence, and WeightsError if a loss is
    not finite.
    """
    if streams < 1:
        raise SettingsError(Errors.SCORE_STREAMS.format(got=streams))
    rows = text.parts(min(streams, text.n_sentences)) if text.n_sentences else []
    return total(_score_rows(model, rows, batch_tokens))


def score_unigram(
    model: LanguageModel, sentences: Iterable[list[str]], log_probabilities: npt.NDArray[np.float64]
) -> Score:
    """Return the score of a model that knows only the frequencies of words, on the targets of a biLM.

    model: its vocabulary gives the targets.
    sentences: lists of words.
    log_probabilities: *Shape:* (words,), natural logarithms, as `Vocabulary.log_unigram` returns them.

    Raises CorpusError if there is no sentence.
    """

    def scores() -> Iterator[Score]:
        for sentence in sentences:
            ids = model.ids(sentence)
            unknown = int(np.count_nonzero(ids == UNKNOWN))
            losses = [-float(log_probabilities[ids].sum() + log_probabilities[end]) for end in (END, START)]
            on_unknown = -float(log_probabilities[ids[ids == UNKNOWN]].sum())
            yield Score(1, len(ids), unknown, (losses[0], losses[1]), (on_unknown, on_unknown))

    return total(scores())


def total(scores: Iterable[Score]) -> Score:
    """Return the sum of scores. Raises CorpusError if there are no sentences."""
    sums = np.zeros(7)
    for s in scores:
        sums += (s.sentences, s.tokens, s.unknown, *s.loss, *s.unknown_loss)
    if not sums[0]:
        raise CorpusError(Errors.SCORE_NO_SENTENCES)
    sentences, tokens, unknown, *losses = sums.tolist()
    forward, backward, unknown_forward, unknown_backward = losses
    return Score(int(sentences), int(tokens), int(unknown), (forward, backward), (unknown_forward, unknown_backward))


def _score_rows(model: LanguageModel, rows: Sequence[Iterator[list[str]]], batch_tokens: int) -> list[Score]:
    """Return the score of each row (see `row_losses`). Raises WeightsError if a loss is not finite."""
    counts, losses, unknown_losses = row_losses(model, rows, batch_tokens)
    if not np.isfinite(losses).all():
        raise WeightsError(Errors.SCORE_NOT_FINITE)
    return [
        Score(int(ends), int(predictions - ends), int(unknown), (loss[0], loss[1]), (on_unknown[0], on_unknown[1]))
        for (predictions, unknown, ends), loss, on_unknown in zip(counts, losses.tolist(), unknown_losses.tolist())
    ]


def _perplexities(loss: tuple[float, float], predictions: int) -> Perplexities:
    means = (loss[0] / predictions, loss[1] / predictions)
    return Perplexities(_exp(means[0]), _exp(means[1]), _exp((means[0] + means[1]) / 2))


def _exp(mean_loss: float) -> float:
    try:
        return math.exp(mean_loss)
    except OverflowError:
        return math.inf
