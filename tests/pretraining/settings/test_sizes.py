"""Sizes of biLMs to train, and the settings that belong to them."""

import pytest

from spacy_elmo.pretraining.config import PathSettings, TrainingSettings
from spacy_elmo.pretraining.presets import SIZES, Size, config_of_size, tuning_config


@pytest.mark.parametrize(
    ("size", "n_filters", "dim", "projection", "n_highway", "parameters"),
    [
        ("tiny", 256, 256, 64, 1, 0.8),
        ("mini", 512, 1024, 128, 1, 5.4),
        ("midi", 1024, 2048, 256, 1, 21.4),
        ("small", 2048, 1024, 128, 1, 13.6),
        ("medium", 2048, 2048, 256, 1, 28.0),
        ("original", 2048, 4096, 512, 2, 93.6),
    ],
)
def test_sizes(size: str, n_filters: int, dim: int, projection: int, n_highway: int, parameters: float) -> None:
    options = SIZES[Size(size)]
    assert (options.n_filters, options.dim, options.projection_dim) == (n_filters, dim, projection)
    assert (options.n_highway, options.n_layers, options.char_dim) == (n_highway, 2, 16)
    assert (options.cell_clip, options.proj_clip, options.use_skip_connections) == (3, 3, True)
    assert round(options.n_parameters / 1e6, 1) == parameters


def test_the_original_is_trained_as_by_its_authors() -> None:
    config = config_of_size(Size.original, PathSettings("a.txt"))
    training = config.training
    assert config.vocabulary.size == 793_471
    assert (training.streams, training.steps, training.dropout, training.epochs) == (384, 20, 0.1, 10)
    assert training.zero_state_share == 0
    assert (training.softmax.kind, training.softmax.negatives) == ("sampled", 8192)
    optimizer = training.optimizer
    assert (optimizer.name, optimizer.learning_rate, optimizer.initial_accumulator) == ("adagrad", 0.2, 1)
    assert (optimizer.clip_norm, optimizer.loss_scale) == (10, 20)
    assert (training.schedule.kind, training.schedule.warmup_steps) == ("constant", 0)
    for size in (Size.mini, Size.midi, Size.small, Size.medium):
        assert config_of_size(size, PathSettings("a.txt")).training == TrainingSettings()


def test_tiny_is_for_small_texts() -> None:
    config = config_of_size(Size.tiny, PathSettings("a.txt"))
    assert (config.training.streams, config.training.softmax.negatives) == (64, 1024)
    assert (config.evaluation.every, config.evaluation.sentences) == (500, 200)
    assert config.training.schedule.warmup_steps == 50


def test_muon_trains_from_random_weights_and_adamw_goes_on_at_a_low_rate() -> None:
    paths = PathSettings("a.txt")
    for size in (Size.tiny, Size.mini, Size.midi, Size.small, Size.medium):
        optimizer = config_of_size(size, paths).training.optimizer
        assert (optimizer.name, optimizer.learning_rate) == ("muon", 0.008)
    optimizer = tuning_config(paths).training.optimizer
    assert (optimizer.name, optimizer.learning_rate) == ("adamw", 0.001)
