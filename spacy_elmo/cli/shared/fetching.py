"""Downloads a file: resumes an interrupted download, and checks the file before it appears."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

import requests
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import HTTPError

from ...errors import CommandError, DownloadError, Errors
from ...formats.checksums import sha256_of
from .progress import shown_bar

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
        raise CommandError(Errors.DOWNLOAD_FOLDER.format(path=folder, reason=error)) from error
    if in_the_way:
        raise CommandError(Errors.DOWNLOAD_TARGET.format(path=target))
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
                    raise DownloadError(Errors.DOWNLOAD_HASH.format(url=url, got=got, expected=sha256, path=target))
            if os.name == "nt":  # Windows does not replace open files; elsewhere the lock is held until then
                file.close()
            os.replace(part, target)
            return got
    except OSError as error:
        goes_on = sha256 and os.path.exists(part)  # a name that is too long makes an error of Path.exists
        message = Errors.DOWNLOAD_WRITE if goes_on else Errors.DOWNLOAD_WRITE_ANEW
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
                    message = Errors.DOWNLOAD_CUT if got and part else Errors.DOWNLOAD_CONNECTION
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
        raise DownloadError(Errors.DOWNLOAD_TWICE.format(part=part)) from error
    except OSError:  # a file system without locks
        return
    # another call may have renamed the file between open and lock
    if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
        raise DownloadError(Errors.DOWNLOAD_TWICE.format(part=part))


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
                        raise DownloadError(Errors.DOWNLOAD_LONG.format(url=url, expected=total))
            except ValueError as error:
                if isinstance(error, DownloadError):
                    raise
                raise DownloadError(Errors.DOWNLOAD_ANSWER.format(url=url, reason=_plain(str(error)))) from error
        got = file.seek(0, 2)
        if total is not None and got != total:
            raise requests.ConnectionError(Errors.DOWNLOAD_SHORT.format(got=got, expected=total))


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
                raise DownloadError(Errors.DOWNLOAD_STATUS.format(url=url, status=status, reason=reason))


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
            raise DownloadError(Errors.DOWNLOAD_URL.format(url=_plain(current), reason=error)) from error
        if scheme != urlsplit(url).scheme:
            raise DownloadError(Errors.DOWNLOAD_SCHEME.format(url=url, new=_plain(new)))
        current = new
    raise DownloadError(Errors.DOWNLOAD_REDIRECTS.format(url=url, limit=MAX_REDIRECTS, new=_plain(current)))


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
