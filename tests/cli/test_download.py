"""`elmo download`, against a server of this machine, and a biLM's name as a model afterwards."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests
import spacy
from commands import run

from spacy_elmo import ElmoEmbedder
from spacy_elmo.cli import download as fetching
from spacy_elmo.errors import ElmoError
from spacy_elmo.formats.names import PUBLISHED, PublishedModel

CONTENT = os.urandom(400_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OTHER = "0" * 64
FILES = ("options.json", "weights.hdf5")


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's next answer does."""

    def do_GET(self) -> None:
        server: Server = self.server  # type: ignore[assignment]
        server.asked.append(self.path)
        assert self.headers["Accept-Encoding"] == "identity"
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        answer(self)

    def start(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """answers: what the next requests get, the last one over and over; asked: the path of each request."""

    answers: list[Callable[[Handler], None]]
    asked: list[str]

    def url(self, path: str = "/a/weights.hdf5") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


def whole(handler: Handler, content: bytes = CONTENT) -> None:
    handler.start(200, Content_Length=len(content))
    handler.wfile.write(content)


def cut(handler: Handler) -> None:
    handler.start(200, Content_Length=len(CONTENT))
    handler.wfile.write(CONTENT[:150_000])


def redirect(to: str) -> Callable[[Handler], None]:
    return lambda handler: handler.start(302, Location=to, Content_Length=0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    with Server(("127.0.0.1", 0), Handler) as made:
        made.answers, made.asked = [whole], []
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def get(url: str, to: Path, sha256: str = SHA256, *options: str, code: int = 0) -> str:
    return run("elmo", "download", url, "--sha256", sha256, "--to", to, *options, code=code)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*"))}


# A file by its address


def test_a_file_is_put_into_a_new_folder(server: Server, tmp_path: Path) -> None:
    output = get(server.url("/a/my%20weights.hdf5?key=1/2"), tmp_path / "new" / "folder", SHA256.upper())
    assert "400,000 bytes" in output
    assert "100%" in output  # the progress bar
    assert contents(tmp_path / "new/folder") == {"my weights.hdf5": CONTENT}
    assert "already there" in get(server.url("/my%20weights.hdf5"), tmp_path / "new/folder")
    assert server.asked == ["/a/my%20weights.hdf5?key=1/2"]


def test_what_fails_leaves_the_earlier_file(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights.hdf5").write_bytes(b"earlier")
    assert "exists. Give another file, or add --force" in get(server.url(), tmp_path, code=1)
    assert f"is {SHA256}. Expected {OTHER}" in get(server.url(), tmp_path, OTHER, "--force", code=1)
    for answer, told in (
        (cut, "run the same command again"),
        (lambda handler: handler.start(404, Content_Length=0), "answered 404 Not Found. Expected 200 and the file"),
        *((redirect(to), "no file arrived") for to in ("/round", "http://[", "file:///etc/a")),
    ):
        server.answers = [answer]
        assert told in get(server.url(), tmp_path, SHA256, "--force", code=1)

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetching.os, "fsync", stop)
        server.answers = [whole]
        assert "stopped. Earlier files stay" in get(server.url(), tmp_path, SHA256, "--force", code=130)
    assert contents(tmp_path) == {"weights.hdf5": b"earlier"}
    get(server.url(), tmp_path, SHA256, "--force")
    assert contents(tmp_path) == {"weights.hdf5": CONTENT}


def test_redirections(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One to another scheme is refused. The first address is told to be of HTTPS, since this server has none."""
    server.answers = [redirect("/elsewhere?x=1"), whole]
    get(server.url(), tmp_path)
    assert server.asked == ["/a/weights.hdf5", "/elsewhere?x=1"]
    ask = requests.get

    def get_and_tell(url: str, **settings: Any) -> requests.Response:
        response = ask(url, **settings)
        response.history[0].url = "https://127.0.0.1/a"
        return response

    monkeypatch.setattr(requests, "get", get_and_tell)
    server.answers = [redirect("/elsewhere"), whole]
    assert "with another scheme" in get(server.url("/b"), tmp_path, code=1)
    assert list(contents(tmp_path)) == ["weights.hdf5"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:///etc/hostname", "neither an address nor the name of a published biLM"),
        ("orginal", "Did you mean original? Expected http://..., https://..., or one of original, original-5.5B"),
        ("http://[::1/a", "no file arrived"),
        ("http://127.0.0.1:9/a", "no file arrived"),
        *((f"http://127.0.0.1{path}", "can't be the name of a file") for path in ("", "/%2e%2E", "/a%2Fb", "/a%00b")),
    ],
)
def test_bad_addresses(tmp_path: Path, url: str, message: str) -> None:
    assert message in get(url, tmp_path, code=1)
    assert contents(tmp_path) == {}


def test_bad_hashes_and_places(server: Server, tmp_path: Path) -> None:
    for sha256 in ("12", "g" * 64):
        assert "Expected 64 hexadecimal digits" in get(server.url(), tmp_path, sha256, code=1)
    for n in (0, 2):
        assert f"given {n} times" in run("elmo", "download", server.url(), *["--sha256", OTHER] * n, code=1)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "weights.hdf5").mkdir()
    assert "can't be written" in get(server.url(), tmp_path / "file" / "below", code=1)
    assert "it is a folder" in get(server.url(), tmp_path, code=1)
    assert server.asked == []
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # as a full disk does it
    try:
        assert "a: can't be written" in get(server.url("/a"), tmp_path, code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "weights.hdf5"]


# A published biLM by its name


@pytest.fixture
def source(golden: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the server sends, under the name `small`. The cache is a folder of the test."""
    folder = golden / "random_a"
    server.answers = [lambda handler: whole(handler, (folder / handler.path.rpartition("/")[2]).read_bytes())]
    model = PublishedModel(server.url("/small/options.json"), server.url("/small/weights.hdf5"), "en")
    monkeypatch.setitem(PUBLISHED, "small", model)
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return folder


download = partial(run, "elmo", "download")


def test_a_name_gets_both_files_and_prints_their_hashes(source: Path, server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "cache/small"
    options, weights = (hashlib.sha256((source / name).read_bytes()).hexdigest() for name in FILES)
    assert "Expected 000000" in download("small", "--sha256", OTHER, code=1)
    assert list(contents(folder)) == ["options.json"]  # it was complete, and nothing is wrong with it
    assert "given 3 times" in download("small", *["--sha256", weights] * 3, code=1)
    output = download("small", "--sha256", options, "--sha256", weights.upper())
    assert all(sha256 in output for sha256 in (options, weights))
    assert "another source tells the SHA-256 747ba97a" in output  # these are not the published weights
    assert list(contents(folder)) == ["README.md", *FILES]
    assert all(contents(folder)[name] == (source / name).read_bytes() for name in FILES)
    card = (folder / "README.md").read_text(encoding="utf8")
    assert "| language | en |" in card
    for name, sha256 in zip(FILES, (options, weights)):
        assert f"{server.url('/small')}/{name}, SHA-256 {sha256}" in card
    assert ElmoEmbedder("small").options == ElmoEmbedder(source).options
    asked = len(server.asked)
    assert "already there" in download("small")
    assert len(server.asked) == asked
    with pytest.warns(UserWarning, match="trained on the language 'en'"):
        spacy.blank("de").add_pipe("elmo", config={"model": {"bilm": "small"}})


def test_what_is_in_the_folder(source: Path, server: Server, tmp_path: Path) -> None:
    """A README.md of another origin stays, and no address is told of files that were there."""
    for readme in ("notes of a year", None):
        folder = tmp_path / str(readme)
        shutil.copytree(source, folder)
        (folder / "README.md").unlink(missing_ok=True)
        if readme is not None:
            (folder / "README.md").write_text(readme)
        assert f"use it as {folder}" in download("small", "--to", folder)
        card = (folder / "README.md").read_text(encoding="utf8")
        assert card == readme or (card.count("there before the download") == 2 and "http" not in card)
    server.answers = [partial(whole, content=b"<html>")]
    output = download("small", code=1)
    assert "not valid JSON" in output
    assert f"This came from {server.url('/small/options.json')} and {server.url('/small/weights.hdf5')}" in output
    assert contents(tmp_path / "cache/small") == {}


def test_a_name_that_was_not_downloaded(source: Path, text: Path, tmp_path: Path) -> None:
    command = "python -m spacy elmo download original"
    for arguments in ("embed text.txt vectors.hdf5 --model original", "evaluate original text.txt"):
        assert command in run("elmo", *arguments.split(), code=1)
    with pytest.raises(ElmoError, match=command):
        ElmoEmbedder("original")
