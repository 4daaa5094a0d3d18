"""packages/en_midi: its entry point leads to its files, which are those of a biLM with a softmax."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from reading import read_here
from repository_packages import RepositoryPackage, importable, only_entry_point

from spacy_elmo.formats.names import GROUP, KNOWN, folder_named
from spacy_elmo.formats.weights import readers_of
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.presets import SIZES, Size

NAME = "en_midi"


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> RepositoryPackage:
    return importable(NAME, monkeypatch)


def test_its_name_and_files(package: RepositoryPackage) -> None:
    config, files = package.config, package.folder / package.module
    assert NAME in KNOWN
    assert config["metadata"]["name"] == "spacy-elmo-en-midi"
    listed = set(config["options.package_data"][package.module].split())
    assert listed == {path.name for path in files.iterdir()} - {"__init__.py", "__pycache__"}
    assert (package.folder / config["metadata"]["long_description"].removeprefix("file:").strip()).is_file()
    assert import_module(package.module).folder() == files


def test_the_entry_point_leads_to_the_bilm(
    package: RepositoryPackage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read_here(monkeypatch)
    monkeypatch.chdir(tmp_path)  # a folder of the name would come first
    assert only_entry_point(package, GROUP, monkeypatch) == NAME
    assert folder_named(NAME) == package.folder / package.module
    model = LanguageModel.load(NAME)
    assert model.bilm.options.to_dict() == SIZES[Size.midi].to_dict()
    assert model.vocabulary.counts is not None
    assert len(model.vocabulary) == 50_000
    assert not any(readers_of(model.bilm.options).values())
