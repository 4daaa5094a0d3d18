"""The settings of a run: what each may be; the file that is read, overridden, refused and written; the help."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run as run_command
from thinc.api import Config

from spacy_elmo.errors import ElmoError, OptionsError, SettingsError
from spacy_elmo.formats import BiLMOptions, write_options
from spacy_elmo.pretraining.config import (
    PathSettings,
    PretrainConfig,
    Section,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
    read_config,
    settings,
    to_config,
    to_text,
    write_config,
)
from spacy_elmo.pretraining.presets import Size, config_of_size

REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"
BILM = """
[bilm]

[bilm.lstm]
dim = 6
projection_dim = 4
n_layers = 1
cell_clip = null
proj_clip = 3
use_skip_connections = true

[bilm.char_cnn]
embedding = {"dim": 3}
filters = [[1, 4], [2, 5]]
n_highway = 1
n_characters = 261
max_characters_per_token = 20
activation = "tanh"
"""
OPTIONS = BiLMOptions(3, ((1, 4), (2, 5)), 1, "tanh", 20, 6, 4, 1, None, 3.0, True)
SHORT = f"""
# a comment
[paths]
train = "train.txt"
{BILM}
[training]
# another
streams = 6

[training.softmax]
kind = "full"
"""
SECTIONS = {section.SECTION: section for section in Section.__subclasses__()}
NOT_WHOLE = [True, 1.0, "1", None, -1, 2**63]
NOT_REAL = [True, "1", None, math.nan, -math.inf, 10**400, 1j]
SHARES = [-0.01, 1.01, *NOT_REAL]
TEXT = to_text(to_config(config_of_size(Size.mini, PathSettings("a.txt"))))


# What a setting may be


ONE_OR_MORE = "corpus.shuffle_block training.streams training.steps training.accumulate training.workers"
ONE_OR_MORE += " training.softmax.negatives evaluation.every evaluation.checkpoint_every evaluation.sentences"
ZERO_OR_MORE = "training.frozen_tokens training.seed training.patience training.schedule.warmup_steps"
OF_ALL = "training.zero_state_share training.schedule.decay_share training.schedule.final_share"
LESS_THAN_ONE = "training.dropout training.optimizer.beta1 training.optimizer.beta2 training.optimizer.momentum"
ABOVE_ZERO = "training.epochs training.optimizer.learning_rate training.optimizer.epsilon"
ABOVE_ZERO += " training.optimizer.clip_norm training.optimizer.loss_scale"
NOT_NEGATIVE = "training.optimizer.weight_decay training.optimizer.initial_accumulator"


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("paths.train", [None, "", 1, ["a"]], ["a"]),
        *((f"paths.{name}", ["", 1, False], [None, "a"]) for name in ("heldout", "vocabulary", "init")),
        ("corpus.language", ["", 1], [None, "en"]),
        ("corpus.heldout_share", [0, 1, *SHARES], [0.5]),
        ("vocabulary.size", [3, *NOT_WHOLE], [4, 2**63 - 1]),
        ("vocabulary.min_count", [0, *(x for x in NOT_WHOLE if x is not None)], [None, 1]),
        ("training.total_tokens", [0, *(x for x in NOT_WHOLE if x is not None)], [None, 1]),
        ("training.precision", ["half", 1, None, ["auto"]], ["auto", "float32", "bfloat16"]),
        ("training.device", ["gpu", None], ["cpu", "cuda"]),
        ("training.softmax.kind", ["none", "adaptive", None, 1], ["sampled", "full"]),
        ("training.optimizer.name", ["adam", None], ["adamw", "muon", "adagrad"]),
        ("training.schedule.kind", ["step", None], ["constant", "linear", "cosine"]),
        *((key, [0, *NOT_WHOLE], [1]) for key in ONE_OR_MORE.split()),
        *((key, NOT_WHOLE, [0, 2**63 - 1]) for key in ZERO_OR_MORE.split()),
        *((key, SHARES, [0, 1]) for key in OF_ALL.split()),
        *((key, [1, *SHARES], [0, 0.99]) for key in LESS_THAN_ONE.split()),
        *((key, [0, -1, *NOT_REAL], [1e-9, 20]) for key in ABOVE_ZERO.split()),
        *((key, [-1, *NOT_REAL], [0, 9]) for key in NOT_NEGATIVE.split()),
    ],
)
def test_each_setting(key: str, bad: list[Any], good: list[Any]) -> None:
    section, name = key.rsplit(".", 1)
    given = {"train": "a"} if section == "paths" else {}
    for value in bad:
        with pytest.raises(SettingsError, match=rf"^{key} is .*\. Expected ") as caught:
            SECTIONS[section](**given | {name: value})
        assert len(str(caught.value)) < 300
    for value in good:
        got = getattr(SECTIONS[section](**given | {name: value}), name)
        assert got == value
        assert isinstance(got, float) == (bad[-1] == 1j)  # whole numbers too where real ones are meant


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"workers": 3, "streams": 3}, "training.workers is 3. Expected 1 or an even number"),
        ({"softmax": SoftmaxSettings(negatives=10)}, "training.softmax.negatives is 10. Expected at most "),
        ({"frozen_tokens": 1}, "training.frozen_tokens is 1. Expected 0 where paths.init"),
    ],
)
def test_what_can_not_be_together(training: dict[str, Any], message: str) -> None:
    settings = TrainingSettings(**{"softmax": SoftmaxSettings(negatives=9)} | training)
    with pytest.raises(SettingsError) as caught:
        PretrainConfig(PathSettings("a"), OPTIONS, vocabulary=VocabularySettings(9), training=settings)
    assert str(caught.value).startswith(message)


# The file


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text("a b\n", encoding="utf8")
    (tmp_path / "short.cfg").write_text(SHORT, encoding="utf8")
    return tmp_path


def read(text: str, overrides: dict[str, Any] | None = None) -> PretrainConfig:
    Path("run.cfg").write_text(text, encoding="utf8")
    return read_config("run.cfg", overrides)


def refused(text: str, overrides: dict[str, Any] | None = None, kind: type[ElmoError] = SettingsError) -> str:
    with pytest.raises(ElmoError) as caught:
        read(text, overrides)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message.startswith("run.cfg: ")
    assert message.count("run.cfg") == 1
    return message.removeprefix("run.cfg: ")


def test_defaults_fill_what_is_left_out() -> None:
    config = read(SHORT)
    assert config.bilm == OPTIONS
    assert config.paths.train == "train.txt"
    training = TrainingSettings(streams=6, softmax=SoftmaxSettings(kind="full"))
    assert config == replace(PretrainConfig(config.paths, OPTIONS), training=training)


def test_overrides_reach_sections_that_are_not_in_the_file() -> None:
    overrides = {"training.optimizer.name": "adagrad", "training.softmax.negatives": 5, "bilm.lstm.dim": 8}
    config = read(SHORT, overrides | {"training.epochs": 2, "bilm.char_cnn.embedding.dim": 7})
    assert (config.training.optimizer.name, config.training.epochs) == ("adagrad", 2)
    assert config.training.softmax == SoftmaxSettings("full", 5)
    assert (config.bilm.dim, config.bilm.char_dim) == (8, 7)


def test_settings_of_earlier_versions_change_nothing() -> None:
    """Unless they ask for the adaptive softmax."""
    earlier = SHORT.replace('kind = "full"', 'kind = "full"\ncutoffs = [2000, 10000]')
    assert earlier != SHORT
    assert read(earlier) == read(SHORT)
    message = refused(earlier.replace('"full"', '"adaptive"'))
    assert message.startswith('training.softmax.kind is \'adaptive\'. Expected "sampled" or "full": the adaptive')
    assert "Start a new run" in message


def test_variables() -> None:
    text = SHORT.replace("[paths]", '[paths]\nheldout = ${paths.train}\ninit = "${paths.train}.d/x"')
    Path("b.txt.d", "x").mkdir(parents=True)
    Path("b.txt").write_text("b\n", encoding="utf8")
    config = read(text, {"paths.train": "b.txt", "training.accumulate": "${training.patience}", "training.patience": 4})
    assert config.paths.heldout == "b.txt"
    assert config.paths.init == "b.txt.d/x"
    assert config.training.accumulate == 4
    assert read(SHORT, {"training.steps": "${evaluation.every}"}).training.steps == config.evaluation.every


def test_a_bilm_to_go_on_from_gives_the_sizes() -> None:
    Path("model").mkdir()
    write_options("model/options.json", OPTIONS)
    text = SHORT.replace(BILM, 'init = "model"')
    assert read(text).bilm == OPTIONS
    Path("model/options.json").unlink()
    assert "options.json" in refused(text, kind=OptionsError)
    assert refused(SHORT.replace(BILM, "")).startswith("the section [bilm] is missing. Expected ")


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("training.streems", "training.streams"),
        ("training.negatives", "training.softmax.negatives"),
        ("bilm.lstm.dims", "bilm.lstm.dim"),
    ],
)
def test_unknown_names_are_refused(key: str, nearest: str) -> None:
    """The file is not at fault for those of the command line, so the message does not begin with its name."""
    section, _, name = key.rpartition(".")
    head = f"\n[{section}]\n"
    written = SHORT.replace(head, f"{head}{name} = 1\n") if head in SHORT else f"{SHORT}{head}{name} = 1\n"
    with pytest.raises(SettingsError, match=r"^no such settings: .*, given on the command line") as option:
        read(SHORT, {key: 1})
    for message in (str(option.value), refused(written)):
        got, told = message.removeprefix("no such settings: ").split(" (nearest: ", 1)
        assert key.startswith(got)
        assert nearest in told.split(")")[0].split(", ")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"training.total_tokens": 0.5}, "training.total_tokens is 0.5. Expected a whole number, 1 or more, or null."),
        ({"training.device": "tpu"}, 'training.device is \'tpu\'. Expected one of "cpu", "cuda".'),
        ({"training.dropout": 1}, "training.dropout is 1. Expected a number, 0 or more and less than 1."),
        (
            {"training.streams": {"a": 1}},
            "training.streams is {'a': 1}. Expected a whole number, 1 or more and at most 1,000,000.",
        ),
        ({"training.softmax": 3}, "training.softmax is 3. Expected the section [training.softmax]."),
        ({"paths.train": None}, "paths.train is missing. Expected a value for it"),
        ({"paths.train": "${nothing.x}"}, "not a configuration ("),
        ({"paths.train": "${paths.train}"}, "not a configuration ("),
    ],
)
def test_values_are_refused(overrides: dict[str, Any], message: str) -> None:
    assert refused(SHORT, overrides).startswith(message)


def test_sizes_are_refused() -> None:
    assert refused(SHORT, {"bilm.lstm.dim": -6}, OptionsError).startswith("[bilm]: lstm.dim is -6. Expected ")
    assert "char_cnn.activation" in refused(SHORT.replace('activation = "tanh"', ""), kind=OptionsError)
    assert "lstm is None" in refused(SHORT, {"bilm.lstm": None}, OptionsError)


@pytest.mark.parametrize(
    "text", ["x", "[paths]\ntrain = 1\ntrain = 2", "[a.b]\nc = 1", "[[", "\0", "[paths.*.b]\nc = 1"]
)
def test_what_is_no_configuration(text: str) -> None:
    message = refused(text)
    assert message.startswith("not a configuration (")
    assert "\n" not in message


def test_what_is_written_reads_the_same() -> None:
    Path('odd $ na"me é.txt').write_text("a\n", encoding="utf8")
    overrides: dict[str, Any] = {
        "paths.train": 'odd $ na"me é.txt',
        "paths.heldout": "train.txt",
        "training.optimizer.epsilon": 1e-12,
        "training.total_tokens": 10**15,
        "corpus.language": "en",
    }
    config = read(SHORT, overrides)
    write_config(config, "whole.cfg")
    assert read_config("whole.cfg") == config
    assert Config().from_disk("whole.cfg") == to_config(config)  # by thinc alone, too
    assert not list(Path().glob(".*"))


# The help


def test_every_setting_has_a_help_text_of_its_own() -> None:
    """The settings are read from a config without the package's help."""
    section, keys = "", []
    for line in TEXT.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line and not section.startswith("bilm"):
            keys.append(f"{section}.{line.split(' = ')[0]}")
    found = [setting for setting in settings() if "." in setting.key]
    assert [setting.key for setting in found] == keys
    assert len({setting.help for setting in found}) == len(found)


def test_the_reference_has_the_table() -> None:
    """If it fails: put the table that it prints in its place."""
    # what is code in Markdown: values in quotes, boundaries, null, names of settings and files
    code = r'"\w+"|</?\w+>|\bnull\b|\b[a-z]+\.[a-z_]+\b|\b[a-z]+_[a-z_]+\b'
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for key, default, text in settings():
        if "." in key:
            meaning = re.sub(code, r"`\g<0>`", text)
            lines.append(f"| `{key}` | {f'`{default}`' if default else 'required'} | {meaning} |")
    table = "\n".join(lines)
    print(table)
    assert f"\n{table}\n\n" in REFERENCE.read_text(encoding="utf8")


def test_the_command_tells_of_every_setting() -> None:
    told = run_command("elmo", "pretrain", "--help")
    for key, default, text in settings():
        if "." in key:
            expected = "required" if key == "paths.train" else f"default: {default}"
            assert f"--{key}: {text} ({expected})" in told
