"""The configuration file of a run: read, overridden, refused and written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from thinc.api import Config

from spacy_elmo.errors import ElmoError, OptionsError, SettingsError
from spacy_elmo.formats import BiLMOptions, write_options
from spacy_elmo.pretraining.config import PretrainConfig, SoftmaxSettings, TrainingSettings
from spacy_elmo.pretraining.config_file import read_config, to_config, write_config

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
OPTIONS = BiLMOptions(
    char_dim=3,
    filters=((1, 4), (2, 5)),
    n_highway=1,
    activation="tanh",
    max_characters=20,
    dim=6,
    projection_dim=4,
    n_layers=1,
    cell_clip=None,
    proj_clip=3.0,
    use_skip_connections=True,
)
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


def refused_option(key: str) -> str:
    """The message of a setting on the command line that there is not."""
    with pytest.raises(SettingsError) as caught:
        read(SHORT, {key: 1})
    return str(caught.value)


def test_defaults_fill_what_is_left_out() -> None:
    config = read(SHORT)
    assert config.bilm == OPTIONS
    assert config.paths.train == "train.txt"
    assert config.training == TrainingSettings(streams=6, softmax=SoftmaxSettings(kind="full"))
    assert config == replace(PretrainConfig(config.paths, OPTIONS), training=config.training)


def test_overrides_reach_sections_that_are_not_in_the_file() -> None:
    overrides = {"training.optimizer.name": "adagrad", "training.epochs": 2, "training.softmax.cutoffs": [5, 9]}
    config = read(SHORT, overrides | {"bilm.lstm.dim": 8, "bilm.char_cnn.embedding.dim": 7})
    assert config.training.optimizer.name == "adagrad"
    assert config.training.epochs == 2
    assert config.training.softmax == SoftmaxSettings("full", cutoffs=(5, 9))
    assert (config.bilm.dim, config.bilm.char_dim) == (8, 7)


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
        ("training.softmax.negative", "training.softmax.negatives"),
        ("trainin.streams", "training"),
        ("bilm.lstm.dims", "bilm.lstm.dim"),
        ("bilm.char_cnn.filter", "bilm.char_cnn.filters"),
        ("paths.training", "paths.train"),
    ],
)
def test_unknown_names_are_refused(key: str, nearest: str) -> None:
    """The file is not at fault for those of the command line, so the message does not begin with its name."""
    section, _, name = key.rpartition(".")
    head = f"\n[{section}]\n"
    written = SHORT.replace(head, f"{head}{name} = 1\n") if head in SHORT else f"{SHORT}{head}{name} = 1\n"
    option, of_file = refused_option(key), refused(written)
    assert ("given on the command line" in option, "given on the command line" in of_file) == (True, False)
    for message in (option, of_file):
        got, told = message.removeprefix("no such settings: ").split(" (nearest: ", 1)
        assert key.startswith(got)
        assert nearest in told.split(")")[0].split(", ")


def test_all_unknown_names_are_told_at_once() -> None:
    text = SHORT + "\n[zzz]\nq = 1\n[evaluation]\nsentence = 1\n"
    message = refused(text)
    assert "zzz" in message
    assert "evaluation.sentence (nearest: evaluation.sentences" in message
    assert refused_option("paths.train.x").startswith("no such settings: paths.train.x, given on the command line")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"training.streams": 0}, "training.streams is 0. Expected a whole number, from 1 to 1,000,000."),
        ({"training.streams": {"a": 1}}, "training.streams is {'a': 1}. Expected a whole number"),
        ({"training.softmax": 3}, "training.softmax is 3. Expected the section [training.softmax]."),
        ({"training.workers": 3}, "training.workers is 3. Expected 1 or an even number"),
        ({"paths.train": None}, "paths.train is missing. Expected a value for it"),
        ({"paths.train": 7}, "paths.train is 7. Expected text in quotes."),
        ({"training.steps": 10**9}, "training.steps is 1000000000. Expected a whole number, from 1 to 1,000,000."),
        ({"training.workers": 2048}, "training.workers is 2048. Expected a whole number, from 1 to 1,024."),
        ({"training.epochs": 1e308}, "training.epochs is 1e+308. Expected a number, more than 0 and 1000000.0 or less"),
        ({"training.optimizer.initial_accumulator": 1e300}, "training.optimizer.initial_accumulator is 1e+300. Expec"),
        ({"training.optimizer.loss_scale": 1e7}, "training.optimizer.loss_scale is 10000000.0. Expected a number"),
        ({"paths.train": "${nothing.x}"}, "not a configuration ("),
        ({"paths.train": "${paths.train}"}, "not a configuration ("),
    ],
)
def test_values_are_refused(overrides: dict[str, Any], message: str) -> None:
    assert refused(SHORT, overrides).startswith(message)


def test_a_setting_without_a_section_is_refused() -> None:
    assert refused_option("streams").startswith("--streams: expected a setting in a section")


@pytest.mark.parametrize("name", ["train", "heldout", "vocabulary"])
def test_texts_may_be_gone(name: str) -> None:
    """A run that was begun goes on without them."""
    assert getattr(read(SHORT, {f"paths.{name}": "texts/*.gz"}).paths, name) == "texts/*.gz"


def test_sizes_are_refused() -> None:
    assert refused(SHORT, {"bilm.lstm.dim": -6}, OptionsError).startswith("[bilm]: lstm.dim is -6. Expected ")
    assert "char_cnn.activation" in refused(SHORT.replace('activation = "tanh"', ""), kind=OptionsError)
    assert "lstm is None" in refused(SHORT, {"bilm.lstm": None}, OptionsError)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "x = 1",
        "[paths]\ntrain",
        "[paths]\ntrain = 1\ntrain = 2",
        "[paths]\n[paths]",
        "[a.b]\nc = 1",
        "[[",
        "\0",
        "[paths]\ntrain = ${paths.x",
        "[paths.*.b]\nc = 1",
    ],
)
def test_what_is_no_configuration(text: str) -> None:
    message = refused(text)
    assert message.startswith("not a configuration (")
    assert "\n" not in message


def test_an_empty_one_and_strange_ones() -> None:
    assert refused("").startswith("paths.train is missing")
    assert refused("[*]\na = 1").startswith("no such settings: *")
    assert refused(f"[paths]\ntrain = {'[' * 100_000}")
    Path("run.cfg").write_bytes(b"\xff")
    for path in ("run.cfg", "missing.cfg", "."):
        with pytest.raises(SettingsError, match="not a configuration"):
            read_config(path)


def test_what_is_written_reads_the_same() -> None:
    Path('odd $ na"me é.txt').write_text("a\n", encoding="utf8")
    overrides: dict[str, Any] = {
        "paths.train": 'odd $ na"me é.txt',
        "paths.heldout": "train.txt",
        "training.optimizer.epsilon": 1e-12,
        "training.total_tokens": 10**15,
        "training.softmax.cutoffs": [5, 9],
        "corpus.language": "en",
    }
    config = read(SHORT, overrides)
    write_config(config, "whole.cfg")
    assert read_config("whole.cfg") == config
    assert Config().from_disk("whole.cfg") == to_config(config)  # by thinc alone, too
    assert not list(Path().glob(".*"))


def test_the_file_is_complete_and_in_order() -> None:
    config = to_config(read(SHORT))
    assert list(config) == ["paths", "bilm", "corpus", "vocabulary", "training", "evaluation"]
    assert config["bilm"] == OPTIONS.to_dict()
    write_config(read(SHORT), "whole.cfg")
    lines = Path("whole.cfg").read_text(encoding="utf8").splitlines()
    sections = [line for line in lines if line.startswith("[")]
    assert sections.index("[bilm.lstm]") < sections.index("[corpus]") < sections.index("[training.optimizer]")


def test_a_folder_in_the_way(folder: Path) -> None:
    with pytest.raises(SettingsError, match="is a folder"):
        write_config(read(SHORT), folder)
