"""What is known about a run beside its settings, for the messages at its start and for model cards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...formats.characters import MAX_CHARACTERS
from ...formats.options import BiLMOptions
from ...formats.text.lines import BadLine
from ..scoring import Score


@dataclass(frozen=True)
class TextFacts:
    """A text that a run reads.

    source: file, folder or pattern, as in the settings.
    sentences: their number.
    tokens: number of words.
    sha256: of the sentences, a line each with words separated by blanks; None if it is a part of another text.
    n_bad: lines that were left out, because they can't be used.
    bad: the first ten of these.
    """

    source: str
    sentences: int
    tokens: int
    sha256: str | None = None
    n_bad: int = 0
    bad: Sequence[BadLine] = ()


class InitFacts(NamedTuple):
    """The biLM that a run tunes.

    name: paths.init.
    sha256: of its weights; None if run.json has none.
    language: that its model card names; None if it names none.
    """

    name: str
    sha256: str | None
    language: str | None


class RunFacts(NamedTuple):
    """What is known about a run at its start.

    train, heldout: its texts.
    words: size of the vocabulary.
    coverage: share of the training text's tokens that are in the vocabulary; None if it is unknown.
    parameters: of the biLM, without its softmax.
    total_tokens: length of the run, in tokens of one direction, `</S>` counted.
    processes: their number.
    sampled: whether the training loss is over sampled words, so that its exponential is no perplexity.
    readers: which programs can read the biLM, as a line.
    max_characters: positions per word of the biLM, two more than the bytes that it reads.
    cut_share: share of the training text's words with more bytes than that.
    heldout_unknown: share of the held-out text's words that are not in the vocabulary.
    init: the biLM that it tunes; None for one that begins with random weights.
    scored: held-out sentences that are scored during the run; None: all.
    """

    train: TextFacts
    heldout: TextFacts
    words: int
    coverage: float | None
    parameters: int
    total_tokens: int
    processes: int = 1
    sampled: bool = False
    readers: str = ""
    max_characters: int = MAX_CHARACTERS
    cut_share: float = 0.0
    heldout_unknown: float = 0.0
    init: InitFacts | None = None
    scored: int | None = None


class CardFacts(NamedTuple):
    """What a model card tells.

    settings: all settings of the run, in the format of a config file.
    options: sizes of the network.
    language: of the spaCy tokenizer; None if words were separated by blanks.
    run: what is known about the run.
    step: updates so far.
    tokens: tokens of one direction so far, `</S>` counted.
    epochs: the same as a multiple of the training text.
    seconds: of training and evaluation so far.
    score: of this model on held-out text, zero state.
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
