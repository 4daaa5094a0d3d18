"""Folders of a biLM with its softmax: round trips, missing files, and files that do not fit each other."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from bilm_package import install_bilm
from embedded_case import OPTIONS as EMBEDDED_OPTIONS
from embedded_case import TEXT, embed, install, make_package
from embedded_case import model_of as embedded_model

from spacy_elmo.errors import ElmoError, SettingsError, WeightsError
from spacy_elmo.formats import BiLMOptions, atomic
from spacy_elmo.formats.softmax import write_softmax
from spacy_elmo.modules.loading import find_bilm, is_embedded
from spacy_elmo.pretraining.config import PathSettings, PretrainConfig, SoftmaxSettings, TrainingSettings, read_config
from spacy_elmo.pretraining.folder import check_new_run, find_vocabulary, starting_model
from spacy_elmo.pretraining.language_model import LanguageModel, softmax_folder
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary

OPTIONS = BiLMOptions(3, ((1, 3), (2, 2)), 1, "relu", 20, 6, 4, 2, 3.0, 3.0, True)
WORDS = ["<S>", "</S>", "<UNK>", "the", "naïve", "東京", "cat"]
COUNTS = np.array([9, 9, 0, 20, 7, 3, 1])
FILES = {"options.json", "weights.hdf5", "softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy"}


def model_of(counts: np.ndarray | None = COUNTS, seed: int = 0) -> LanguageModel:
    softmax = Softmax(len(WORDS), OPTIONS.projection_dim)
    softmax.reset_parameters(torch.arange(7.0) + seed, torch.Generator().manual_seed(seed))
    return LanguageModel(bilm_of(OPTIONS, random_datasets(OPTIONS, seed)), softmax, Vocabulary(WORDS, counts))


def assert_same(a: LanguageModel, b: LanguageModel) -> None:
    assert a.words == b.words
    np.testing.assert_array_equal(a.vocabulary.counts, b.vocabulary.counts)
    assert a.bilm.options == b.bilm.options
    for one, other in ((a.bilm, b.bilm), (a.softmax, b.softmax)):
        assert one.state_dict().keys() == other.state_dict().keys()
        for name, values in one.state_dict().items():
            assert torch.equal(values, other.state_dict()[name]), name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_is_saved_and_loaded_bit_for_bit(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    for model in (model_of(), model_of(seed=1)):
        model.save(folder)
        loaded = LanguageModel.load(folder)
        assert_same(loaded, model)


@pytest.mark.parametrize("replaced", [0, 2])
def test_a_kill_between_two_files_never_gives_a_mixture(
    folder: Path, monkeypatch: pytest.MonkeyPatch, replaced: int
) -> None:
    """The folder is refused until it is written again. Files of others stay."""
    (folder / "README.md").write_text("notes", encoding="utf8")
    done: list[object] = []

    def killed(source: Path, target: Path) -> None:
        if Path(source).parent == Path(target).parent:  # a file of the new model is complete
            os.rename(source, target)
            return
        if len(done) == replaced:
            raise SystemExit
        done.append(os.rename(source, target))

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "os", SimpleNamespace(**vars(os) | {"replace": killed}))
        with pytest.raises(SystemExit):
            model_of(seed=1).save(folder)
    with pytest.raises(
        WeightsError, match="model: the process that wrote it ended before it was complete, so its files may be of two"
    ):
        LanguageModel.load(folder)
    model_of(seed=2).save(folder)
    assert_same(LanguageModel.load(folder), model_of(seed=2))
    assert {path.name for path in folder.iterdir()} == FILES | {"README.md"}


def test_a_model_that_can_not_be_written_leaves_the_older_one(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    model = model_of(seed=1)
    with torch.no_grad():
        model.softmax.bias[3] = torch.nan
    with pytest.raises(WeightsError, match="softmax/b has 1 values that are NaN"):
        model.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_missing_files_are_named(folder: Path, golden: Path) -> None:
    with pytest.raises(WeightsError, match=r"no softmax\.hdf5.*a file of its own.*paths\.init = .*random_a"):
        LanguageModel.load(golden / "random_a")
    for name in ("vocabulary.txt", "options.json", "weights.hdf5"):
        (folder / name).unlink()
        with pytest.raises(WeightsError, match=rf"model: .*{name}.* missing\. Expected the folder of a biLM"):
            LanguageModel.load(folder)
    (folder / "softmax.hdf5").unlink()
    with pytest.raises(WeightsError, match=r"model: options\.json, weights\.hdf5 missing\. Expected the folder of a"):
        LanguageModel.load(folder)
    with pytest.raises(SettingsError, match=r"gone' names no biLM: there is no such folder"):
        LanguageModel.load(folder / "gone")


def test_a_softmax_of_another_model(folder: Path) -> None:
    rng = np.random.default_rng(0)
    write_softmax(folder / "softmax.hdf5", {"weight": rng.standard_normal((7, 5)), "bias": np.zeros(7)})
    with pytest.raises(WeightsError, match=r"7 rows of 5 values\. .* vocabulary's 7 words, of 4 values"):
        LanguageModel.load(folder)
    write_softmax(folder / "softmax.hdf5", {"weight": rng.standard_normal((8, 4)), "bias": np.zeros(8)})
    with pytest.raises(WeightsError, match=r"8 rows of 4 values\. Expected a row for each of the vocabulary's 7"):
        LanguageModel.load(folder)


def test_damaged_files_are_named(folder: Path, tmp_path: Path) -> None:
    for name in sorted(FILES):
        copy = tmp_path / f"spoilt {name}"
        shutil.copytree(folder, copy)
        (copy / name).write_bytes(b"\xff\xfe")
        with pytest.raises(ElmoError, match=name.replace(".", r"\.")):
            LanguageModel.load(copy)


NAME = "en_core"


@pytest.fixture
def bilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """en_core without its softmax."""
    monkeypatch.chdir(tmp_path)
    return embed(monkeypatch, tmp_path / "bilms" / "en_core")


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
    return PretrainConfig(PathSettings("text.txt", init=init), EMBEDDED_OPTIONS, training=settings)


def test_the_name_with_the_package(bilm: Path, package: Path) -> None:
    assert (find_bilm(NAME), softmax_folder(Path(NAME))) == (bilm, package)
    assert is_embedded(NAME)
    assert_same(LanguageModel.load(NAME), embedded_model())


def test_no_package(bilm: Path) -> None:
    assert softmax_folder(NAME) is None
    message = r"^en_core: its softmax is not installed.* spacy-elmo-en-core-softmax: .*pip install \./packages/en_core"
    with pytest.raises(WeightsError, match=message):
        LanguageModel.load(NAME)


def test_other_weights_are_refused(bilm: Path, package: Path) -> None:
    digest = (package / "bilm.sha256").read_text(encoding="utf8").split()[0]
    embedded = embedded_model(seed=9)
    embedded.save(bilm)
    for use in (LanguageModel.load, softmax_folder):
        with pytest.raises(WeightsError, match=rf"other weights of en_core: to those of SHA-256 '{digest}', but"):
            use(NAME)
    assert find_bilm(NAME) == bilm  # the component needs no softmax


@pytest.mark.parametrize("value", ["no_such_module_at_all", "{module}:gone", "{module}:Path"])
def test_a_package_that_can_not_be_loaded(package: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    install(monkeypatch, [value.format(module=package.name)])
    with pytest.raises(WeightsError, match=r"entry point .* gives no folder|missing\. Expected all files"):
        softmax_folder(NAME)


# Tuning


def test_sizes_come_from_the_embedded_bilm(bilm: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    (tmp_path / "tune.cfg").write_text('[paths]\ntrain = "text.txt"\ninit = "en_core"\n', encoding="utf8")
    assert read_config(tmp_path / "tune.cfg").bilm == EMBEDDED_OPTIONS
    with pytest.raises(SettingsError, match=r"^'en_cora' names no biLM: .* Did you mean en_core\?"):
        check_new_run(config_of("en_cora"), tmp_path / "out", False)
    check_new_run(config_of(frozen_tokens=100), tmp_path / "out", False)


def test_tuning_without_it(bilm: Path, corpus: PreparedCorpus) -> None:
    with pytest.raises(WeightsError, match=r"its softmax is not installed.* set training\.frozen_tokens"):
        check_new_run(config_of(), Path("out"), False)
    config = config_of(frozen_tokens=100)
    vocabulary = find_vocabulary(config, corpus)
    assert "newt" in vocabulary.words
    model = starting_model(config, vocabulary)
    for name, values in embedded_model().bilm.state_dict().items():
        assert torch.equal(model.bilm.state_dict()[name], values)


# A package with a biLM and its softmax


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package whose biLM is called en_mini."""
    monkeypatch.chdir(tmp_path)
    embedded_model().save(tmp_path / "files")
    return install_bilm(monkeypatch, tmp_path, "en_mini", tmp_path / "files")


def test_a_package_with_all_files(packaged: Path) -> None:
    assert find_bilm("en_mini") == softmax_folder(Path("en_mini")) == packaged
    assert not is_embedded("en_mini")
    assert_same(LanguageModel.load("en_mini"), embedded_model())


def test_a_package_without_a_softmax(packaged: Path) -> None:
    for name in ("softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy"):
        (packaged / name).unlink()
    assert softmax_folder("en_mini") is None
    with pytest.raises(WeightsError, match=r"no softmax\.hdf5, so it predicts no words"):
        LanguageModel.load("en_mini")
