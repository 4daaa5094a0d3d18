"""Sizes of biLMs to train, and the settings that belong to them."""

from dataclasses import replace
from enum import Enum

from ...formats.options import BiLMOptions
from .config import PretrainConfig
from .sections import (
    CorpusSettings,
    EvaluationSettings,
    OptimizerSettings,
    PathSettings,
    ScheduleSettings,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)

_OFFICIAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class Size(str, Enum):
    """tiny: for a first try; mini, midi: those of en_mini and en_midi; the others: those of the official models."""

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
_TINY_TRAINING = TrainingSettings(
    streams=64, softmax=SoftmaxSettings(negatives=1024), schedule=ScheduleSettings(warmup_steps=50)
)
# so that an evaluation costs at most a tenth of the updates before it: see fitting.py
_TINY_EVALUATION = EvaluationSettings(every=500, checkpoint_every=100, sentences=200)
# a low rate, falling from the beginning: a higher one loses what the biLM knows. There Muon is no better than AdamW
_TUNING = TrainingSettings(
    epochs=1.0,
    optimizer=OptimizerSettings(name="adamw", learning_rate=0.001),
    schedule=ScheduleSettings(warmup_steps=100, decay_share=1.0),
)
_TUNING_EVALUATION = EvaluationSettings(every=500, checkpoint_every=250)


def tuning_config(paths: PathSettings, language: str | None = None) -> PretrainConfig:
    """All settings of a run that goes on from paths.init; the sizes mean nothing."""
    return PretrainConfig(paths, _MINI, CorpusSettings(language), _WORDS, _TUNING, _TUNING_EVALUATION)


def config_of_size(size: Size, paths: PathSettings, language: str | None = None) -> PretrainConfig:
    """All settings of a run: its authors' for original, those for little text for tiny, the defaults for the others."""
    corpus = CorpusSettings(language=language)
    if size is Size.tiny:
        return PretrainConfig(paths, SIZES[size], corpus, _WORDS, _TINY_TRAINING, _TINY_EVALUATION)
    if size is not Size.original:
        return PretrainConfig(paths, SIZES[size], corpus, _WORDS)
    return PretrainConfig(paths, SIZES[size], corpus, replace(_WORDS, size=793_471), _ORIGINAL_TRAINING)
