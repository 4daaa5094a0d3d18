"""Names of published biLMs and of those in packages, and the folders that they stand for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bilm_package import install_bilm, uninstall_all

from spacy_elmo.errors import SettingsError, WeightsError
from spacy_elmo.formats.names import folder_named, folders_of_packages, is_named


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory, and an empty cache of downloads in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "cache"))


def test_what_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall_all(monkeypatch)
    assert is_named("small")
    assert is_named("en_midi")  # its package can be installed
    for name in ("en_mini", "my_bilm", "", "cache/small", tmp_path):
        assert not is_named(name)
    monkeypatch.undo()
    install_bilm(monkeypatch, tmp_path, "my_bilm", None)
    assert is_named("my_bilm")
    assert is_named(Path("my_bilm"))


def test_a_file_or_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_bilm(monkeypatch, tmp_path, "my_bilm", None)
    for name in ("small", "en_midi", "my_bilm"):
        assert is_named(name)
        Path(name).mkdir()
        assert not is_named(name)
        Path(name).rmdir()
        Path(name).touch()
        assert not is_named(name)


@pytest.mark.parametrize("name", ["en_midi", "my_bilm"])
def test_the_folder_of_a_package(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    package = install_bilm(monkeypatch, tmp_path, name, golden / "random_a")
    assert folder_named(name) == folder_named(Path(name)) == package


def test_a_published_bilm_wins(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_bilm(monkeypatch, tmp_path, "small", golden / "random_a")
    with pytest.raises(SettingsError, match="python -m spacy elmo download small"):
        folder_named("small")
    shutil.copytree(golden / "random_b", tmp_path / "cache" / "small")
    assert folder_named("small") == tmp_path / "cache" / "small"


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall_all(monkeypatch)
    with pytest.raises(SettingsError) as caught:
        folder_named("en_midi")
    for part in ("en_midi: ", "not installed", "spacy-elmo-en-midi", "pip install ./packages/en_midi"):
        assert part in str(caught.value)


@pytest.mark.parametrize("missing", ["options.json", "weights.hdf5"])
def test_a_package_that_lacks_a_file(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    package = install_bilm(monkeypatch, tmp_path, "en_midi", golden / "random_a")
    (package / missing).unlink()
    with pytest.raises(WeightsError) as caught:
        folder_named("en_midi")
    told = str(caught.value)
    assert told.startswith(f"{package}: {missing} missing. The entry point {package.name}:folder of the group ")
    assert "names this folder for the biLM en_midi. Expected all files of the package" in told


def test_a_package_that_can_not_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_bilm(monkeypatch, tmp_path, "en_midi", None, "no_such_module:folder")
    with pytest.raises(WeightsError, match="en_midi: the entry point no_such_module:folder of the group"):
        folder_named("en_midi")


def test_the_folders_of_packages(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = install_bilm(monkeypatch, tmp_path, "en_some", golden / "random_a")
    install_bilm(monkeypatch, tmp_path / "broken", "en_broken", None, "no_such_module:folder")
    assert folders_of_packages()["en_some"] == package
    assert "en_broken" not in folders_of_packages()
    uninstall_all(monkeypatch)
    assert folders_of_packages() == {}
