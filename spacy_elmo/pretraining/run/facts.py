"""What is known of a run beside its settings: told at its beginning, and in the model card."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...formats.options import BiLMOptions
from ..scoring import Score
from ..text.reading import BadLine


@dataclass(frozen=True)
class TextFacts:
    """A text that was read.

    source: file, folder or pattern, as it was given. sha256: of its sentences, a line each, words between blanks; None
    where it is part of another text. n_bad: lines that could not be used; bad: the first of them.
    """

    source: str
    sentences: int
    tokens: int
    sha256: str | None = None
    n_bad: int = 0
    bad: Sequence[BadLine] = ()


class RunFacts(NamedTuple):
    """words: of the vocabulary; coverage: share of the training text's tokens that are among them, None: not known.

    parameters: of the biLM, without its softmax. total_tokens: length of the run, of one direction, `</S>` counted.
    sampled: whether the loss of training is over sampled words, so that no perplexity comes of it.
    """

    train: TextFacts
    heldout: TextFacts
    words: int
    coverage: float | None
    parameters: int
    total_tokens: int
    processes: int = 1
    sampled: bool = False


class CardFacts(NamedTuple):
    """A model as it is written. tokens, epochs, seconds: of training up to it; score: its own, zero state.

    settings: all of the run's, as they stand in a config; language: of the tokenizer, None: words were separated by
    blanks.
    """

    settings: str
    options: BiLMOptions
    language: str | None
    run: RunFacts
    step: int
    tokens: int
    epochs: float
    seconds: float
    score: Score
