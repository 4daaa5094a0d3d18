"""Outputs: none replaces an input, whatever its path is called, and no two are written at once."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from spacy_elmo.errors import CommandError, CorpusError
from spacy_elmo.formats import outputs
from spacy_elmo.formats.atomic import UNFINISHED, replacing
from spacy_elmo.formats.outputs import check_output
from spacy_elmo.formats.paths import find_files

FOLDERS = ("in", "in/a", "in/a/b", "other", "other/in")
NAMES = ("x.txt", "y.txt", "z.tsv")


def layout(root: Path, random: Random) -> None:
    """Make folders with texts, links to files and folders, and hard links, by chance."""
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    texts = []
    for folder in FOLDERS:
        for name in NAMES:
            kind, path = random.choice(("none", "text", "text", "link", "hard")), root / folder / name
            if kind == "text" or (kind in ("link", "hard") and not texts):
                path.write_text(f"the text of {folder}/{name}")
                texts.append(path)
            elif kind == "link":
                path.symlink_to(os.path.relpath(random.choice(texts), path.parent))
            elif kind == "hard":
                os.link(random.choice(texts), path)
    for name in ("in/l", "other/l", "l"):
        if random.random() < 0.5:
            (root / name).symlink_to(root / random.choice(FOLDERS), target_is_directory=True)


def spelled(path: str, root: Path, random: Random) -> str:
    """A relative or absolute path, perhaps by a detour."""
    first, *rest = path.split("/")
    detour = random.choice(("", "", f"{random.choice(FOLDERS)}/../", "./"))
    detour = detour.replace("in/a/b/../", "in/a/b/../../../").replace("in/a/../", "in/a/../../")
    detour = detour.replace("other/in/../", "other/in/../../")
    begin = random.choice(("", f"{root}/"))
    return begin + detour + "/".join([first, *rest])


def read(source: str) -> dict[Path, str]:
    """What the files of a source say."""
    try:
        return {file: file.read_text() for file in find_files(source)}
    except CorpusError:  # it has none
        return {}


def refusal(path: object, inputs: Iterable[str] = (), **settings: bytes) -> str:
    """Why a file is not to be written; empty: it may be."""
    try:
        with outputs.output(str(path), CommandError, inputs, **settings):
            return ""
    except CommandError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(4))
def test_no_output_replaces_or_becomes_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Tried by writing: what was read says the same afterwards, and nothing else is read; or else it is refused."""
    random, refused = Random(seed), 0
    for number in range(40):
        root = tmp_path / str(number)
        layout(root, random)
        monkeypatch.chdir(root)
        sources = ("in", "in/a", "l", "in/x.txt", "in/*.txt", "in/*/*.txt", "in/**/*.tsv", "i[n]/?.*", "o*/in/[xy].txt")
        source = spelled(random.choice(sources), root, random)
        places = [*FOLDERS, *(path.name for path in [root / "l"] if path.exists())]
        output = spelled(f"{random.choice(places)}/{random.choice([*NAMES, 'new.txt'])}", root, random)
        before = read(source)
        files = sorted(path for path in root.rglob("*"))
        told = refusal(output, [source])
        assert re.search("^$|are the same|which is read", told)
        assert sorted(path for path in root.rglob("*")) == files
        Path(output).write_text("an output")
        is_wrong = read(source) != before
        assert bool(told) == is_wrong, (source, output)
        refused += is_wrong
        shutil.rmtree(root)
    assert 5 < refused < 35


def test_inputs_of_a_folder(tmp_path: Path) -> None:
    """What is written there, in a folder of it, or would be read the next time."""
    out, names = tmp_path / "out", ("text.txt", "corpus")
    (out / "corpus").mkdir(parents=True)
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    for path in (out / "corpus" / "a.txt", out / "text.txt", out / "b.txt", tmp_path / "texts" / "deep" / "c.txt"):
        path.touch()
    (tmp_path / "link").symlink_to(out / "corpus" / "a.txt")

    def check(source: object, folder: Path = out, left_out: bool = False) -> None:
        check_output(folder, CommandError, [str(source)], names=names, left_out=left_out)

    for source in (out / "text.txt", out / "corpus", out / "corpus" / "a.txt", tmp_path / "link", out / "*.txt", out):
        with pytest.raises(CommandError, match="the folder to read and the folder to write are the same"):
            check(source)
    check(out / "b.txt")
    check(out / "*.txt", left_out=True)
    new = tmp_path / "texts" / "new"
    for source in (tmp_path, tmp_path / "texts", tmp_path / "texts" / "*" / "*.txt", tmp_path / "**" / "*.txt"):
        with pytest.raises(CommandError, match="the output is inside"):
            check(source, new)
    check(tmp_path / "texts" / "*.txt", new)
    check(tmp_path / "texts" / "deep", new)


def test_what_is_in_a_folder(tmp_path: Path) -> None:
    """A folder of the same kind is replaced if that is asked; another one holds what somebody would lose."""

    def check(**settings: bool | None) -> None:
        check_output(tmp_path, CommandError, names=("a.json", "b"), marks=("a.json",), **settings)  # type: ignore[arg-type]

    (tmp_path / ".git").mkdir()
    check(force=False)
    (tmp_path / "notes.txt").touch()
    for beside, hint in ((None, r"another one\.$"), (False, "or add --force to write beside them")):
        with pytest.raises(CommandError, match=rf"holds notes\.txt, but no a\.json.*{hint}"):
            check(beside=beside)
    check(beside=True)
    (tmp_path / "b").touch()
    with pytest.raises(CommandError, match=r"holds b, but no a\.json"):
        check(beside=True)
    for name in ("a.json", UNFINISHED):  # the latter after a kill
        (tmp_path / name).touch()
        check()
        with pytest.raises(CommandError, match=r"exists\. Give another folder, or add --force"):
            check(force=False)
        (tmp_path / name).unlink()
    with pytest.raises(CommandError, match="is no folder"), outputs.output(tmp_path / "b", CommandError, names=("a",)):
        pytest.fail("not reached")


def test_files_of_another_kind(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for content, is_refused in (("", False), ("<!DOCTYPE html>\n", False), ("My notes\n", True), ("<!", True)):
        page.write_text(content)
        told = refusal(page, begins=b"<!doctype html")
        assert (f"begins with {content[:14].encode()!r}" in told) == bool(told) == is_refused
        assert page.read_text() == content


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
@pytest.mark.parametrize("names", [(), ("a",)])
def test_names_that_no_file_can_have(tmp_path: Path, name: str, names: tuple[str, ...]) -> None:
    bad, good = tmp_path / name, tmp_path / "good"
    for path, inputs in ((bad, []), (good, [bad]), (bad / "in", [])):
        with (
            pytest.raises(CommandError, match="can't be the name of a file"),
            outputs.output(path, CommandError, inputs, names=names),
        ):
            pytest.fail("not reached")
    with pytest.raises(CommandError, match="can't be the name of a file"), replacing(bad, CommandError):
        pytest.fail("not reached")
    assert not list(tmp_path.iterdir())


def test_a_text_on_standard_input_is_not_replaced(tmp_path: Path) -> None:
    """As by `vocab - text.txt < text.txt`."""
    text = tmp_path / "text.txt"
    text.write_text("the cat", encoding="utf8")
    before = os.dup(0)
    with text.open("rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        with pytest.raises(CommandError, match="are the same"):
            check_output(text, CommandError, ["-"])
        check_output(tmp_path / "other.txt", CommandError, ["-"])
    finally:
        os.dup2(before, 0)
        os.close(before)
