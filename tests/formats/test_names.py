"""Names of published biLMs and of those in packages, and the folders that they stand for."""

import shutil
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from bilm_package import install_bilm, uninstall_all

from spacy_elmo.errors import SettingsError, WeightsError
from spacy_elmo.formats.names import (
    PUBLISHED,
    find_point,
    folder_named,
    folder_of,
    folders_of_packages,
    is_named,
    published_folder,
)


def test_the_addresses_are_those_of_allennlp() -> None:
    """The default of AllenNLP 2.10.1's ElmoTokenEmbedder, and the weights that belong to it."""
    start = "https://allennlp.s3.amazonaws.com/models/elmo/"
    original = "2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_"
    assert PUBLISHED["original"][:2] == (f"{start}{original}options.json", f"{start}{original}weights.hdf5")
    assert list(PUBLISHED) == ["original", "original-5.5B", "medium", "small", "pubmed", "pt"]
    urls = [url for model in PUBLISHED.values() for url in model[:2]]
    assert len(set(urls)) == 12
    assert all(url.startswith(start) for url in urls)


def test_the_cache_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPACY_ELMO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert published_folder("pt") == tmp_path / ".cache/spacy-elmo/pt"
    for name, value, expected in (
        ("XDG_CACHE_HOME", "relative", ".cache/spacy-elmo/pt"),
        ("XDG_CACHE_HOME", str(tmp_path / "xdg"), "xdg/spacy-elmo/pt"),
        ("SPACY_ELMO_CACHE", str(tmp_path / "own"), "own/pt"),
        ("SPACY_ELMO_CACHE", "~/mine", "mine/pt"),
    ):
        monkeypatch.setenv(name, value)
        assert published_folder("pt") == tmp_path / expected


def test_no_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPACY_ELMO_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as a user without an entry, of a container
    with pytest.raises(SettingsError, match="no home folder is known"):
        published_folder("pt")


GROUP = "spacy_elmo_bilms"


@pytest.mark.parametrize("value", ["{module}", "{module}:folder"])
def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    package = install_bilm(monkeypatch, tmp_path, "some_bilm", None, value)
    point = find_point(GROUP, "some_bilm")
    assert point is not None
    assert folder_of(point) == package
    assert find_point(GROUP, "other_bilm") is None
    assert find_point("spacy_elmo_softmaxes", "some_bilm") is None
    uninstall_all(monkeypatch)
    assert find_point(GROUP, "some_bilm") is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("{module}:gone", "has no attribute 'gone'"),
        ("{module}.files", "NoneType"),  # a folder without __init__.py
        ("builtins:print", "NoneType"),
    ],
)
def test_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, reason: str) -> None:
    package = install_bilm(monkeypatch, tmp_path, "some_bilm", None)
    (package / "files").mkdir()
    value = value.format(module=package.name)
    with pytest.raises(WeightsError) as caught:
        folder_of(EntryPoint("some_bilm", value, GROUP))
    told = str(caught.value)
    assert told.startswith(f"some_bilm: the entry point {value} of the group spacy_elmo_bilms gives no folder (")
    assert reason in told
    assert "Install the package again, or uninstall it." in told


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory, and an empty cache of downloads in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "cache"))


def test_what_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall_all(monkeypatch)
    assert is_named("small")
    assert is_named("en_mini")  # its package can be installed
    for name in ("en_core", "my_bilm", "", "cache/small", tmp_path):
        assert not is_named(name)
    monkeypatch.undo()
    install_bilm(monkeypatch, tmp_path, "my_bilm", None)
    assert is_named("my_bilm")
    assert is_named(Path("my_bilm"))


def test_a_published_bilm_wins(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_bilm(monkeypatch, tmp_path, "small", golden / "random_a")
    with pytest.raises(SettingsError, match="python -m spacy elmo download small"):
        folder_named("small")
    shutil.copytree(golden / "random_b", tmp_path / "cache" / "small")
    assert folder_named("small") == tmp_path / "cache" / "small"


def test_a_package_that_lacks_a_file(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = install_bilm(monkeypatch, tmp_path, "en_mini", golden / "random_a")
    (package / "weights.hdf5").unlink()
    with pytest.raises(WeightsError) as caught:
        folder_named("en_mini")
    told = str(caught.value)
    assert told.startswith(f"{package}: weights.hdf5 missing. The entry point {package.name}:folder of the group ")
    assert "names this folder for the biLM en_mini. Install a copy that has all files" in told


def test_the_folders_of_packages(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = install_bilm(monkeypatch, tmp_path, "en_some", golden / "random_a")
    install_bilm(monkeypatch, tmp_path / "broken", "en_broken", None, "no_such_module:folder")
    assert folders_of_packages()["en_some"] == folder_named("en_some") == folder_named(Path("en_some")) == package
    assert "en_broken" not in folders_of_packages()
    uninstall_all(monkeypatch)
    assert folders_of_packages() == {}
