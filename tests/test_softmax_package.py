"""packages/en_core_softmax: its entry point leads to its files, which belong to en_core."""

from importlib import import_module
from pathlib import Path

import pytest
from repository_packages import RepositoryPackage, importable, only_entry_point

from spacy_elmo import bilms
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.pretraining.language_model import GROUP, package_folder, package_name

DATA = {"softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy", "bilm.sha256"}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> RepositoryPackage:
    return importable("en_core_softmax", monkeypatch)


def test_its_name_and_files(package: RepositoryPackage) -> None:
    config = package.config
    assert config["metadata"]["name"] == package_name("en_core")
    assert set(config["options.package_data"][package.module].split()) == DATA | {"README.md"}
    assert (package.folder / config["metadata"]["long_description"].removeprefix("file:").strip()).is_file()
    assert import_module(package.module).folder() == package.folder / package.module


def test_the_entry_point_leads_there(package: RepositoryPackage, monkeypatch: pytest.MonkeyPatch) -> None:
    name, files = only_entry_point(package, GROUP, monkeypatch), package.folder / package.module
    weights = Path(bilms.paths("en_core")[1])
    assert {path.name for path in files.iterdir()} >= DATA, "elmo package writes all of them"
    assert (files / "bilm.sha256").read_text(encoding="utf8") == f"{sha256_of(weights)}  weights.hdf5\n"
    assert package_folder(name, weights) == files
