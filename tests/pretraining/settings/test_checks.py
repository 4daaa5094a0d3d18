"""What settings may be, by themselves and together."""

import math
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import pytest

from spacy_elmo.errors import SettingsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining.config import (
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

BILM = BiLMOptions(
    char_dim=3,
    filters=((1, 4),),
    n_highway=0,
    activation="relu",
    max_characters=20,
    dim=6,
    projection_dim=4,
    n_layers=1,
    cell_clip=None,
    proj_clip=None,
    use_skip_connections=False,
)
SECTIONS = {
    "paths": PathSettings,
    "corpus": CorpusSettings,
    "vocabulary": VocabularySettings,
    "training": TrainingSettings,
    "training.softmax": SoftmaxSettings,
    "training.optimizer": OptimizerSettings,
    "training.schedule": ScheduleSettings,
    "evaluation": EvaluationSettings,
}
NOT_WHOLE = [True, 1.0, "1", None, [1], -1, 2**63, 10**400]
NOT_REAL = [True, "1", None, [1.0], math.nan, math.inf, -math.inf, 10**400, -(10**400), 1j]
SHARES = [-0.01, 1.01, *NOT_REAL]


def refused(section: str, name: str, value: Any) -> str:
    given = {"train": "a"} if section == "paths" else {}
    with pytest.raises(SettingsError) as caught:
        SECTIONS[section](**given | {name: value})
    message = str(caught.value)
    assert message.startswith(f"{section}.{name} is ")
    assert ". Expected " in message
    return message


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("paths.train", [None, "", 1, ["a"]], ["a"]),
        ("paths.heldout", ["", 1, False], [None, "a"]),
        ("paths.vocabulary", ["", 1], [None, "a"]),
        ("paths.init", ["", 1], [None, "a"]),
        ("corpus.language", ["", 1], [None, "en"]),
        ("corpus.heldout_share", [0, 1, *SHARES], [0.5]),
        ("corpus.shuffle_block", [0, *NOT_WHOLE], [1]),
        ("vocabulary.size", [3, *NOT_WHOLE], [4, 2**63 - 1]),
        ("vocabulary.min_count", [0, *(x for x in NOT_WHOLE if x is not None)], [None, 1]),
        ("training.streams", [0, *NOT_WHOLE], [1]),
        ("training.steps", [0, *NOT_WHOLE], [1]),
        ("training.zero_state_share", SHARES, [0, 1]),
        ("training.dropout", [1, *SHARES], [0, 0.99]),
        ("training.epochs", [0, -1, *NOT_REAL], [0.1, 3]),
        ("training.total_tokens", [0, *(x for x in NOT_WHOLE if x is not None)], [None, 1]),
        ("training.accumulate", [0, *NOT_WHOLE], [1]),
        ("training.frozen_tokens", NOT_WHOLE, [0, 5]),
        ("training.workers", [0, *NOT_WHOLE], [1]),
        ("training.precision", ["half", 1, None, ["auto"]], ["auto", "float32", "bfloat16"]),
        ("training.device", ["gpu", None], ["cpu", "cuda"]),
        ("training.seed", NOT_WHOLE, [0, 2**63 - 1]),
        ("training.patience", NOT_WHOLE, [0]),
        ("training.softmax.kind", ["none", None, 1], ["sampled", "full", "adaptive"]),
        ("training.softmax.negatives", [0, *NOT_WHOLE], [1]),
        ("training.softmax.cutoffs", [[], [3], [4, 4], [9, 5], [4, 5.5], [4, 2**63], 4, None, "45"], [[4, 5], (9,)]),
        ("training.optimizer.name", ["adam", None], ["adamw", "muon", "adagrad"]),
        ("training.optimizer.learning_rate", [0, -1, *NOT_REAL], [1e-9]),
        ("training.optimizer.beta1", [1, *SHARES], [0]),
        ("training.optimizer.beta2", [1, *SHARES], [0]),
        ("training.optimizer.epsilon", [0, *NOT_REAL], [1e-30]),
        ("training.optimizer.momentum", [1, *SHARES], [0]),
        ("training.optimizer.weight_decay", [-1, *NOT_REAL], [0, 9]),
        ("training.optimizer.initial_accumulator", [-1, *NOT_REAL], [0, 9]),
        ("training.optimizer.clip_norm", [0, *NOT_REAL], [9]),
        ("training.optimizer.loss_scale", [0, *NOT_REAL], [20]),
        ("training.schedule.kind", ["step", None], ["constant", "linear", "cosine"]),
        ("training.schedule.warmup_steps", NOT_WHOLE, [0]),
        ("training.schedule.decay_share", SHARES, [0, 1]),
        ("training.schedule.final_share", SHARES, [0, 1]),
        ("evaluation.every", [0, *NOT_WHOLE], [1]),
        ("evaluation.checkpoint_every", [0, *NOT_WHOLE], [1]),
        ("evaluation.sentences", [0, *NOT_WHOLE], [1]),
    ],
)
def test_each_setting(key: str, bad: list[Any], good: list[Any]) -> None:
    section, name = key.rsplit(".", 1)
    for value in bad:
        refused(section, name, value)
    for value in good:
        given = {"train": "a"} if section == "paths" else {}
        got = getattr(SECTIONS[section](**given | {name: value}), name)
        assert got == (tuple(value) if isinstance(value, list) else value)


def test_every_setting_is_checked() -> None:
    for name, section in SECTIONS.items():
        assert name == section.SECTION
        hints = get_type_hints(section)
        for field in fields(section):
            assert is_dataclass(hints[field.name]) != ("rule" in field.metadata)


def test_whole_numbers_become_real_ones_where_these_are_meant() -> None:
    assert isinstance(TrainingSettings(epochs=3).epochs, float)
    assert isinstance(SoftmaxSettings(cutoffs=[5, 9]).cutoffs, tuple)


def test_the_messages() -> None:
    assert refused("training.optimizer", "beta1", 1) == (
        "training.optimizer.beta1 is 1. Expected a number, 0 or more and less than 1."
    )
    assert refused("training", "total_tokens", 0.5) == (
        "training.total_tokens is 0.5. Expected a whole number, 1 or more, or null."
    )
    assert refused("training", "device", "tpu") == 'training.device is \'tpu\'. Expected one of "cpu", "cuda".'
    assert len(refused("training", "streams", "x" * 10_000)) < 300


@pytest.mark.parametrize(
    ("training", "size", "paths", "message"),
    [
        ({"workers": 3, "streams": 3}, 9, {}, "training.workers is 3. Expected 1 or an even number"),
        ({"workers": 4, "streams": 3}, 9, {}, "training.streams is 3. Expected a multiple of 2"),
        ({"softmax": SoftmaxSettings(negatives=10)}, 9, {}, "training.softmax.negatives is 10. Expected at most "),
        ({"softmax": SoftmaxSettings("adaptive", 1, (4, 9))}, 9, {}, "training.softmax.cutoffs is (4, 9). Expected "),
        ({"frozen_tokens": 1}, 9, {"init": None}, "training.frozen_tokens is 1. Expected 0 where paths.init"),
    ],
)
def test_what_can_not_be_together(training: dict[str, Any], size: int, paths: dict[str, Any], message: str) -> None:
    settings = {"softmax": SoftmaxSettings(negatives=9)} | training
    with pytest.raises(SettingsError) as caught:
        PretrainConfig(
            PathSettings("a", **paths), BILM, vocabulary=VocabularySettings(size), training=TrainingSettings(**settings)
        )
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("training", "size", "paths"),
    [
        ({"workers": 1, "streams": 3}, 9, {}),
        ({"workers": 2, "streams": 3}, 9, {}),
        ({"workers": 4, "streams": 6}, 9, {}),
        ({"softmax": SoftmaxSettings("full", 10)}, 9, {}),
        ({"softmax": SoftmaxSettings("adaptive", 10, (4, 8))}, 9, {}),
        ({"softmax": SoftmaxSettings("sampled", 9, (4, 80))}, 9, {}),
        ({"frozen_tokens": 1}, 9, {"init": "folder"}),
    ],
)
def test_what_can_be_together(training: dict[str, Any], size: int, paths: dict[str, Any]) -> None:
    settings = {"softmax": SoftmaxSettings(negatives=9)} | training
    PretrainConfig(
        PathSettings("a", **paths), BILM, vocabulary=VocabularySettings(size), training=TrainingSettings(**settings)
    )
