"""`elmo download`, against a server of this machine, and a biLM's name as a model afterwards."""

import hashlib
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import spacy
from commands import run
from file_server import CONTENT, Answer, Handler, Server, whole
from weight_files import make_heap_cycle

from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import ElmoError, SettingsError
from spacy_elmo.formats.names import PUBLISHED, PublishedModel

fetching = sys.modules["spacy_elmo.cli.download"]  # the package has the command of this name
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OTHER = "0" * 64
FILES = ("options.json", "weights.hdf5")


def cut(handler: Handler) -> None:
    handler.start(200, Content_Length=len(CONTENT))
    handler.wfile.write(CONTENT[:150_000])


def chunked_and_cut(handler: Handler) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.start(200, Transfer_Encoding="chunked", Connection="close")
    handler.wfile.write(b"30d40\r\n" + CONTENT[:200_000] + b"\r\n")


def redirect(to: str) -> Answer:
    return lambda handler: handler.start(302, Location=to, Content_Length=0)


def get(url: str, to: Path, sha256: str = SHA256, code: int = 0) -> str:
    return run("elmo", "download", url, "--sha256", sha256, "--to", to, code=code)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# A file by its address


def test_a_file_is_put_into_a_new_folder(server: Server, tmp_path: Path) -> None:
    output = get(server.url("/a/my%20weights.hdf5?key=1/2"), tmp_path / "new" / "folder", SHA256.upper())
    assert "400,000 bytes" in output
    assert "100%" in output  # the progress bar
    assert (tmp_path / "new/folder/my weights.hdf5").read_bytes() == CONTENT
    assert names(tmp_path / "new/folder") == ["my weights.hdf5"]
    assert "already there" in get(server.url("/my%20weights.hdf5"), tmp_path / "new/folder")
    assert server.asked == ["/a/my%20weights.hdf5?key=1/2"]


def test_a_wrong_hash_leaves_everything_as_it_was(server: Server, tmp_path: Path) -> None:
    output = get(server.url(), tmp_path / "a", OTHER, code=1)
    assert f"is {SHA256}. Expected {OTHER}" in output
    assert not (tmp_path / "a").exists()
    (tmp_path / "weights.hdf5").write_bytes(b"earlier")
    get(server.url(), tmp_path, OTHER, code=1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"weights.hdf5": b"earlier"}


def test_a_broken_connection(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier file stays until the end; after a pause there is another attempt."""
    (tmp_path / "weights.hdf5").write_bytes(b"earlier")
    server.answers = [cut]
    assert "run the same command again" in get(server.url(), tmp_path, code=1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"weights.hdf5": b"earlier"}
    server.asked.clear()
    server.answers = [cut, chunked_and_cut, whole]
    monkeypatch.setattr(fetching, "PAUSES", (0.0, 0.0))
    get(server.url(), tmp_path)
    assert len(server.asked) == 3
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"weights.hdf5": CONTENT}


def test_no_server(server: Server, tmp_path: Path) -> None:
    assert "no file arrived" in get("http://127.0.0.1:9/a", tmp_path, code=1)
    server.answers = [lambda handler: handler.start(404, Content_Length=0)]
    assert "the server answered 404 Not Found. Expected 200 and the file" in get(server.url(), tmp_path, code=1)
    assert names(tmp_path) == []


def test_redirections(server: Server, tmp_path: Path) -> None:
    server.answers = [redirect("/elsewhere?x=1"), whole]
    get(server.url(), tmp_path)
    assert server.asked == ["/a/weights.hdf5", "/elsewhere?x=1"]
    assert names(tmp_path) == ["weights.hdf5"]
    for to in ("/round", "http://[", "http://127.0.0.1:port/", "file:///etc/hostname", "https://127.0.0.1:9/x"):
        server.answers = [redirect(to)]
        assert "no file arrived" in get(server.url("/b"), tmp_path, code=1)
    assert names(tmp_path) == ["weights.hdf5"]


def test_a_redirection_to_another_scheme_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first address is told to be of HTTPS, since this server has none."""
    import requests

    ask = requests.get

    def get_and_tell(url: str, **settings: object) -> requests.Response:
        response = ask(url, **settings)  # type: ignore[arg-type]
        response.history[0].url = "https://127.0.0.1/a"
        return response

    monkeypatch.setattr(requests, "get", get_and_tell)
    server.answers = [redirect("/elsewhere"), whole]
    output = get(server.url(), tmp_path, code=1)
    assert "with another scheme" in output
    assert "If you trust that address, give it to the command" in output
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:///etc/hostname", "not an address that can be downloaded"),
        ("weights.hdf5", "neither an address nor the name of a published biLM"),
        ("orginal", "one of original, original-5.5B, medium, small, pubmed, pt"),
        ("http://[::1/a", "not an address"),
        ("http://127.0.0.1:port/a", "not an address"),
        ("http:///a", "not an address that can be downloaded"),
        ("http://127.0.0.1", "can't be the name of a file"),
        ("http://127.0.0.1/a/%2e%2E", "can't be the name of a file"),
        ("http://127.0.0.1/a%2Fb", "can't be the name of a file"),
        ("http://127.0.0.1/a%5Cb", "can't be the name of a file"),
        ("http://127.0.0.1/a%00b", "can't be the name of a file"),
    ],
)
def test_bad_addresses(tmp_path: Path, url: str, message: str) -> None:
    assert message in get(url, tmp_path / "new", code=1)
    assert names(tmp_path) == []


def test_bad_hashes(server: Server, tmp_path: Path) -> None:
    for sha256 in ("12", "g" * 64, "0" * 65, "0" * 63 + "\n"):
        assert "Expected 64 hexadecimal digits" in get(server.url(), tmp_path / "new", sha256, code=1)
    assert "its SHA-256 is needed" in run("elmo", "download", server.url(), "--to", tmp_path / "to", code=1)
    assert "given 2 times" in run("elmo", "download", server.url(), *["--sha256", OTHER] * 2, code=1)
    assert (server.asked, names(tmp_path)) == ([], [])


def test_bad_places(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "weights.hdf5").mkdir()
    assert "can't be used as a folder" in get(server.url(), tmp_path / "file" / "below", code=1)
    assert "it is a folder" in get(server.url(), tmp_path, code=1)
    assert "File name too long" in get(server.url("/" + "n" * 260), tmp_path, code=1)
    assert server.asked == []
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # as a full disk does it
    try:
        assert "Make room" in get(server.url("/a"), tmp_path, code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["file", "weights.hdf5"]


def test_a_stopped_command(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "sha256_of", stop)  # of the file that is there
    (tmp_path / "weights.hdf5").write_bytes(b"earlier")
    assert "stopped. Nothing is kept" in get(server.url(), tmp_path, code=130)
    monkeypatch.setattr(fetching.os, "fsync", stop)
    assert "stopped. Nothing is kept" in get(server.url("/b"), tmp_path / "new", code=130)
    assert names(tmp_path) == ["weights.hdf5"]


@pytest.mark.slow
def test_an_hdf5_file_is_checked(server: Server, tmp_path: Path, golden: Path) -> None:
    """At the end of a download and if it was there; one that HDF5 reads without end stays, and is told."""
    path = tmp_path / "source.hdf5"
    for hostile in (False, True):
        path.write_bytes((golden / "random_a" / "weights.hdf5").read_bytes())
        if hostile:
            make_heap_cycle(path)
        content = path.read_bytes()
        server.answers = [partial(whole, content=content)]
        for told in (f"{len(content):,} bytes", "already there"):
            output = get(server.url(), tmp_path / "to", hashlib.sha256(content).hexdigest(), code=int(hostile))
            assert ("The file stays there" if hostile else told) in output
            assert (tmp_path / "to" / "weights.hdf5").read_bytes() == content


# A published biLM by its name


@pytest.fixture
def source(golden: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the server sends, under the name `small`. The cache is a folder of the test."""
    folder = golden / "random_a"
    server.answers = [
        lambda handler: whole(handler, (folder / handler.path.rpartition("/")[2]).read_bytes()),
    ]
    model = PublishedModel(server.url("/small/options.json"), server.url("/small/weights.hdf5"), "en")
    monkeypatch.setitem(PUBLISHED, "small", model)
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return folder


download = partial(run, "elmo", "download")


def hashes(folder: Path) -> list[str]:
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES]


@pytest.mark.slow
def test_a_name_gets_both_files_and_prints_their_hashes(source: Path, server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "cache/small"
    output = download("small")
    assert all(sha256 in output for sha256 in hashes(source))
    assert "another source tells the SHA-256 747ba97a" in output  # these are not the published weights
    assert names(folder) == ["README.md", *FILES]
    assert hashes(folder) == hashes(source)
    card = (folder / "README.md").read_text(encoding="utf8")
    assert "| language | en |" in card
    assert all(f"{server.url('/small')}/{name}, SHA-256 {sha}" in card for name, sha in zip(FILES, hashes(source)))
    assert server.asked == ["/small/options.json", "/small/weights.hdf5"]
    assert "already there" in download("small")
    assert len(server.asked) == 2
    assert f"use it as {tmp_path / 'to'}" in download("small", "--to", tmp_path / "to")
    assert names(tmp_path / "to") == ["README.md", *FILES]
    with pytest.warns(UserWarning, match="trained on the language 'en'"):
        spacy.blank("de").add_pipe("elmo", config={"model": {"bilm": "small"}})


@pytest.mark.slow
def test_what_is_in_the_folder(source: Path, server: Server, tmp_path: Path) -> None:
    """A README.md of another origin stays, and no address is told of files that were there."""
    for name, readme in (("a", "notes of a year"), ("b", None)):
        folder = tmp_path / name
        shutil.copytree(source, folder)
        (folder / "README.md").unlink(missing_ok=True)
        if readme is not None:
            (folder / "README.md").write_text(readme)
        download("small", "--to", folder)
        card = (folder / "README.md").read_text(encoding="utf8")
        assert card == readme or (card.count("there before the download") == 2 and "http" not in card)
    (tmp_path / "to" / "README.md").mkdir(parents=True)
    assert "README.md: can't be written (it is a folder)" in download("small", "--to", tmp_path / "to", code=1)


@pytest.mark.slow
def test_hashes_are_checked(source: Path, server: Server, tmp_path: Path) -> None:
    options, weights = hashes(source)
    folder = tmp_path / "cache/small"
    assert "Expected 000000" in download("small", "--sha256", OTHER, code=1)
    assert names(folder) == ["options.json"]  # it was complete, and nothing is wrong with it
    assert "Expected 000000" in download("small", "--sha256", OTHER, "--sha256", weights, code=1)
    download("small", "--sha256", options, "--sha256", weights.upper())
    assert names(folder) == ["README.md", *FILES]
    asked = len(server.asked)
    download("small", "--sha256", weights)
    assert len(server.asked) == asked
    assert "given 3 times" in download("small", *["--sha256", weights] * 3, code=1)


def test_a_page_in_place_of_a_file_is_deleted(source: Path, server: Server, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    server.answers = [partial(whole, content=b"<html>")]
    output = download("small", code=1)
    assert "not valid JSON" in output
    assert f"This came from {server.url('/small/options.json')} and {server.url('/small/weights.hdf5')}" in output
    assert names(tmp_path / "cache") == []  # no empty folder either, and none that was there is removed
    download("small", "--to", tmp_path / "new/folder", code=1)
    assert names(tmp_path) == ["cache"]


@pytest.mark.slow
def test_the_name_is_a_model_everywhere(source: Path, tmp_path: Path) -> None:
    """The files are those of a model of AllenNLP's format, so their folder gives what to expect."""
    download("small")
    words = ["We", "sat", "on", "the", "bank", "."]
    (tmp_path / "text.txt").write_text("we sat on the bank\nthe bank lent us money\n", encoding="utf8")
    expected = ElmoEmbedder(source).embed_sentence(words)
    np.testing.assert_array_equal(ElmoEmbedder("small").embed_sentence(words), expected)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": "small"}})
    doc = nlp(spacy.tokens.Doc(nlp.vocab, words=words))
    np.testing.assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=1e-5)
    run("elmo", "embed", "text.txt", "vectors.hdf5", "--model", "small")
    assert "bank" in run("elmo", "similar", "small", "text.txt", "--word", "bank")
    assert f"{tmp_path / 'cache/small/weights.hdf5'}" in run("elmo", "info", "small")
    run("elmo", "pack", "small", "packed", "--softmax", "none")
    assert names(tmp_path / "packed")
    assert "no softmax.hdf5" in run("elmo", "evaluate", "small", "text.txt", code=1)
    shutil.copytree(source, "small")  # a folder of that name comes first
    shutil.rmtree("cache")
    assert ElmoEmbedder("small").options == ElmoEmbedder(source).options


def test_a_name_that_was_not_downloaded(source: Path, tmp_path: Path) -> None:
    command = "python -m spacy elmo download original"
    (tmp_path / "text.txt").write_text("a bank\nthe bank\n", encoding="utf8")
    for arguments in (
        "embed text.txt vectors.hdf5 --model original",
        "similar original text.txt --word bank",
        "info original",
        "evaluate original text.txt",
        "pack original packed",
    ):
        assert command in run("elmo", *arguments.split(), code=1)
    with pytest.raises(SettingsError, match=command):
        ElmoEmbedder("original")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": "original"}})
    with pytest.raises(ElmoError, match=command):
        nlp("A bank.")
