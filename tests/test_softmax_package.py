"""packages/en_mini_softmax: its entry point leads to its files, and those that are there belong to en_mini."""

import configparser
from importlib import import_module, metadata
from pathlib import Path

import pytest

from spacy_elmo import bilms
from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.checksums import sha256_of
from spacy_elmo.pretraining.model.softmax_packages import GROUP, package_folder, package_name

FOLDER = Path(__file__).parents[1] / "packages" / "en_mini_softmax"
DATA = {"softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy", "bilm.sha256"}


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
    assert config["metadata"]["name"] == package_name("en_mini")
    assert set(config["options.package_data"][module].split()) == DATA | {"README.md"}
    assert (FOLDER / config["metadata"]["long_description"].removeprefix("file:").strip()).is_file()
    assert import_module(module).folder() == FOLDER / module


def test_the_entry_point_leads_there(
    config: configparser.ConfigParser, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _, value = config["options.entry_points"][GROUP].strip().partition(" = ")
    points = metadata.EntryPoints([metadata.EntryPoint(name, value, GROUP)])
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: points.select(**wanted))
    weights = Path(bilms.paths("en_mini")[1])
    there = {path.name for path in (FOLDER / module).iterdir()} & DATA
    assert there in (set(), DATA), "scripts/release/ship_bilm.py writes all of them"
    if there:
        assert (FOLDER / module / "bilm.sha256").read_text(encoding="utf8") == f"{sha256_of(weights)}  weights.hdf5\n"
        assert package_folder(name, weights) == FOLDER / module
    else:
        with pytest.raises(WeightsError, match=r"softmax\.hdf5, vocabulary\.txt, bilm\.sha256 missing"):
            package_folder(name, weights)
