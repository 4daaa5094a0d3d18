"""`elmo package MODEL OUT --name NAME`."""

from __future__ import annotations

import configparser
import os
import warnings
import zipfile
from functools import partial
from pathlib import Path

import commands
import numpy as np
import pytest
from embedded_case import model_of
from setuptools import build_meta

from spacy_elmo import ElmoEmbedder
from spacy_elmo.pretraining.language_model import LanguageModel, softmax_folder

run = partial(commands.run, "elmo")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text("| language | Old Oscan |\n", encoding="utf8")
    return tmp_path / "model"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip does, but in this process and in place."""
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of setuptools
        patch.chdir(folder)
        build_meta.prepare_metadata_for_build_wheel(str(folder))
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.parametrize("softmax", ["inside", "apart", "none"])
def test_an_installed_package(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, softmax: str) -> None:
    name, out = f"la_{softmax}", tmp_path / "out"
    told = run(
        "package", model, out, "--name", name, "--softmax", softmax, "--license", "CC0-1.0", "--version", "1.2.3"
    )
    folders = {name, f"{name}_softmax"} if softmax == "apart" else {name}
    assert {path.name for path in out.iterdir()} == folders
    assert "tells of a licence" not in told
    for folder in folders:
        card = (out / folder / f"spacy_elmo_{folder}" / "README.md").read_text(encoding="utf8")
        assert card.startswith("| language | Old Oscan |\n" if folder == name else f"# {name}\n")
        assert "\n\n## Licence\n\nCC0-1.0\n" in card
        assert "\n\nInstall spacy-elmo first, and then this package." in card
    install(out / name, monkeypatch)
    if softmax == "apart":
        assert softmax_folder(name) is None
        install(out / f"{name}_softmax", monkeypatch)
    run("pack", model, tmp_path / "packed", "--bits", "8")
    packed = tmp_path / "packed"
    expected = ElmoEmbedder(packed / "options.json", packed / "weights.hdf5").embed_sentence(["the", "cat"])
    np.testing.assert_array_equal(ElmoEmbedder(name).embed_sentence(["the", "cat"]), expected)
    assert (softmax_folder(name) is not None) == (softmax != "none")
    if softmax != "none":
        weights = [LanguageModel.load(bilm).softmax.state_dict()["weight"] for bilm in (name, packed)]
        np.testing.assert_array_equal(*weights)
    told = run("info", name)
    for row in (f"distribution spacy-elmo-la-{softmax}", "version 1.2.3", "licence CC0-1.0", "language Old Oscan"):
        assert row in told


@pytest.mark.parametrize("folder", ["en_mini", "la_mini", "en_core_softmax"])
def test_packages_of_the_repository(model: Path, tmp_path: Path, folder: str) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "packages" / folder / "setup.cfg", encoding="utf8")
    name, place = folder.removesuffix("_softmax"), "apart" if folder.endswith("_softmax") else "inside"
    about = ("--version", setup["metadata"]["version"], "--license", setup["metadata"]["license_expression"])
    run("package", model, tmp_path, "--name", name, "--softmax", place, *about)
    for file in ("setup.cfg", "pyproject.toml", f"spacy_elmo_{folder}/__init__.py"):
        assert (ROOT / "packages" / folder / file).read_bytes() == (tmp_path / folder / file).read_bytes()


def test_an_existing_package(model: Path, tmp_path: Path) -> None:
    run("package", model, tmp_path / "out", "--name", "la")
    card = tmp_path / "out" / "la" / "spacy_elmo_la" / "README.md"
    card.write_text("edited", encoding="utf8")
    assert "exists" in run("package", model, tmp_path / "out", "--name", "la", code=1)
    run("package", model, tmp_path / "out", "--name", "la", "--version", "1!2.0-beta.1+local", "--force")
    assert card.read_text(encoding="utf8") == "edited"
    (model / "README.md").write_text("The licence is CC BY-SA 4.0.\n", encoding="utf8")
    told = run("package", model, tmp_path, "--name", "la", "--license", "MIT")
    assert "The model card tells of a licence, and not of MIT: la/spacy_elmo_la/README.md has both now." in told
    assert "version = 1!2.0b1+local\n" in (tmp_path / "out" / "la" / "setup.cfg").read_text(encoding="utf8")
    (tmp_path / "out" / "other").mkdir()
    (tmp_path / "out" / "other" / "setup.cfg").write_text("mine", encoding="utf8")
    told = run("package", model, tmp_path / "out", "--name", "other", "--force", code=1)
    assert "holds setup.cfg, but no spacy_elmo_other/__init__.py" in told
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"la", "other"}
    assert os.listdir(tmp_path / "out" / "other") == ["setup.cfg"]


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_others_keep_in_a_package(model: Path, tmp_path: Path) -> None:
    """Of an earlier biLM nothing is left."""
    out, fresh = tmp_path / "out" / "la", tmp_path / "fresh" / "la"
    run("package", model, out.parent, "--name", "la")
    names = ("LICENSE", ".git/HEAD", "CHANGELOG.md", "tests/test_la.py", "spacy_elmo_la/notes.txt", "dist/a.whl")
    for name in names:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(f"my {name}", encoding="utf8")
    assert (out / "spacy_elmo_la" / "softmax.hdf5").exists()
    run("package", model, out.parent, "--name", "la", "--softmax", "none", "--force")
    run("package", model, fresh.parent, "--name", "la", "--softmax", "none")
    assert files_in(out) == files_in(fresh) | set(names)
    assert all((out / name).read_text(encoding="utf8") == f"my {name}" for name in names)


@pytest.mark.slow
def test_a_wheel(model: Path, tmp_path: Path) -> None:
    """It has all files of the biLM."""
    run("package", model, tmp_path, "--name", "la", "--build", "wheel")
    (wheel,) = (tmp_path / "la" / "dist").glob("spacy_elmo_la-0.1.0-*.whl")
    folder = tmp_path / "la" / "spacy_elmo_la"
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("spacy_elmo_la/")}
    assert names == {f"spacy_elmo_la/{path.name}" for path in folder.iterdir()} >= {"spacy_elmo_la/weights.hdf5"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *((f"--name {name}", "--name is") for name in ("La", "la-mini", "la__mini", "../la", "small", "en_core")),
        ("--name la --version foo", "--version is 'foo'"),
        ("--name la --version 1.x", "--version is '1.x'. Expected one that Python packages can have"),
        ("--name la --license MIT\nx=y", "--license is 'MIT\\nx=y'"),
        ("--name la --softmax apart", "no softmax"),
        ("--name la --build wheel", "pip install build"),
    ],
)
def test_refusals(model: Path, tmp_path: Path, options: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (model / "softmax.hdf5").unlink()
    monkeypatch.setattr("spacy_elmo.cli.package.find_spec", lambda name: None)
    assert message in run("package", model, tmp_path / "out", *options.split(" "), code=1)
    assert not (tmp_path / "out").exists()
