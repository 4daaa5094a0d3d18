"""Where a model's files are: a folder, en_mini with its softmax in a package of its own, or a package with both."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from bilm_package import install_bilm
from embedded_case import OPTIONS, TEXT, WORDS, embed, install, make_package, model_of
from starts import check_paths, check_start, find_vocabulary, starting_model

from spacy_elmo import bilms
from spacy_elmo.errors import SettingsError, WeightsError
from spacy_elmo.modules.loading import find_bilm, is_embedded
from spacy_elmo.pretraining import language_model
from spacy_elmo.pretraining.config import PathSettings, PretrainConfig, SoftmaxSettings, TrainingSettings
from spacy_elmo.pretraining.config_file import read_config
from spacy_elmo.pretraining.language_model import LanguageModel, has_softmax, softmax_folder
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare

NAME = "en_mini"


@pytest.fixture
def bilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """en_mini without its softmax."""
    monkeypatch.chdir(tmp_path)
    return embed(monkeypatch, tmp_path / "bilms" / "en_mini")


@pytest.fixture
def package(tmp_path: Path, bilm: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package of its softmax. Its module has a new name each time, since a name is imported only once."""
    name = f"softmax_package_{tmp_path.name.replace('-', '_')}"
    return make_package(monkeypatch, tmp_path / "site" / name, bilm / "weights.hdf5")


@pytest.fixture
def corpus(tmp_path: Path) -> PreparedCorpus:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    return prepare(tmp_path / "text.txt", tmp_path / "prepared")


def config_of(init: str = NAME, **training: int) -> PretrainConfig:
    settings = TrainingSettings(softmax=SoftmaxSettings("full"), **training)  # type: ignore[arg-type]
    return PretrainConfig(PathSettings("text.txt", init=init), OPTIONS, training=settings)


def assert_same(model: LanguageModel, expected: LanguageModel) -> None:
    assert model.words == expected.words
    for one, other in ((model.bilm, expected.bilm), (model.softmax, expected.softmax)):
        for name, values in other.state_dict().items():
            assert torch.equal(one.state_dict()[name], values), name


def test_a_folder_is_itself(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        assert find_bilm(path) == softmax_folder(str(path)) == path
        assert not is_embedded(path)
        assert not has_softmax(path)


def test_the_name_with_the_package(bilm: Path, package: Path) -> None:
    assert (find_bilm(NAME), softmax_folder(Path(NAME))) == (bilm, package)
    assert is_embedded(NAME)
    assert has_softmax(NAME)
    model = LanguageModel.load(NAME)
    assert_same(model, model_of())
    assert model.vocabulary.counts is not None
    assert model.vocabulary.counts.tolist() == model_of().vocabulary.counts.tolist()  # type: ignore[union-attr]


def test_a_folder_of_that_name_wins(tmp_path: Path, package: Path) -> None:
    model_of(seed=3).save(tmp_path / NAME)  # in the working folder
    assert not is_embedded(NAME)
    assert find_bilm(NAME) == softmax_folder(NAME) == Path(NAME)
    assert_same(LanguageModel.load(NAME), model_of(seed=3))


def test_a_module_as_entry_point(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [package.name])
    assert softmax_folder(NAME) == package


def test_no_package(bilm: Path) -> None:
    assert softmax_folder(NAME) is None
    assert not has_softmax(NAME)
    with pytest.raises(WeightsError) as caught:
        LanguageModel.load(NAME)
    for part in (
        "en_mini: its softmax is not installed",
        "spacy-elmo-en-mini-softmax",
        "pip install ./packages/en_mini_softmax",
        "set training.frozen_tokens",
    ):
        assert part in str(caught.value)


def test_other_weights_are_refused(bilm: Path, package: Path) -> None:
    digest = (package / "bilm.sha256").read_text(encoding="utf8").split()[0]
    embedded = model_of(seed=9)
    embedded.save(bilm)
    for use in (LanguageModel.load, softmax_folder, has_softmax):
        with pytest.raises(WeightsError, match=rf"other weights of en_mini: to those of SHA-256 '{digest}', but"):
            use(NAME)
    assert find_bilm(NAME) == bilm  # the component needs no softmax


@pytest.mark.parametrize("name", ["softmax.hdf5", "vocabulary.txt", "bilm.sha256"])
def test_a_package_that_lacks_a_file(package: Path, name: str) -> None:
    (package / name).unlink()
    with pytest.raises(WeightsError, match=rf"{package.name}: {name} missing\. Expected all files of the package"):
        LanguageModel.load(NAME)


@pytest.mark.parametrize("text", [b"", b"\n", b"\xff\xfe\x00", b"weights.hdf5  0000\n"])
def test_a_damaged_digest(package: Path, text: bytes) -> None:
    (package / "bilm.sha256").write_bytes(text)
    with pytest.raises(WeightsError, match="belongs to other weights of en_mini"):
        LanguageModel.load(NAME)


@pytest.mark.parametrize("value", ["no_such_module_at_all", "{module}:gone", "{module}:Path"])
def test_a_package_that_can_not_be_loaded(package: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    install(monkeypatch, [value.format(module=package.name)])
    with pytest.raises(WeightsError, match=r"entry point .* gives no folder|missing\. Expected all files"):
        softmax_folder(NAME)


# Tuning


def test_sizes_come_from_the_embedded_bilm(bilm: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    (tmp_path / "tune.cfg").write_text('[paths]\ntrain = "text.txt"\ninit = "en_mini"\n', encoding="utf8")
    assert read_config(tmp_path / "tune.cfg").bilm == OPTIONS
    other = PretrainConfig(PathSettings(str(tmp_path / "text.txt"), init="en_maxi"), OPTIONS)
    with pytest.raises(SettingsError, match=r"paths\.init is 'en_maxi'\. Expected a folder .*, or a biLM's name"):
        check_paths(other, tmp_path / "out")
    check_paths(PretrainConfig(PathSettings(other.paths.train, init="en_mini"), OPTIONS), tmp_path / "out")


def test_tuning_with_the_package(package: Path, corpus: PreparedCorpus) -> None:
    vocabulary = find_vocabulary(config_of(), corpus)
    assert vocabulary.words == WORDS
    assert vocabulary.counts is not None
    assert vocabulary.counts.tolist() == [3, 3, 1, 3, 1, 2, 1, 2]  # of this text
    assert_same(starting_model(config_of(), vocabulary), model_of())


def test_tuning_without_it(bilm: Path, corpus: PreparedCorpus) -> None:
    with pytest.raises(WeightsError, match=r"its softmax is not installed.* set training\.frozen_tokens"):
        check_start(config_of())
    config = config_of(frozen_tokens=100)
    vocabulary = find_vocabulary(config, corpus)
    assert "newt" in vocabulary.words
    model = starting_model(config, vocabulary)
    for name, values in model_of().bilm.state_dict().items():
        assert torch.equal(model.bilm.state_dict()[name], values)


def test_a_copy_of_the_folder_can_be_tuned_as_before(package: Path, tmp_path: Path, bilm: Path) -> None:
    """Options, weights and softmax in one folder are a model like any other."""
    shutil.copytree(package, tmp_path / "both")
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(bilm / name, tmp_path / "both")
    assert_same(LanguageModel.load(tmp_path / "both"), model_of())


# A package with a biLM and its softmax


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package whose biLM is called en_midi."""
    monkeypatch.chdir(tmp_path)
    model_of().save(tmp_path / "files")
    return install_bilm(monkeypatch, tmp_path, "en_midi", tmp_path / "files")


def test_a_package_with_all_files(packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_bilm("en_midi") == softmax_folder(Path("en_midi")) == packaged
    assert not is_embedded("en_midi")
    assert has_softmax("en_midi")
    read, asked = language_model.read_weights, []

    def read_weights(*arguments: Any, untrusted: bool) -> Any:
        asked.append(untrusted)
        return read(*arguments, untrusted=untrusted)

    monkeypatch.setattr(language_model, "read_weights", read_weights)
    model = LanguageModel.load("en_midi", untrusted=True)
    assert_same(model, model_of())
    assert model.vocabulary.counts is not None
    assert asked == [True]  # as the files of a folder are read, and not as those of en_mini


def test_a_package_without_a_softmax(packaged: Path) -> None:
    for name in ("softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy"):
        (packaged / name).unlink()
    assert not has_softmax("en_midi")
    with pytest.raises(WeightsError, match=r"no softmax\.hdf5, so this biLM predicts no words"):
        LanguageModel.load("en_midi")
    with pytest.raises(SettingsError, match=r"en_midi: there is no softmax\.hdf5.* set training\.frozen_tokens"):
        check_start(config_of("en_midi"))
    check_start(config_of("en_midi", frozen_tokens=100))


def test_tuning_a_bilm_of_a_package(packaged: Path, corpus: PreparedCorpus, tmp_path: Path) -> None:
    (tmp_path / "tune.cfg").write_text('[paths]\ntrain = "text.txt"\ninit = "en_midi"\n', encoding="utf8")
    assert read_config(tmp_path / "tune.cfg").bilm == OPTIONS
    config = config_of("en_midi")
    check_paths(config, tmp_path / "out")
    vocabulary = find_vocabulary(config, corpus)
    assert vocabulary.words == WORDS
    assert_same(starting_model(config, vocabulary), model_of())


def test_the_embedded_bilm_wins_over_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model_of().save(tmp_path / "files")
    monkeypatch.chdir(tmp_path)
    install_bilm(monkeypatch, tmp_path, NAME, tmp_path / "files")
    assert find_bilm(NAME) == Path(bilms.paths(NAME)[0]).parent
