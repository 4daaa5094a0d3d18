"""Linear probes of the layers of a biLM, and of their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from ...corpus.bilm import EmbeddingBiLM
from ...errors import CorpusError, Errors, shown
from ..rows import Array
from .attributes import ENTITIES, OUTSIDE
from .classifier import fit
from .corpus import LabelledCorpus
from .majority import majority_labels
from .scores import Score, score

OnTokens = Callable[[int], object]  # gets a number of tokens that are done


class Probes:
    """The questions to a biLM: the training part and the part that is scored, without the tokens that have no label.

    train, dev: with labels.
    attribute: name of the labels.
    iterations: of L-BFGS.

    `unknown_tokens` is how many tokens of the part that is scored have a label that the training part lacks. No
    classifier finds these. `labels` are those of the training part, in the order in which they come. Raises CorpusError
    if there is only one, or if none of them is in the part that is scored.
    """

    def __init__(self, train: LabelledCorpus, dev: LabelledCorpus, attribute: str, iterations: int) -> None:
        self.train, self.dev, self.iterations = train, dev, iterations
        self.labels = [label for label in dict.fromkeys(train.labels) if label]
        if len(self.labels) < 2:
            raise CorpusError(Errors.PROBE_ONE_LABEL.format(attribute=shown(attribute), got=shown(self.labels[0])))
        self._outside = OUTSIDE if attribute == ENTITIES else None
        self._train_rows, self._dev_rows = (
            np.flatnonzero([label != "" for label in part.labels]) for part in (train, dev)
        )
        numbers = {label: i for i, label in enumerate(self.labels)}
        self._numbers = torch.tensor([numbers[label] for label in train.labels if label])
        self._gold = [label for label in dev.labels if label]
        self.unknown_tokens = sum(label not in numbers for label in self._gold)
        if self.unknown_tokens == len(self._gold):
            found = [shown(list(dict.fromkeys(labels))) for labels in (self._gold, self.labels)]
            raise CorpusError(Errors.PROBE_UNKNOWN_LABELS.format(got=found[0], known=found[1]))

    @property
    def train_tokens(self) -> int:
        """Number of labelled tokens of the training part."""
        return len(self._train_rows)

    @property
    def dev_tokens(self) -> int:
        """Number of labelled tokens of the part that is scored."""
        return len(self._dev_rows)

    def majority(self) -> Score:
        """Score the most frequent label of each word."""
        training = [pair for pair in zip(self.train.words, self.train.labels) if pair[1]]
        words = [word for word, label in zip(self.dev.words, self.dev.labels) if label]
        return score(majority_labels(training, words), self._gold, self._outside)

    def run(self, bilm: EmbeddingBiLM, progress: OnTokens) -> Iterator[Score]:
        """Embed all tokens, and return an iterator of the score of each layer, and then of their mean.

        A classifier is trained whenever the iterator is asked for a score.

        bilm: the biLM. All layers of the tokens are in memory: layers x tokens x width x 4 bytes.
        progress: is told the number of tokens that were embedded.
        """
        x = _select(embed(bilm, self.train.sentences, progress), self._train_rows)
        y = _select(embed(bilm, self.dev.sentences, progress), self._dev_rows)
        return self._scores(x, y)

    def _scores(self, x: Array, y: Array) -> Iterator[Score]:
        for k in range(len(x)):
            yield self._probe(x[k], y[k])
        yield self._probe(x.mean(0), y.mean(0))

    def _probe(self, x: Array, y: Array) -> Score:
        classifier = fit(torch.from_numpy(x), self._numbers, len(self.labels), self.iterations)
        predicted = classifier.predict(torch.from_numpy(y))
        return score([self.labels[i] for i in predicted.tolist()], self._gold, self._outside)


def embed(bilm: EmbeddingBiLM, sentences: Sequence[Sequence[str]], progress: OnTokens = lambda tokens: None) -> Array:
    """Return the layers of all tokens in order, *Shape:* (layers, tokens, width).

    bilm: the biLM. It reads each sentence from the zero state.
    sentences: lists of words.
    progress: is told the number of tokens of each sentence that was embedded.
    """
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])
    result = np.empty((bilm.options.layers, int(starts[-1]), bilm.options.width), np.float32)
    for i, layers in bilm.embed(sentences):
        result[:, starts[i] : starts[i + 1]] = layers
        progress(layers.shape[1])
    return result


def _select(layers: Array, rows: npt.NDArray[np.intp]) -> Array:
    """Return the layers of some tokens; without a copy if these are all."""
    return layers if len(rows) == layers.shape[1] else layers[:, rows]
