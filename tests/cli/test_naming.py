"""What names a biLM in all commands and in Python: a package that brings one, and the folder of a pretraining run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import spacy
from bilm_package import install_bilm, uninstall_all
from commands import run
from embedded_case import TEXT, model_of

from spacy_elmo import Elmo, ElmoEmbedder
from spacy_elmo.analysis.neighbours import build_index
from spacy_elmo.corpus import embed
from spacy_elmo.errors import ElmoError
from spacy_elmo.formats.paths import sha256_of
from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.prepared import prepare

NAME, WORDS = "en_mini", ["the", "dog", "sat", "."]


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the package, whose files are in ./files too; the working directory has a text."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT, encoding="utf8")
    model_of().save(tmp_path / "files")
    return install_bilm(monkeypatch, tmp_path, NAME, tmp_path / "files")


def pipeline(bilm: str, lang: str = "xx") -> spacy.Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe("elmo", config={"model": {"bilm": bilm}})
    return nlp


@pytest.mark.slow
def test_info(package: Path) -> None:
    output = run("elmo", "info", NAME)
    for name in ("options.json", "weights.hdf5", "softmax.hdf5"):
        assert str(package / name) in output
        assert sha256_of(package / name) in output
    assert output.count(f"{NAME}, of an installed package") == 1
    pipeline(NAME).to_disk("same")
    Path(NAME).mkdir()  # hides the name, and not the package
    for model in ("same", "files"):
        assert f"model {NAME}, of an installed package" in run("elmo", "info", model)
    (package / "weights.hdf5").write_bytes(b"damaged")
    assert f"model the sizes of {NAME}" in run("elmo", "info", "same")


COMMANDS = [
    "embed text.txt vectors.hdf5 --model {}",
    "explore page.html text.txt --model {}",
    "similar text.txt --model {} --word the",
    "predict the --model {}",
    "neighbours text.txt -q the -w the --model {}",
    "evaluate {} text.txt",
    "info {}",
    "pack {} packed",
    "package {} packages --name la --softmax apart",
    "init-config --pipeline tagger --model {} task.cfg",
    "compare out --train text.txt --dev text.txt --model {}",
    "init-pretrain-config new.cfg --train text.txt --init {}",
    "pretrain tune.cfg out --paths.train text.txt --paths.init {}",
]


@pytest.mark.parametrize(
    "reason", ["hidden", "misspelt", "not installed", pytest.param("fails", marks=pytest.mark.slow)]
)
def test_a_name_that_can_not_be_used(reason: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands, and what is called in Python, tell the same."""
    Path("tune.cfg").write_text("[paths]\n", encoding="utf8")
    parts = {
        "hidden": ["is in the current folder. Rename it, or work in another folder. Expected the folder of a biLM"],
        "misspelt": ["'en_mni' names no biLM: there is no such folder. Did you mean en_mini? Expected the folder"],
        "not installed": ["pip install ./packages/en_mini", "spacy-elmo-en-mini"],
        "fails": ["gives no folder", "half a package", f"{package.name}:folder"],
    }[reason]
    if reason == "hidden":
        Path(NAME).mkdir()
    elif reason == "not installed":
        uninstall_all(monkeypatch)
    elif reason == "fails":
        (package / "__init__.py").write_text("raise ImportError('half a package')\n", encoding="utf8")
    before, name = sorted(Path().iterdir()), "en_mni" if reason == "misspelt" else NAME
    for command in COMMANDS:
        if (reason, command) == ("hidden", "info {}"):  # it tells what the folder lacks
            continue
        output = run("elmo", *command.format(name).split(), code=1)
        for part in parts:
            assert part.replace(" ", "") in output.replace(" ", ""), command  # messages are wrapped anywhere
    assert sorted(Path().iterdir()) == before
    for use in (lambda: ElmoEmbedder(name), lambda: pipeline(name)("Paris")):
        with pytest.raises(ElmoError, match=re.escape(parts[0])):
            use()


# The folder of a pretraining run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a run leaves it after its first evaluation, as far as the commands look at it."""
    (tmp_path / "mine").mkdir()
    for name in ("config.cfg", "run.json", "vocabulary.txt"):
        (tmp_path / "mine" / name).write_text("", encoding="utf8")
    model_of().save(tmp_path / "mine" / "model-best")
    (tmp_path / "text.txt").write_text("the cat sat\nthe dog sat\n", encoding="utf8")
    return tmp_path / "mine"


@pytest.mark.parametrize("model", [".", "model-best"])
def test_before_the_first_evaluation(folder: Path, tmp_path: Path, model: str) -> None:
    (folder / "model-best").rename(folder / "other")
    text, new = tmp_path / "text.txt", tmp_path / "new"
    (tmp_path / "tune.cfg").write_text(f'[paths]\ntrain = "{text}"\ninit = "{folder / model}"\n', encoding="utf8")
    for arguments in (
        ("info", folder),
        ("evaluate", folder / model, text),
        ("pack", folder / model, new),
        ("init-pretrain-config", new, "--train", text, "--init", folder / model),
        ("pretrain", tmp_path / "tune.cfg", new),
    ):
        output = run("elmo", *arguments, code=1)
        assert "has not written all of model-best yet" in output
        assert "lower evaluation.every" in output
    assert not new.exists()


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written to a folder that is called ~."""
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    shutil.copytree(tmp_path / "files", home / "bilm")
    (home / "text.txt").write_text("We sat .\n" * 3, encoding="utf8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(here)
    options, weights = "~/bilm/options.json", "~/bilm/weights.hdf5"
    run("elmo", "vocab", "~/text.txt", "~/words.txt")
    run("elmo", "embed", "~/text.txt", "~/a.hdf5", "--model", "~/bilm")
    run("elmo", "init-pretrain-config", "~/a.cfg", "--train", "~/text.txt", "--size", "tiny")
    run("elmo", "info", "~/bilm")
    config = read_config("~/a.cfg", {"paths.vocabulary": "~/words.txt"})
    assert (config.paths.train, config.paths.vocabulary) == (str(home / "text.txt"), str(home / "words.txt"))
    embed("~/text.txt", "~/c.spacy", bilm="~/bilm", layers="top")
    assert ElmoEmbedder("~/bilm").options == ElmoEmbedder(options, weights).options
    assert Elmo(options, weights, 1).get_output_dim()
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"model": {"bilm": "~/bilm"}, "cache_file": "~/cache"})
    assert nlp("We sat")._.elmo.shape[0] == 2
    build_index("~/text.txt", "~/index", ElmoEmbedder("~/bilm"))
    assert len(prepare("~/text.txt", "~/prepared")) == 3
    names = ["a.cfg", "a.hdf5", "c.spacy", "index", "prepared", "words.txt"]
    assert set(names) <= {path.name for path in home.iterdir()}
    assert not [*here.iterdir()]
