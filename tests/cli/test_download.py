"""`elmo download`, against a server of this machine."""

import hashlib
import sys
from pathlib import Path

import pytest
from file_server import CONTENT, Answer, Handler, Server, by_range, whole
from spacy.cli._util import app
from typer.testing import CliRunner
from weight_files import make_heap_cycle

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo.cli import download as fetching

SHA256 = hashlib.sha256(CONTENT).hexdigest()
OTHER = "0" * 64


def cut(handler: Handler) -> None:
    whole(handler, 150_000)


def chunked_and_cut(handler: Handler) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.start(200, Transfer_Encoding="chunked", Connection="close")
    handler.wfile.write(b"30d40\r\n" + CONTENT[:200_000] + b"\r\n")


def wrong_range(value: str) -> Answer:
    def answer(handler: Handler) -> None:
        if handler.headers["Range"] is None:
            return whole(handler)
        handler.start(206, Content_Range=value, Content_Length=len(CONTENT))
        handler.wfile.write(CONTENT)

    return answer


def status(code: int) -> Answer:
    def answer(handler: Handler) -> None:
        handler.start(code, Content_Length=4)
        handler.wfile.write(b"none")

    return answer


def unless_ranged(code: int) -> Answer:
    return lambda handler: whole(handler) if handler.headers["Range"] is None else status(code)(handler)


def redirect(to: str, code: int = 302) -> Answer:
    return lambda handler: handler.start(code, Location=to, Content_Length=0)


def run(url: str, to: Path, sha256: str = SHA256, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["elmo", "download", url, "--sha256", sha256, "--to", str(to)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_is_put_into_a_new_folder(server: Server, tmp_path: Path) -> None:
    output = run(server.url(), tmp_path / "new" / "folder")
    assert "400,000 bytes" in output
    assert "100%" in output  # the progress bar
    assert (tmp_path / "new/folder/weights.hdf5").read_bytes() == CONTENT
    assert names(tmp_path / "new/folder") == ["weights.hdf5"]
    assert server.asked == [("/a/weights.hdf5", None)]


def test_the_name_is_decoded_and_the_query_is_not_part_of_it(server: Server, tmp_path: Path) -> None:
    run(server.url("/a/my%20weights.hdf5?key=1/2"), tmp_path, SHA256.upper())
    assert names(tmp_path) == ["my weights.hdf5"]


def test_what_is_there_is_not_asked_for(server: Server, tmp_path: Path) -> None:
    (tmp_path / "weights.hdf5").write_bytes(CONTENT)
    assert "already there" in run(server.url(), tmp_path)
    assert server.asked == []


def test_a_wrong_hash_leaves_everything_as_it_was(server: Server, tmp_path: Path) -> None:
    output = run(server.url(), tmp_path / "a", OTHER, code=1)
    assert SHA256 in output
    assert OTHER in output
    assert names(tmp_path / "a") == []
    (tmp_path / "weights.hdf5").write_bytes(b"earlier")
    run(server.url(), tmp_path, OTHER, code=1)
    assert (tmp_path / "weights.hdf5").read_bytes() == b"earlier"


def test_an_earlier_file_is_replaced_at_the_end(server: Server, tmp_path: Path) -> None:
    (tmp_path / "weights.hdf5").write_bytes(b"earlier")
    server.answers = [cut, by_range]
    run(server.url(), tmp_path, code=1)
    assert (tmp_path / "weights.hdf5").read_bytes() == b"earlier"
    run(server.url(), tmp_path)
    assert (tmp_path / "weights.hdf5").read_bytes() == CONTENT


def test_a_cut_connection_is_resumed_by_the_same_command(server: Server, tmp_path: Path) -> None:
    server.answers = [cut, by_range]
    output = run(server.url(), tmp_path, code=1)
    (part,) = tmp_path.iterdir()
    assert part == fetching.part_of(tmp_path / "weights.hdf5", SHA256)
    assert "run the same command again" in output
    assert f"{part.stat().st_size:,} bytes so far" in output
    begin = part.stat().st_size
    assert 0 < begin <= 150_000
    run(server.url(), tmp_path)
    assert server.asked[-1] == ("/a/weights.hdf5", f"bytes={begin}-")
    assert (tmp_path / "weights.hdf5").read_bytes() == CONTENT
    assert names(tmp_path) == ["weights.hdf5"]


def test_a_cut_connection_is_tried_again(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSES", (0.0, 0.0))
    server.answers = [cut, chunked_and_cut, by_range]
    run(server.url(), tmp_path)
    assert len(server.asked) == 3
    assert (tmp_path / "weights.hdf5").read_bytes() == CONTENT


def test_the_part_of_another_file_is_not_continued(server: Server, tmp_path: Path) -> None:
    fetching.part_of(tmp_path / "weights.hdf5", OTHER).write_bytes(b"of another file")
    run(server.url(), tmp_path)
    assert server.asked == [("/a/weights.hdf5", None)]


def test_a_part_that_is_whole_needs_no_server(server: Server, tmp_path: Path) -> None:
    fetching.part_of(tmp_path / "weights.hdf5", SHA256).write_bytes(CONTENT)
    run(server.url(), tmp_path)
    assert server.asked == []
    assert names(tmp_path) == ["weights.hdf5"]


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        pytest.param(whole, 1, id="no ranges"),
        pytest.param(unless_ranged(416), 2, id="416"),
        pytest.param(wrong_range("bytes 0-399999/400000"), 2, id="another begin"),
        pytest.param(wrong_range("bytes 10-5/400000"), 2, id="end before begin"),
        pytest.param(wrong_range("bytes 10-399999/7"), 2, id="beyond the size"),
        pytest.param(wrong_range("everything"), 2, id="no range"),
    ],
)
def test_where_the_server_can_not_go_on_it_begins_anew(
    server: Server, tmp_path: Path, answer: Answer, requests: int
) -> None:
    fetching.part_of(tmp_path / "weights.hdf5", SHA256).write_bytes(CONTENT[:10])
    server.answers = [answer]
    run(server.url(), tmp_path)
    assert [asked for _, asked in server.asked] == ["bytes=10-", None][:requests]
    assert (tmp_path / "weights.hdf5").read_bytes() == CONTENT


@pytest.mark.parametrize("code", [204, 404, 416, 500])
def test_other_answers_are_errors(server: Server, tmp_path: Path, code: int) -> None:
    server.answers = [status(code)]
    assert f"the server answered {code}" in run(server.url(), tmp_path, code=1)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_no_connection(server: Server, tmp_path: Path) -> None:
    url = server.url()
    server.server_close()
    message = run(url, tmp_path, code=1)
    assert "no file arrived" in message
    assert "get the files with another one" in message
    assert names(tmp_path) == []


def test_the_bytes_are_kept_as_they_are_sent(server: Server, tmp_path: Path) -> None:
    def encoded(handler: Handler) -> None:
        handler.start(200, Content_Encoding="gzip", Content_Length=len(CONTENT))
        handler.wfile.write(CONTENT)

    server.answers = [encoded]
    run(server.url(), tmp_path)
    assert (tmp_path / "weights.hdf5").read_bytes() == CONTENT


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirection_is_followed(server: Server, tmp_path: Path, code: int) -> None:
    server.answers = [redirect("/elsewhere?x=1", code), by_range]
    run(server.url(), tmp_path)
    assert [path for path, _ in server.asked] == ["/a/weights.hdf5", "/elsewhere?x=1"]
    assert names(tmp_path) == ["weights.hdf5"]


@pytest.mark.parametrize("to", ["https://127.0.0.1:9/x", "file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_a_redirection_to_another_scheme_is_refused(server: Server, tmp_path: Path, to: str) -> None:
    server.answers = [redirect(to)]
    output = run(server.url(), tmp_path, code=1)
    assert f"redirects to {to}" in output
    assert "If you trust that address, give it to the command" in output
    assert names(tmp_path) == []


@pytest.mark.parametrize("to", ["http://[", "http://127.0.0.1:port/"])
def test_a_redirection_to_no_address(server: Server, tmp_path: Path, to: str) -> None:
    server.answers = [redirect(to)]
    assert "not an address that can be downloaded" in run(server.url(), tmp_path, code=1)


def test_redirections_without_end(server: Server, tmp_path: Path) -> None:
    server.answers = [redirect("/round")]
    assert "more than 5 redirections" in run(server.url(), tmp_path, code=1)
    assert len(server.asked) == 6


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:///etc/hostname", "the scheme is 'file'"),
        ("ftp://example.org/a", "the scheme is 'ftp'"),
        ("weights.hdf5", "neither an address nor the name of a published biLM"),
        ("http://[::1/a", "not an address"),
        ("http://127.0.0.1:port/a", "not an address"),
        ("http:///a", "it names no host"),
        ("http://127.0.0.1", "can't be the name of a file"),
        ("http://127.0.0.1/a/", "can't be the name of a file"),
        ("http://127.0.0.1/a/.", "can't be the name of a file"),
        ("http://127.0.0.1/a/%2e%2E", "can't be the name of a file"),
        ("http://127.0.0.1/a%2Fb", "can't be the name of a file"),
        ("http://127.0.0.1/a%5Cb", "can't be the name of a file"),
        ("http://127.0.0.1/a%00b", "can't be the name of a file"),
    ],
)
def test_bad_addresses(tmp_path: Path, url: str, message: str) -> None:
    assert message in run(url, tmp_path / "new", code=1)
    assert names(tmp_path) == []


@pytest.mark.parametrize("sha256", ["12", "g" * 64, "0" * 65, "0" * 63 + "\n"])
def test_bad_hashes(tmp_path: Path, sha256: str) -> None:
    assert "Expected 64 hexadecimal digits" in run("http://127.0.0.1/a", tmp_path / "new", sha256, code=1)
    assert names(tmp_path) == []


def test_bad_places(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "weights.hdf5").mkdir()
    assert "can't be used as a folder" in run(server.url(), tmp_path / "file", code=1)
    assert "can't be used as a folder" in run(server.url(), tmp_path / "file" / "below", code=1)
    assert "has that name" in run(server.url(), tmp_path, code=1)
    output = run(server.url("/" + "n" * 250), tmp_path, code=1)
    assert "can't be written" in output
    assert "The bytes so far" not in output
    assert server.asked == []


def test_a_file_that_can_not_grow(server: Server, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # as a full disk does it
    try:
        output = run(server.url(), tmp_path, code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "Make room" in output
    assert "The bytes so far are in" in output
    run(server.url(), tmp_path)
    assert server.asked[1][1] is not None
    assert names(tmp_path) == ["weights.hdf5"]


@pytest.mark.skipif(sys.platform == "win32", reason="no file locks")
def test_two_runs_at_once(server: Server, tmp_path: Path) -> None:
    with fetching._opened(fetching.part_of(tmp_path / "weights.hdf5", SHA256)) as part:
        part.write(CONTENT[:10])
        assert "in use by another download" in run(server.url(), tmp_path, code=1)
    run(server.url(), tmp_path)
    assert server.asked == [("/a/weights.hdf5", "bytes=10-")]


def test_control_c_keeps_the_part(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(session: object, url: str, file: object, title: str) -> None:
        file.write(CONTENT[:10])  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetching, "transfer", interrupted)
        assert "run the same command again" in run(server.url(), tmp_path, code=130)
    run(server.url(), tmp_path)
    assert server.asked == [("/a/weights.hdf5", "bytes=10-")]


@pytest.mark.slow
def test_an_hdf5_file_is_checked(server: Server, tmp_path: Path, golden: Path) -> None:
    """At the end of a download and if it was there; one that HDF5 reads without end stays, and is told."""
    path = tmp_path / "source.hdf5"
    for hostile in (False, True):
        path.write_bytes((golden / "random_a" / "weights.hdf5").read_bytes())
        if hostile:
            make_heap_cycle(path)
        content = path.read_bytes()
        server.answers = [lambda handler, content=content: sent(handler, content)]
        for told in (f"{len(content):,} bytes", "already there"):
            output = run(server.url(), tmp_path / "to", hashlib.sha256(content).hexdigest(), code=int(hostile))
            assert ("get it again" if hostile else told) in output
            assert not hostile or "The file stays there" in output
            assert (tmp_path / "to" / "weights.hdf5").read_bytes() == content


def sent(handler: Handler, content: bytes) -> None:
    handler.start(200, Content_Length=len(content))
    handler.wfile.write(content)
