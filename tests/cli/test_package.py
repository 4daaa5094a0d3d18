"""`elmo package MODEL OUT --name NAME`."""

from __future__ import annotations

import configparser
import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path

import commands
import numpy as np
import pytest
import spacy
from embedded_case import model_of

from spacy_elmo import ElmoEmbedder
from spacy_elmo.pretraining.language_model import LanguageModel, has_softmax

run = partial(commands.run, "elmo")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text("| language | la |\n", encoding="utf8")
    return tmp_path / "model"


def install(folder: Path, target: Path) -> None:
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, str(folder)], check=True)
    importlib.invalidate_caches()


@pytest.mark.parametrize("softmax", ["inside", "apart", "none"])
def test_an_installed_package(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, softmax: str) -> None:
    name, out, site = f"la_{softmax}", tmp_path / "out", tmp_path / "site"
    run("package", model, out, "--name", name, "--softmax", softmax, "--license", "CC0-1.0", "--version", "1.2.3")
    folders = {name, f"{name}_softmax"} if softmax == "apart" else {name}
    assert {path.name for path in out.iterdir()} == folders
    for folder in folders:
        card = (out / folder / f"spacy_elmo_{folder}" / "README.md").read_text(encoding="utf8")
        assert card.startswith("| language | la |\n" if folder == name else f"# {name}\n")
        assert "\n\nInstall spacy-elmo first, and then this package." in card
    monkeypatch.syspath_prepend(str(site))
    install(out / name, site)
    if softmax == "apart":
        assert not has_softmax(name)
        install(out / f"{name}_softmax", site)
    run("pack", model, tmp_path / "packed", "--bits", "8")
    packed = tmp_path / "packed"
    expected = ElmoEmbedder(packed / "options.json", packed / "weights.hdf5").embed_sentence(["the", "cat"])
    np.testing.assert_array_equal(ElmoEmbedder(name).embed_sentence(["the", "cat"]), expected)
    vectors = []
    for bilm in (name, str(packed)):
        nlp = spacy.blank("xx")
        nlp.add_pipe("elmo", config={"model": {"bilm": bilm}})
        nlp.initialize()
        vectors.append(nlp("the cat")._.elmo)
    np.testing.assert_array_equal(*vectors)
    assert has_softmax(name) == (softmax != "none")
    if softmax != "none":
        weights = [LanguageModel.load(bilm).softmax.state_dict()["weight"] for bilm in (name, packed)]
        np.testing.assert_array_equal(*weights)
    told = run("info", name)
    for row in (f"distribution spacy-elmo-la-{softmax}", "version 1.2.3", "licence CC0-1.0", "language la"):
        assert row in told


@pytest.mark.parametrize("folder", ["en_midi", "la_mini", "en_mini_softmax"])
def test_packages_of_the_repository(model: Path, tmp_path: Path, folder: str) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "packages" / folder / "setup.cfg", encoding="utf8")
    name, place = folder.removesuffix("_softmax"), "apart" if folder.endswith("_softmax") else "inside"
    about = ("--version", setup["metadata"]["version"], "--license", setup["metadata"]["license"])
    run("package", model, tmp_path, "--name", name, "--softmax", place, *about)
    for file in ("setup.cfg", "pyproject.toml", f"spacy_elmo_{folder}/__init__.py"):
        assert (ROOT / "packages" / folder / file).read_bytes() == (tmp_path / folder / file).read_bytes()


def test_an_existing_package(model: Path, tmp_path: Path) -> None:
    run("package", model, tmp_path / "out", "--name", "la")
    card = tmp_path / "out" / "la" / "spacy_elmo_la" / "README.md"
    card.write_text("edited", encoding="utf8")
    assert "exists" in run("package", model, tmp_path / "out", "--name", "la", code=1)
    run("package", model, tmp_path / "out", "--name", "la", "--version", "2", "--force")
    assert card.read_text(encoding="utf8") == "edited"
    assert "version = 2\n" in (tmp_path / "out" / "la" / "setup.cfg").read_text(encoding="utf8")
    (tmp_path / "out" / "other").mkdir()
    assert "exists" in run("package", model, tmp_path / "out", "--name", "other", "--force", code=1)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"la", "other"}


@pytest.mark.parametrize("name", ["La", "la-mini", "la__mini", "../la", "small"])
def test_bad_names(model: Path, tmp_path: Path, name: str) -> None:
    assert "--name is" in run("package", model, tmp_path / "out", "--name", name, code=1)
    assert not (tmp_path / "out").exists()


def test_no_softmax(model: Path, tmp_path: Path) -> None:
    (model / "softmax.hdf5").unlink()
    assert "no softmax" in run("package", model, tmp_path / "out", "--name", "la", "--softmax", "apart", code=1)
    assert not (tmp_path / "out").exists()


def test_a_missing_build(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["spacy_elmo.cli.package"], "find_spec", lambda name: None)
    told = run("package", model, tmp_path / "out", "--name", "la", "--build", "wheel", code=1)
    assert "pip install build" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_wheel(model: Path, tmp_path: Path) -> None:
    run("package", model, tmp_path, "--name", "la", "--build", "wheel")
    assert len(list((tmp_path / "la" / "dist").glob("spacy_elmo_la-0.1.0-*.whl"))) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--name", "la", "--version", "foo bar"), "--version is 'foo bar'"),
        (("--name", "en_mini"), "--name is en_mini"),
        (("--name", "la", "--license", "MIT\nx = y"), "--license is 'MIT\\nx = y'"),
    ],
)
def test_packages_that_would_be_of_no_use(model: Path, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    assert message in run("package", model, tmp_path / "out", *options, code=1)
    assert not (tmp_path / "out").exists()
