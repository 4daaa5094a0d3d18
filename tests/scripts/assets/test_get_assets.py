"""Assets: taken from a folder, fetched from an address, or named where neither has them."""

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from scripts.assets.asset_files import Prepared
from scripts.assets.get_assets import get_assets, read_assets
from spacy_elmo.errors import CommandError, DownloadError

TEXT = {"a.txt": b"one\n", "b.txt": b"two\n"}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and keeps quiet."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder on a local server, and its address."""
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def project(tmp_path: Path, served: tuple[Path, str]) -> Path:
    """A project with two assets on the server."""
    folder = tmp_path / "project"
    folder.mkdir()
    assets = [
        {"dest": f"assets/x/{name}", "url": f"{served[1]}/{name}", "checksum": hashlib.md5(text).hexdigest()}
        for name, text in TEXT.items()
    ]
    (folder / "project.yml").write_text(json.dumps({"assets": assets, "commands": []}))  # JSON is YAML
    return folder


def test_from_a_folder_and_the_rest_from_the_address(tmp_path: Path, project: Path, served: tuple[Path, str]) -> None:
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "a.txt").write_bytes(b"another file of this name\n")
    (data / "deep" / "a.txt").write_bytes(TEXT["a.txt"])
    (served[0] / "b.txt").write_bytes(TEXT["b.txt"])  # a.txt is not on the server
    get_assets(project, data)
    assert {path.name: path.read_bytes() for path in (project / "assets/x").iterdir()} == TEXT


def test_a_file_of_other_contents_is_named(tmp_path: Path, project: Path, served: tuple[Path, str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_bytes(b"another file of this name\n")
    with pytest.raises(DownloadError, match=r"a\.txt \(MD5 .*; not used: .*data/a\.txt, which has another MD5, "):
        get_assets(project, data)


def test_a_file_of_the_user_stays(project: Path, served: tuple[Path, str]) -> None:
    """It has another MD5, and nothing came in its place."""
    path = project / "assets/x/a.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"my own\n")
    (served[0] / "b.txt").write_bytes(TEXT["b.txt"])
    with pytest.raises(DownloadError, match=r"a\.txt"):
        get_assets(project, None)
    assert path.read_bytes() == b"my own\n"


def test_files_that_are_there_stay(project: Path, served: tuple[Path, str]) -> None:
    for name, text in TEXT.items():
        (served[0] / name).write_bytes(text)
    get_assets(project, None)
    for name in TEXT:
        (served[0] / name).unlink()
    get_assets(project, None)
    assert {path.name: path.read_bytes() for path in (project / "assets/x").iterdir()} == TEXT


def test_another_file_at_the_address(project: Path, served: tuple[Path, str]) -> None:
    (served[0] / "a.txt").write_bytes(TEXT["a.txt"])
    (served[0] / "b.txt").write_bytes(b"not what it was\n")
    with pytest.raises(DownloadError, match=r"b\.txt") as error:
        get_assets(project, None)
    assert "a.txt" not in str(error.value)
    assert [path.name for path in (project / "assets/x").iterdir()] == ["a.txt"]


def test_nothing_at_the_address(project: Path) -> None:
    with pytest.raises(DownloadError, match=r"a\.txt.*\n.*b\.txt"):
        get_assets(project, None)
    assert not list((project / "assets/x").iterdir())


def test_no_folder(project: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none: no such folder.*vars\.data"):
        get_assets(project, tmp_path / "none")


def test_files_of_chosen_folders(project: Path, served: tuple[Path, str]) -> None:
    """A list names the files of a folder; its files and those of x come alone, and together if no folder is given."""
    config = json.loads((project / "project.yml").read_text())
    config["assets"].append({"dest": "assets/y", "files": "y.tsv"})
    (project / "project.yml").write_text(json.dumps(config))
    checksum = hashlib.md5(b"three\n").hexdigest()
    (project / "y.tsv").write_text(f"{checksum}\t{served[1]}/deep/c.txt\n")
    (served[0] / "deep").mkdir()
    (served[0] / "deep" / "c.txt").write_bytes(b"three\n")
    get_assets(project, None, ["y"])  # the files of x are not on the server
    assert [path.relative_to(project).as_posix() for path in project.rglob("*.txt")] == ["assets/y/c.txt"]
    assert (project / "assets/y/c.txt").read_bytes() == b"three\n"
    assert [asset["dest"] for asset in read_assets(project, ["x"])] == ["assets/x/a.txt", "assets/x/b.txt"]
    assert [Path(asset["dest"]).name for asset in read_assets(project)] == ["a.txt", "b.txt", "c.txt"]
    with pytest.raises(CommandError, match=r"assets/z: project.yml has no files there. Expected .* x, y"):
        get_assets(project, None, ["z"])


def test_prepared_files_replace_their_originals(tmp_path: Path, project: Path) -> None:
    """Nothing is on the server."""
    texts = {"p.tsv": b"one, two\n", "q.tsv": b"and more\n"}
    files = {f"assets/x/{name}": hashlib.md5(text).hexdigest() for name, text in texts.items()}
    prepared = (Prepared(files, ("assets/x/a.txt", "assets/x/b.txt")),)
    data = tmp_path / "data"
    data.mkdir()
    (data / "p.tsv").write_bytes(texts["p.tsv"])
    with pytest.raises(DownloadError, match=r"a\.txt.*\n.*b\.txt"):  # one of two prepared files is not enough
        get_assets(project, data, prepared=prepared)
    (data / "q.tsv").write_bytes(texts["q.tsv"])
    get_assets(project, data, prepared=prepared)
    assert {path.name: path.read_bytes() for path in (project / "assets/x").iterdir()} == texts
    get_assets(project, None, prepared=prepared)  # they stay as good as the originals
