"""`elmo download NAME`, against a server of this machine, and the name as a model afterwards."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
from file_server import Handler, Server
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import ElmoError, SettingsError
from spacy_elmo.formats.names import PUBLISHED, PublishedModel

FILES = ("options.json", "weights.hdf5")


@pytest.fixture
def source(golden: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the server sends, under the name `small`. The cache is a folder of the test."""
    folder = golden / "random_a"

    def answer(handler: Handler) -> None:
        content = (folder / handler.path.rpartition("/")[2]).read_bytes()
        handler.start(200, Content_Length=len(content))
        handler.wfile.write(content)

    server.answers = [answer]
    model = PublishedModel(server.url("/small/options.json"), server.url("/small/weights.hdf5"), "en")
    monkeypatch.setitem(PUBLISHED, "small", model)
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return folder


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["elmo", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert "\r" not in result.output
    return " ".join(result.output.split())


def hashes(folder: Path) -> list[str]:
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.slow
def test_a_name_gets_both_files_and_prints_their_hashes(source: Path, server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "cache/small"
    output = run("download", "small")
    assert all(sha256 in output for sha256 in hashes(source))
    assert "100%" in output
    assert "another source tells the SHA-256 747ba97a" in output  # these are not the published weights
    assert names(folder) == ["README.md", *FILES]
    assert hashes(folder) == hashes(source)
    card = (folder / "README.md").read_text(encoding="utf8")
    assert all(sha256 in card for sha256 in hashes(source))
    assert [path for path, _ in server.asked] == ["/small/options.json", "/small/weights.hdf5"]
    assert "already there" in run("download", "small")
    assert len(server.asked) == 2


@pytest.mark.slow
def test_another_folder(source: Path, tmp_path: Path) -> None:
    assert f"use it as {tmp_path / 'to'}" in run("download", "small", "--to", tmp_path / "to")
    assert names(tmp_path / "to") == ["README.md", *FILES]
    assert names(tmp_path / "cache") == []


@pytest.mark.slow
def test_a_readme_of_another_origin_stays(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    folder.mkdir()
    (folder / "README.md").write_text("notes of a year")
    run("download", "small", "--to", folder)
    assert names(folder) == ["README.md", *FILES]
    assert (folder / "README.md").read_text() == "notes of a year"


@pytest.mark.slow
def test_a_folder_in_the_place_of_the_card(source: Path, tmp_path: Path) -> None:
    (tmp_path / "to" / "README.md").mkdir(parents=True)
    assert "README.md: can't be written (it is a folder)" in run("download", "small", "--to", tmp_path / "to", code=1)


@pytest.mark.slow
def test_no_address_is_told_of_files_that_were_there(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    folder.mkdir()
    for name in FILES:
        shutil.copy(source / name, folder)
    run("download", "small", "--to", folder)
    card = (folder / "README.md").read_text(encoding="utf8")
    assert card.count("there before the download") == 2
    assert "http" not in card


@pytest.mark.slow
def test_hashes_are_checked(source: Path, server: Server, tmp_path: Path) -> None:
    options, weights = hashes(source)
    folder = tmp_path / "cache/small"
    assert "Expected 000000" in run("download", "small", "--sha256", "0" * 64, code=1)
    assert names(folder) == ["options.json"]  # it was complete, and nothing is wrong with it
    assert "Expected 000000" in run("download", "small", "--sha256", "0" * 64, "--sha256", weights, code=1)
    run("download", "small", "--sha256", options, "--sha256", weights.upper())
    assert names(folder) == ["README.md", *FILES]
    asked = len(server.asked)
    run("download", "small", "--sha256", weights)
    assert len(server.asked) == asked
    assert "given 3 times" in run("download", "small", *["--sha256", weights] * 3, code=1)


def test_an_address_needs_one_hash(server: Server, tmp_path: Path) -> None:
    assert "its SHA-256 is needed" in run("download", server.url(), "--to", tmp_path / "to", code=1)
    assert "given 2 times" in run("download", server.url(), *["--sha256", "0" * 64] * 2, code=1)
    assert server.asked == []
    assert names(tmp_path) == []


def test_a_page_in_place_of_a_file_is_deleted(source: Path, server: Server, tmp_path: Path) -> None:
    def page(handler: Handler) -> None:
        handler.start(200, Content_Length=6)
        handler.wfile.write(b"<html>")

    (tmp_path / "cache").mkdir()
    server.answers = [page]
    output = run("download", "small", code=1)
    assert "not valid JSON" in output
    assert f"This came from {server.url('/small/options.json')} and {server.url('/small/weights.hdf5')}" in output
    assert names(tmp_path / "cache") == []  # no empty folder either, and none that was there is removed
    run("download", "small", "--to", tmp_path / "new/folder", code=1)
    run("download", server.url(), "--sha256", "0" * 64, "--to", tmp_path / "new/folder", code=1)
    assert names(tmp_path) == ["cache"]


def test_without_a_hash_nothing_is_left_of_a_broken_download(source: Path, server: Server, tmp_path: Path) -> None:
    whole = server.answers[0]

    def cut(handler: Handler) -> None:
        handler.start(200, Content_Length=1000)
        handler.wfile.write(b"some")

    server.answers = [whole, cut]
    output = run("download", "small", code=1)
    assert "run the same command again" in output
    assert "so far" not in output
    assert names(tmp_path / "cache/small") == ["options.json"]


def test_an_unknown_name() -> None:
    assert "one of original, original-5.5B, medium, small, pubmed, pt" in run("download", "orginal", code=1)


@pytest.mark.slow
def test_the_name_is_a_model_everywhere(source: Path, tmp_path: Path) -> None:
    """The files are those of a model of AllenNLP's format, so their folder gives what to expect."""
    run("download", "small")
    words = ["We", "sat", "on", "the", "bank", "."]
    (tmp_path / "text.txt").write_text("we sat on the bank\nthe bank lent us money\n", encoding="utf8")
    expected = ElmoEmbedder(source).embed_sentence(words)
    np.testing.assert_array_equal(ElmoEmbedder("small").embed_sentence(words), expected)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": "small"}})
    doc = nlp(spacy.tokens.Doc(nlp.vocab, words=words))
    np.testing.assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=1e-5)
    run("embed", "text.txt", "vectors.hdf5", "--model", "small")
    assert "bank" in run("similar", "small", "text.txt", "--word", "bank")
    assert f"{tmp_path / 'cache/small/weights.hdf5'}" in run("info", "small")
    run("pack", "small", "packed", "--softmax", "none")
    assert names(tmp_path / "packed")
    assert "no softmax.hdf5" in run("evaluate", "small", "text.txt", code=1)


def test_the_card_tells_the_language(source: Path, tmp_path: Path) -> None:
    run("download", "small")
    with pytest.warns(UserWarning, match="trained on the language 'en'"):
        spacy.blank("de").add_pipe("elmo", config={"model": {"bilm": "small"}})


def test_a_name_that_was_not_downloaded(source: Path, tmp_path: Path) -> None:
    command = "python -m spacy elmo download original"
    (tmp_path / "text.txt").write_text("a bank\nthe bank\n", encoding="utf8")
    commands: list[tuple[object, ...]] = [
        ("embed", "text.txt", "vectors.hdf5", "--model", "original"),
        ("similar", "original", "text.txt", "--word", "bank"),
        ("info", "original"),
        ("evaluate", "original", "text.txt"),
        ("pack", "original", "packed"),
    ]
    for arguments in commands:
        assert command in run(*arguments, code=1)
    with pytest.raises(SettingsError, match=command):
        ElmoEmbedder("original")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": "original"}})
    with pytest.raises(ElmoError, match=command):
        nlp("A bank.")


def test_a_folder_of_that_name_comes_first(source: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    for name in FILES:
        (tmp_path / "small" / name).write_bytes((source / name).read_bytes())
    assert ElmoEmbedder("small").options == ElmoEmbedder(source).options
