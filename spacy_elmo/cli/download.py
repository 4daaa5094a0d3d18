"""`elmo download`: fetch a published biLM, or a file by its address. No other command uses the network."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import requests
import typer
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import HTTPError

from ..errors import CommandError, DownloadError, ElmoError, shown
from ..formats.atomic import replacing, writing
from ..formats.contents import check, is_hdf5
from ..formats.names import OFFICIAL_MODELS, PUBLISHED, PublishedModel, published_folder
from ..formats.options import read_options
from ..formats.paths import sha256_of
from ..formats.weights import read_weights
from ..pretraining.language_model import CARD, OPTIONS, WEIGHTS
from .console import msg, printing_errors
from .shared import shown_bar

_DOWNLOAD_URL = "{url}: not an address that can be downloaded ({reason}). Expected http://... or https://..."

# Errors after which another attempt may succeed.
NETWORK_ERRORS = (requests.RequestException, HTTPError)
PAUSES = (1.0, 3.0)  # seconds before the second and the third attempt
TIMEOUT = (10, 60)  # seconds to connect, and between two pieces of the response
MAX_REDIRECTS = 5
_PIECE = 2**16  # bytes of a piece: a broken connection loses at most one
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")


def part_of(target: Path, sha256: str | None) -> Path:
    """Return the path of an incomplete download, in the folder of the file. Files with other hashes have other names.

    target: path of the complete file.
    sha256: of the complete file, in hexadecimal; None if it is not known.
    """
    return target.with_name(f"{target.name}.{sha256[:16]}.part" if sha256 else f"{target.name}.part")


def target_in(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder, which is created if it is missing. Raises CommandError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / name
        in_the_way = target.exists() and not target.is_file()
    except OSError as error:
        raise CommandError(f"{folder}: can't be used as a folder ({error}). Give another folder with --to.") from error
    if in_the_way:
        raise CommandError(
            f"{target}: a folder or a special file has that name. Move it, or give another folder with --to."
        )
    return target


@contextmanager
def removing_new_folders(folder: Path) -> Iterator[None]:
    """Remove a folder, and those above it, if the block has made them, and fails with nothing in them."""
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        yield
    except BaseException:
        with suppress(OSError):  # one that is not empty
            for path in missing:
                path.rmdir()
        raise


def fetch(url: str, target: Path, sha256: str | None) -> str:
    """Download a file. It appears at its path only when its size and its SHA-256 are right.

    The bytes go to `part_of` the target. If the SHA-256 is known, this file stays if the connection breaks, and the
    next call continues it. Otherwise it is deleted, because the file at the address may be another one by then. It is
    locked, so of two calls at once for one target the second is refused. (If the system has no such locks, the hash
    still guards the result, and Windows does not replace open files.)

    url: address of the file.
    target: path of the complete file.
    sha256: of the complete file, 64 hexadecimal digits in lower case; None if it is not known.

    Returns the SHA-256 of the file.
    Raises DownloadError if it fails; then an earlier file at `target` stays.
    """
    part = part_of(target, sha256)
    try:
        with _opened(part, kept=sha256 is not None) as file:
            got = sha256_of(file)
            # a call that was stopped before its last check has left all bytes
            if got != sha256:
                _gather(url, file, target, part if sha256 else None)
                file.flush()
                os.fsync(file.fileno())
                got = sha256_of(file)
                if sha256 not in (None, got):
                    file.truncate(0)
                    raise DownloadError(
                        f"{url}: the SHA-256 of the downloaded file is {got}. Expected {sha256}, from --sha256. "
                        f"The file was deleted, and nothing was written to {target}. Check the address and the "
                        "hash; if both are right, run the same command again."
                    )
            if os.name == "nt":  # Windows does not replace open files; elsewhere the lock is held until then
                file.close()
            os.replace(part, target)
            return got
    except OSError as error:
        goes_on = sha256 and os.path.exists(part)  # a name that is too long makes an error of Path.exists
        message = (
            (
                "{path}: can't be written ({reason}). Make room, or give a folder with --to that can be written to. "
                "The bytes so far are in {part}: the same command goes on from there."
            )
            if goes_on
            else (
                "{path}: can't be written ({reason}). Make room, or give a folder with --to that can be written to, "
                "and run the command again."
            )
        )
        raise DownloadError(message.format(path=target, reason=error, part=part)) from error


def _gather(url: str, file: BinaryIO, target: Path, part: Path | None) -> None:
    """Append what the file lacks. part: its path, if the next call can continue it."""
    with requests.Session() as session:
        for pause in (*PAUSES, None):
            try:
                return transfer(session, url, file, target.name)
            except NETWORK_ERRORS as error:
                if pause is None:
                    got = file.seek(0, 2)
                    message = (
                        (
                            "{url}: the connection broke ({reason}). The {got:,} bytes so far are in {part}: run the "
                            "same command again, and it goes on from there."
                        )
                        if got and part
                        else (
                            "{url}: no file arrived ({reason}). Check the address and the connection, then run the "
                            "same command again. If this machine has no network, get the files with another one, and "
                            "give their paths as options_file and weight_file."
                        )
                    )
                    raise DownloadError(message.format(url=url, reason=error, got=got, part=part)) from error
                time.sleep(pause)


@contextmanager
def _opened(part: Path, *, kept: bool = True) -> Iterator[BinaryIO]:
    """Yield the incomplete file, locked, open for appending and reading. It is deleted if it is empty at the end.

    kept: whether its bytes are kept from one call to the next.
    """
    with part.open("a+b") as file:
        _lock(file, part)
        if not kept:
            file.truncate(0)
        try:
            yield file
        except BaseException:
            if not kept and not file.closed:
                file.truncate(0)
            raise
        finally:
            if not file.closed and file.seek(0, 2) == 0:
                if os.name == "nt":
                    file.close()
                part.unlink(missing_ok=True)


def _lock(file: BinaryIO, part: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DownloadError(
            f"{part}: in use by another download of the same file. Wait until that one ends, or give another "
            "folder with --to."
        ) from error
    except OSError:  # a file system without locks
        return
    # another call may have renamed the file between open and lock
    if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
        raise DownloadError(
            f"{part}: in use by another download of the same file. Wait until that one ends, or give another "
            "folder with --to."
        )


def transfer(session: requests.Session, url: str, file: BinaryIO, title: str) -> None:
    """Append to a file what it lacks of the content of a URL.

    If the server can't continue from the end of the file, it is emptied first. Progress is shown on standard error.

    session: sends the requests.
    url: address of the content.
    file: open for appending and reading bytes.
    title: name beside the progress bar.

    Raises DownloadError if the response has no content, OSError if the file can't be written, and one of NETWORK_ERRORS
    if the connection fails or breaks; then the file has what came.
    """
    with _answer(session, url, file.seek(0, 2)) as (response, start):
        file.truncate(start)
        file.seek(start)
        total = _total(response.headers, start)
        with shown_bar(desc=title, initial=start, total=total, unit="B", unit_scale=True) as bar:
            try:
                for piece in response.raw.stream(_PIECE, decode_content=False):
                    file.write(piece)
                    bar.update(len(piece))
                    if total is not None and file.tell() > total:
                        file.truncate(0)
                        raise DownloadError(
                            f"{url}: the server announced {total:,} bytes and sends more. Expected the file: "
                            "check the address, or download it from elsewhere."
                        )
            except ValueError as error:
                if isinstance(error, DownloadError):
                    raise
                raise DownloadError(
                    f"{url}: the server's answer is not HTTP ({_plain(str(error))}). Check the address, or "
                    "download the file from elsewhere."
                ) from error
        got = file.seek(0, 2)
        if total is not None and got != total:
            raise requests.ConnectionError(f"{got:,} of {total:,} bytes arrived")


@contextmanager
def _answer(session: requests.Session, url: str, have: int) -> Iterator[tuple[requests.Response, int]]:
    """Yield the response and its first byte: `have`, or 0 if the server can't send a part."""
    for start in dict.fromkeys((have, 0)):
        with _get(session, url, start) as response:
            status = response.status_code
            if status == 200:
                yield response, 0
                return
            if start and status == 206 and _continues(response.headers, start):
                yield response, start
                return
            if not start or status not in (206, 416):
                reason = _plain(response.reason[:80])
                raise DownloadError(
                    f"{url}: the server answered {status} {reason}. Expected 200 and the file: check the address."
                )


def _get(session: requests.Session, url: str, start: int) -> requests.Response:
    headers = {"Accept-Encoding": "identity"}  # the hash is of the file itself
    if start:
        headers["Range"] = f"bytes={start}-"
    current = url
    for _ in range(MAX_REDIRECTS + 1):
        try:
            response = session.get(current, headers=headers, stream=True, allow_redirects=False, timeout=TIMEOUT)
            location = session.get_redirect_target(response)
            if location is None:
                return response
            response.close()
            new = urljoin(current, location)
            scheme = urlsplit(new).scheme
        except ValueError as error:  # the address of the user or of the server is not valid
            raise DownloadError(_DOWNLOAD_URL.format(url=_plain(current), reason=error)) from error
        if scheme != urlsplit(url).scheme:
            raise DownloadError(
                f"{url}: the server redirects to {_plain(new)}, an address with another scheme. Expected the same "
                "scheme. If you trust that address, give it to the command instead."
            )
        current = new
    raise DownloadError(
        f"{url}: more than {MAX_REDIRECTS} redirections, the last one to {_plain(current)}. Expected the file: "
        "give its final address."
    )


def _continues(headers: CaseInsensitiveDict[str], start: int) -> bool:
    content_range = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if not content_range or int(content_range[1]) != start or int(content_range[2]) < start:
        return False
    return content_range[3] == "*" or int(content_range[3]) > int(content_range[2])


def _total(headers: CaseInsensitiveDict[str], start: int) -> int | None:
    """Return the size of the complete file in bytes; None if the server does not tell it."""
    content_range = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if start and content_range and content_range[3] != "*":
        return int(content_range[3])
    length = re.fullmatch(r"\d{1,18}", headers.get("Content-Length", ""))
    return start + int(length[0]) if length and "Transfer-Encoding" not in headers else None


def _plain(text: str) -> str:
    """Return a text of a server with escapes for what a terminal might interpret."""
    return ascii(text)[1:-1]


_MARK = "A published biLM, as `python -m spacy elmo download"
_CARD = f"""# {{name}}

{_MARK} {{name}}` got it.

| | |
|---|---|
| language | {{language}} |
"""


class Fetched(NamedTuple):
    """A file after its download.

    path: where it is.
    sha256: its SHA-256, in hexadecimal.
    new: whether it was downloaded now, and not there before.
    """

    path: Path
    sha256: str
    new: bool


def fetch_published(
    name: str, model: PublishedModel, folder: Path, hashes: tuple[str | None, str | None]
) -> list[Fetched]:
    """Download the files of a published biLM that are not in a folder, or have another SHA-256 there.

    A model card, README.md, is written beside them: it names addresses, SHA-256 and language. A README.md that no
    download has written stays as it is.

    name: of the biLM.
    model: its addresses.
    folder: for options.json and weights.hdf5; it is created if it is missing.
    hashes: SHA-256 of the two files, in lower case; None: any file is accepted that can be read.

    Returns the two files.
    Raises ElmoError if a file can't be downloaded, or if the two are no biLM. Then those that were new are deleted.
    """
    addresses = ((model.options_url, OPTIONS), (model.weights_url, WEIGHTS))
    files: list[Fetched] = []
    for (url, title), sha256 in zip(addresses, hashes):
        files.append(_there_or_fetched(url, target_in(folder, title), sha256))
    try:
        read_weights(files[1].path, read_options(files[0].path), untrusted=True)
    except ElmoError as error:
        for file in files:
            if file.new:
                file.path.unlink(missing_ok=True)
        urls = " and ".join(url for (url, _), file in zip(addresses, files) if file.new)
        message = (
            (
                "{error} This came from {urls}, and was deleted. Check the network; if the address no longer has the "
                "file, get it from elsewhere, and put options.json and weights.hdf5 into {folder}."
            )
            if urls
            else "{error} The files were in {folder} before. Delete them, and run the same command again."
        )
        raise CommandError(message.format(error=error, urls=urls, folder=folder)) from error
    card = folder / CARD
    if card.is_file() and not (_is_written(card) and any(file.new for file in files)):
        return files  # someone's own, or as it was
    rows = []
    for (url, title), sha256, file in zip(addresses, hashes, files):
        origin = url if file.new or sha256 else "there before the download"
        rows.append(f"| {title} | {origin}, SHA-256 {file.sha256} |\n")
    with replacing(card, CommandError) as temporary, writing(card, CommandError):
        temporary.write_text(_CARD.format(name=name, language=model.language) + "".join(rows), encoding="utf8")
    return files


def _is_written(card: Path) -> bool:
    """Return whether a README.md is one that a download of a published biLM has written."""
    return _MARK in card.read_text(encoding="utf8", errors="replace")


def _there_or_fetched(url: str, target: Path, sha256: str | None) -> Fetched:
    if target.is_file():
        got = sha256_of(target)
        if sha256 in (None, got):
            return Fetched(target, got, new=False)
    return Fetched(target, fetch(url, target, sha256), new=True)


_NAMES = ", ".join(PUBLISHED)


def file_name(url: str) -> str:
    """Return the name of the file at a URL, the last part of its path. Raises CommandError if the URL can't be used."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError as error:
        raise CommandError(_DOWNLOAD_URL.format(url=url, reason=error)) from error
    if not parts.scheme:
        raise CommandError(
            f"{shown(url)}: neither an address nor the name of a published biLM. Expected http://..., "
            f"https://..., or one of {_NAMES}."
        )
    if parts.scheme not in ("http", "https"):
        reason = f"the scheme is {parts.scheme!r}"
        raise CommandError(_DOWNLOAD_URL.format(url=url, reason=reason))
    if not parts.hostname:
        raise CommandError(_DOWNLOAD_URL.format(url=url, reason="it names no host"))
    name = unquote(parts.path.rpartition("/")[2])
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():  # NUL is not printable
        raise CommandError(
            f"{url}: the last part of its path, {shown(name)}, can't be the name of a file. Expected the address "
            "of a file, like https://example.org/weights.hdf5."
        )
    return name


def checked_hashes(given: list[str]) -> list[str]:
    """Return SHA-256 in lower case. Raises CommandError if one is none."""
    for sha256 in given:
        if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
            raise CommandError(
                f"--sha256 is {shown(sha256)}. Expected 64 hexadecimal digits: the SHA-256 of the file, as its "
                "publisher gives it."
            )
    return [sha256.lower() for sha256 in given]


def check_content(path: Path) -> None:
    """Raise CommandError if an HDF5 file is not one that this package can read. Other files are not looked into."""
    if not is_hdf5(path):
        return
    try:
        check(path)
    except ElmoError as error:
        raise CommandError(
            f"{error} The file stays there, because it has the SHA-256 that was asked for: delete it."
        ) from error


def download_file(url: str, hashes: list[str], folder: Path) -> None:
    """Download a file by its address. Raises ElmoError if that fails, or its SHA-256 is not the one that is given."""
    name = file_name(url)
    if not hashes:
        raise CommandError(
            f"{url}: its SHA-256 is needed. Give it once with --sha256, as the publisher of the file tells it; "
            "only files of published biLMs that have a name are downloaded without one."
        )
    if len(hashes) > 1:
        raise CommandError(f"--sha256 was given {len(hashes)} times. Expected {'it once, for one file'}.")
    sha256, target = hashes[0], target_in(folder, name)
    if target.is_file() and sha256_of(target) == sha256:
        check_content(target)
        msg.good(f"{target}: already there, with this SHA-256")
        return
    fetch(url, target, sha256)
    check_content(target)
    msg.good(f"{target}: {target.stat().st_size:,} bytes, SHA-256 {sha256}")


def download_published(name: str, hashes: list[str], folder: Path) -> None:
    """Download the files of a published biLM into a folder. Raises ElmoError."""
    if len(hashes) > 2:
        expected = "it twice at most, for options.json and for weights.hdf5; once, it is that of weights.hdf5"
        raise CommandError(f"--sha256 was given {len(hashes)} times. Expected {expected}.")
    weights, options = ([*hashes[::-1], None, None])[:2]
    files = fetch_published(name, PUBLISHED[name], folder, (options, weights))
    for file in files:
        how = f"{file.path.stat().st_size:,} bytes" if file.new else "already there"
        msg.good(f"{file.path}: {how}, SHA-256 {file.sha256}")
    for official in OFFICIAL_MODELS:
        if official.name == name and official.sha256 not in (None, files[1].sha256):
            msg.warn(f"another source tells the SHA-256 {official.sha256} for these weights")
    model = name if folder == published_folder(name) else folder
    msg.text(f"use it as {model}: python -m spacy elmo info {model}")


def download(
    source: Annotated[
        str, typer.Argument(metavar="NAME", help=f"Name of a published biLM ({_NAMES}), or address of a file")
    ],
    sha256: Annotated[
        list[str] | None,
        typer.Option(
            "--sha256",
            metavar="HEX",
            help="SHA-256 of the file: 64 hexadecimal digits. With a name it may be left out, or given once for "
            "weights.hdf5, or twice, for options.json and then for weights.hdf5",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="Folder; default: the current one, or with a name the folder of downloaded biLMs",
        ),
    ] = None,
) -> None:
    """Download a published biLM, or a file.

    A biLM is chosen by its name, any other file by its address.

    A name gets options.json and weights.hdf5 from the address that AllenNLP 2.10.1 names. The authors of this package
    could not try these addresses. Afterwards the name can be used as a model. The files go to $SPACY_ELMO_CACHE, or to
    spacy-elmo in $XDG_CACHE_HOME or ~/.cache, and their SHA-256 are printed.

    A file appears when it is complete, and has the SHA-256 if it was given. Then a download that was interrupted goes
    on from there. HDF5 files are checked in a process of its own.
    """
    given = sha256 or []
    folder = to or (published_folder(source) if source in PUBLISHED else Path("."))
    stopped = (
        (
            f"stopped. The bytes so far are in the folder {folder}: run the same command again, and it goes on from "
            "there."
        )
        if given
        else "stopped. Without --sha256 nothing is kept of a file that is not complete: run the command again."
    )
    with printing_errors(stopped):
        hashes = checked_hashes(given)
        with removing_new_folders(folder):
            if source in PUBLISHED:
                download_published(source, hashes, folder)
            else:
                download_file(source, hashes, folder)
