"""packages/en_mini and la_mini: their entry points lead to their files, which are those of biLMs with a softmax."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from repository_packages import RepositoryPackage, importable, only_entry_point

from spacy_elmo.formats.names import GROUP, KNOWN, folder_named
from spacy_elmo.formats.weights import readers_of
from spacy_elmo.modules.loading import card_language
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.presets import SIZES, Size


@pytest.fixture(params=["en_mini", "la_mini"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def package(name: str, monkeypatch: pytest.MonkeyPatch) -> RepositoryPackage:
    return importable(name, monkeypatch)


def test_its_name_and_files(name: str, package: RepositoryPackage) -> None:
    config, files = package.config, package.folder / package.module
    assert name in KNOWN
    assert config["metadata"]["name"] == f"spacy-elmo-{name.replace('_', '-')}"
    listed = set(config["options.package_data"][package.module].split())
    assert listed == {path.name for path in files.iterdir()} - {"__init__.py", "__pycache__"}
    assert (package.folder / config["metadata"]["long_description"].removeprefix("file:").strip()).is_file()
    assert import_module(package.module).folder() == files
    assert card_language(str(files / "options.json")) == name[:2]


def test_the_entry_point_leads_to_the_bilm(
    name: str, package: RepositoryPackage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # a folder of the name would come first
    assert only_entry_point(package, GROUP, monkeypatch) == name
    assert folder_named(name) == package.folder / package.module
    model = LanguageModel.load(name)
    assert model.bilm.options.to_dict() == SIZES[Size.mini].to_dict()
    assert model.vocabulary.counts is not None
    assert len(model.vocabulary) == 50_000
    assert not any(readers_of(model.bilm.options).values())
