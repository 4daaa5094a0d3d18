"""packages/en_midi: its entry point leads to its files, which are those of a biLM with a softmax."""

from __future__ import annotations

import configparser
from importlib import import_module, metadata
from pathlib import Path

import pytest

from spacy_elmo.formats.named.bilms import GROUP, KNOWN, folder_named
from spacy_elmo.formats.readers import readers_of
from spacy_elmo.pretraining.model.language_model import LanguageModel
from spacy_elmo.pretraining.settings.sizes import SIZES, Size

NAME = "en_midi"
FOLDER = Path(__file__).parents[1] / "packages" / NAME


@pytest.fixture
def config() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(FOLDER / "setup.cfg", encoding="utf8")
    return parser


@pytest.fixture
def module(config: configparser.ConfigParser, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(str(FOLDER))
    return config["options"]["packages"]


def test_its_name_and_files(config: configparser.ConfigParser, module: str) -> None:
    assert NAME in KNOWN
    assert config["metadata"]["name"] == "spacy-elmo-en-midi"
    listed = set(config["options.package_data"][module].split())
    assert listed == {path.name for path in (FOLDER / module).iterdir()} - {"__init__.py", "__pycache__"}
    assert (FOLDER / config["metadata"]["long_description"].removeprefix("file:").strip()).is_file()
    assert import_module(module).folder() == FOLDER / module


def test_the_entry_point_leads_to_the_bilm(
    config: configparser.ConfigParser, module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # a folder of the name would come first
    name, _, value = config["options.entry_points"][GROUP].strip().partition(" = ")
    points = metadata.EntryPoints([metadata.EntryPoint(name, value, GROUP)])
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: points.select(**wanted))
    assert name == NAME
    assert folder_named(NAME) == FOLDER / module
    model = LanguageModel.load(NAME)
    assert model.bilm.options.to_dict() == SIZES[Size.midi].to_dict()
    assert model.vocabulary.counts is not None
    assert len(model.vocabulary) == 50_000
    assert all(not reader.problems for reader in readers_of(model.bilm.options))
