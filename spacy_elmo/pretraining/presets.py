"""Settings for each size of network, and how large a text is, which they fit."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ..formats.options import BiLMOptions
from ..text.stream import Fields, Report, read_sentences
from .config import (
    CorpusSettings,
    EvaluationSettings,
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    ScheduleSettings,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)
from .prepared import heldout_sentences
from .vocabulary import SPECIAL

if TYPE_CHECKING:
    from typing import Unpack  # of Python 3.11

_OFFICIAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class Size(str, Enum):
    """Sizes of en_mini, en_core, the official models, and one for a first try."""

    tiny = "tiny"
    mini = "mini"
    midi = "midi"
    small = "small"
    medium = "medium"
    original = "original"


_MINI = BiLMOptions(
    char_dim=16,
    filters=_OFFICIAL_FILTERS[:5],
    n_highway=1,
    activation="relu",
    max_characters=50,
    dim=1024,
    projection_dim=128,
    n_layers=2,
    cell_clip=3.0,
    proj_clip=3.0,
    use_skip_connections=True,
)
SIZES = {
    Size.tiny: replace(_MINI, filters=((1, 16), (2, 16), (3, 32), (4, 64), (5, 128)), dim=256, projection_dim=64),
    Size.mini: _MINI,
    Size.midi: replace(_MINI, filters=_OFFICIAL_FILTERS[:6], dim=2048, projection_dim=256),
    Size.small: replace(_MINI, filters=_OFFICIAL_FILTERS),
    Size.medium: replace(_MINI, filters=_OFFICIAL_FILTERS, dim=2048, projection_dim=256),
    Size.original: replace(_MINI, filters=_OFFICIAL_FILTERS, n_highway=2, dim=4096, projection_dim=512),
}

# Peters et al. 2018 and the settings of bilm-tf; the loss is multiplied by the steps, as theirs is
_ORIGINAL_TRAINING = TrainingSettings(
    streams=384,  # 128 on each of 3 GPUs
    steps=20,
    zero_state_share=0.0,
    dropout=0.1,
    epochs=10.0,
    softmax=SoftmaxSettings(negatives=8192),
    optimizer=OptimizerSettings(name="adagrad", learning_rate=0.2, clip_norm=10.0, loss_scale=20.0),
    schedule=ScheduleSettings(kind="constant", warmup_steps=0),
)

_WORDS = VocabularySettings(min_count=None)  # so that <UNK> is learned from a small text too

# a text of some ten thousand sentences has a few hundred updates
_TINY_TRAINING = TrainingSettings(  # one worker: two would mostly wait for each other
    streams=64, softmax=SoftmaxSettings(negatives=1024), schedule=ScheduleSettings(warmup_steps=50), workers=1
)
# so that an evaluation costs at most a tenth of the updates before it: see `fit`
_TINY_EVALUATION = EvaluationSettings(every=500, checkpoint_every=100, sentences=200)
# a low rate, falling from the beginning: a higher one loses what the biLM knows. There Muon is no better than AdamW
_TUNING = TrainingSettings(
    epochs=1.0,
    optimizer=OptimizerSettings(name="adamw", learning_rate=0.001),
    schedule=ScheduleSettings(warmup_steps=100, decay_share=1.0),
)
_TUNING_EVALUATION = EvaluationSettings(every=500, checkpoint_every=250)


def tuning_config(paths: PathSettings, language: str | None = None) -> PretrainConfig:
    """All settings of a run that goes on from paths.init. Their sizes mean nothing."""
    return PretrainConfig(paths, _MINI, CorpusSettings(language), _WORDS, _TUNING, _TUNING_EVALUATION)


def config_of_size(size: Size, paths: PathSettings, language: str | None = None) -> PretrainConfig:
    """All settings of a run that starts from random weights."""
    config = PretrainConfig(paths, SIZES[size], CorpusSettings(language), _WORDS)
    if size is Size.tiny:
        return replace(config, training=_TINY_TRAINING, evaluation=_TINY_EVALUATION)
    if size is Size.original:
        return replace(config, vocabulary=replace(_WORDS, size=793_471), training=_ORIGINAL_TRAINING)
    return config


# How large a text is

MOST_WORDS = 60_000  # distinct words that are counted, more than most vocabularies have
_UNSPACED = 4.0  # tokens of a blank-separated word, from which on blanks do not separate words: English has 1.2
_SAMPLED = 1_000  # sentences that are tokenised, to know how many tokens a blank-separated word makes


class TextSize(NamedTuple):
    """How large a text is, or the part of it that was counted.

    words, repeated: distinct words, MOST_WORDS at most, and those that occur twice or more often.
    """

    sentences: int
    tokens: int
    complete: bool = True
    words: int = MOST_WORDS
    repeated: int = MOST_WORDS


def count_text(
    source: str,
    language: str | None,
    enough: int,
    least: int = 0,
    report: Report | None = None,
    **fields: Unpack[Fields],
) -> TextSize:
    """Count the sentences and tokens of a text until there are `enough` tokens and `least` sentences.

    Words are counted at blanks: spaCy's tokenizer is much slower, and 1,000 sentences tell how many tokens it makes.
    report: its counts are raised, as by `read_sentences`. fields: its text_column and text_field.
    """
    ratio = 1.0 if language is None else _n_words(source, language, fields) / _n_words(source, None, fields)
    sentences = words = 0
    complete, distinct, repeated = True, set[str](), set[str]()

    def add(sentence: list[str]) -> None:
        for word in sentence:
            (repeated if word in distinct else distinct).add(word)

    for sentence in read_sentences(source, report=report, **fields):
        if words * ratio >= enough and sentences >= least:
            complete = False
            break
        sentences += 1
        words += len(sentence)
        if ratio < _UNSPACED and len(distinct) < MOST_WORDS:
            add(sentence)
    if ratio >= _UNSPACED:
        for sentence in islice(read_sentences(source, language, **fields), sentences):
            add(sentence)
            if len(distinct) >= MOST_WORDS:
                break
    numbers = (min(len(found), MOST_WORDS) for found in (distinct, repeated))
    return TextSize(sentences, round(words * ratio), complete, *numbers)


def _n_words(source: str, language: str | None, fields: Fields) -> int:
    return sum(map(len, islice(read_sentences(source, language, **fields), _SAMPLED)))


# Settings that fit it

# Tuning en_mini to 3,000 sentences brought little in 20 updates, and much more in 317 (docs/pretraining.md).
_ENOUGH_UPDATES = 500  # streams are lowered until a run has that many
_FEW_UPDATES = 200  # epochs are raised until a run has that many
_LEAST_STREAMS = 16
_MOST_EPOCHS = 5.0  # of a config without a text, if it trains from random weights
_PART = 10  # warm-up, time between evaluations, and the cost of one: at most this part of the updates
# A sampled softmax needs more words than it draws. Words at blanks, punctuation included, are more than the
# tokenizer's.
_WORDS_PER_NEGATIVE = 2
# A token that is evaluated costs as much as that many trained ones, because it runs through the full softmax: 2 were
# measured for en_mini with 50,000 words. In a narrow network that softmax is most of the work. Multiplications give
# about 3, and those of the training may be in bfloat16; 8 is a bound.
_EVALUATION_COST, _NARROW_EVALUATION_COST, _NARROW = 2, 8, 512


class Fit(NamedTuple):
    """All settings, the updates with the settings that were given, and those with `config`."""

    config: PretrainConfig
    before: int
    updates: int


def enough_tokens(config: PretrainConfig) -> int:
    """Return how many tokens a text must have so that `fit` changes nothing."""
    training = config.training
    share = 1.0 if config.paths.heldout is not None else 1 - config.corpus.heldout_share
    return math.ceil(_enough_updates(config) * training.tokens_per_update / training.epochs / share) + 1


def enough_sentences(config: PretrainConfig) -> int:
    """Return how many sentences a text must have so that `fit` does not change the streams."""
    streams = config.training.streams
    return streams if config.paths.heldout is not None else math.ceil(streams / (1 - config.corpus.heldout_share)) + 1


def fit(config: PretrainConfig, size: TextSize, own_words: bool = True) -> Fit:
    """Return settings that fit a text, as docs/pretraining.md tells ("What the size of the text changes").

    config: settings for a large text, with epochs and not total_tokens.
    size: of the training text, with the sentences that will be held out if paths.heldout is null.
    own_words: whether the vocabulary is built from the text.
    """
    training, evaluation, vocabulary = config.training, config.evaluation, config.vocabulary
    if own_words and training.softmax.kind == "sampled":
        words = size.words
        if vocabulary.min_count is None and words < min(MOST_WORDS, vocabulary.size - len(SPECIAL)):
            words = size.repeated  # as `least_count` may choose
        if words < _WORDS_PER_NEGATIVE * training.softmax.negatives:
            training = replace(training, softmax=replace(training.softmax, kind="full"))
    cut_off, sentences = config.corpus.heldout_share if config.paths.heldout is None else 0.0, size.sentences
    if cut_off:
        sentences -= heldout_sentences(sentences, cut_off)
    tokens = (size.tokens + size.sentences) * (1 - cut_off)  # each sentence has a `</S>`

    def updates() -> int:
        return max(1, round(tokens * training.epochs / training.tokens_per_update))

    before = updates()
    if not size.complete:
        return Fit(replace(config, training=training), before, before)
    if training.streams > sentences:
        training = replace(training, streams=1 << max(0, sentences.bit_length() - 1))
    if before >= _enough_updates(config):
        return Fit(replace(config, training=training), before, updates())
    enough = _ENOUGH_UPDATES * training.steps * training.accumulate / training.epochs
    while tokens < enough * training.streams and training.streams // 2 >= _LEAST_STREAMS:
        training = replace(training, streams=training.streams // 2)
    wanted = _FEW_UPDATES * training.tokens_per_update / max(1.0, tokens)
    if training.epochs < wanted:
        training = replace(training, epochs=max(training.epochs, min(_MOST_EPOCHS, float(math.ceil(wanted)))))
    warmup = min(training.schedule.warmup_steps, updates() // _PART)
    training = replace(training, schedule=replace(training.schedule, warmup_steps=warmup))
    every = min(evaluation.every, max(1, updates() // _PART))
    length = tokens / max(1, size.sentences)  # mean tokens of a sentence
    cost = _NARROW_EVALUATION_COST if config.bilm.dim < _NARROW else _EVALUATION_COST
    affordable = every * training.tokens_per_update / (_PART * cost * max(1.0, length))
    evaluation = replace(
        evaluation,
        every=every,
        checkpoint_every=min(evaluation.checkpoint_every, every),
        sentences=min(evaluation.sentences, max(1, int(affordable))),
    )
    return Fit(replace(config, training=training, evaluation=evaluation), before, updates())


def _enough_updates(config: PretrainConfig) -> int:
    return max(_ENOUGH_UPDATES, _PART * config.training.schedule.warmup_steps, _PART * config.evaluation.every)
