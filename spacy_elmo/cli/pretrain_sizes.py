"""Sizes of biLMs to train, and the settings that belong to them."""

from dataclasses import replace
from enum import Enum

from ..formats.options import BiLMOptions
from ..pretraining.config import (
    CorpusSettings,
    OptimizerSettings,
    Paths,
    PretrainConfig,
    ScheduleSettings,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)

_OFFICIAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class Size(str, Enum):
    """mini: the embedded biLM's; the others: those of the official models."""

    mini = "mini"
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
    Size.mini: _MINI,
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


def config_of_size(size: Size, paths: Paths, language: str | None = None) -> PretrainConfig:
    """All settings of a run; those of the original size are its authors', the others the defaults."""
    corpus = CorpusSettings(language=language)
    if size is not Size.original:
        return PretrainConfig(paths, SIZES[size], corpus)
    vocabulary = VocabularySettings(size=793_471)
    return PretrainConfig(paths, SIZES[size], corpus, vocabulary, _ORIGINAL_TRAINING)
