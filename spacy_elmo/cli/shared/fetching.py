"""A file from the network: resumed where it was cut, and checked before it is in place."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

import requests
from requests.structures import CaseInsensitiveDict
from tqdm import tqdm
from urllib3.exceptions import HTTPError

from ...errors import DownloadError, Errors
from .checksums import sha256_of

# What fails on the way: the next attempt may succeed.
NETWORK_ERRORS = (requests.RequestException, HTTPError)
PAUSES = (1.0, 3.0)  # seconds before the second and the third attempt
TIMEOUT = (10, 60)  # seconds, to connect and between two pieces of the answer
MAX_REDIRECTS = 5
_PIECE = 2**16  # what a cut connection loses at most
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")


def part_of(target: Path, sha256: str) -> Path:
    """Where the bytes of a file are gathered: beside it, under a name that no file with another hash shares."""
    return target.with_name(f"{target.name}.{sha256[:16]}.part")


def fetch(url: str, target: Path, sha256: str) -> None:
    """Download `url` to `target`, which is put in place only when its size and its SHA-256 are right.

    The bytes go to `part_of` the target, which stays when the connection is cut and is continued by the next call.
    Of two calls at once for one target the second is refused: the part is locked while it is used. (Where the
    system has no such locks, the hash is what guards the result, and Windows replaces no file that is open.)

    Raises DownloadError; then an earlier file at `target` is as it was.
    """
    part = part_of(target, sha256)
    try:
        with _opened(part) as file:
            # a run that was stopped before its last check has left all the bytes
            if sha256_of(file) != sha256:
                _gather(url, file, target, part)
                file.flush()
                os.fsync(file.fileno())
                got = sha256_of(file)
                if got != sha256:
                    file.truncate(0)
                    raise DownloadError(Errors.DOWNLOAD_HASH.format(url=url, got=got, expected=sha256, path=target))
            if os.name == "nt":  # which replaces no open file; elsewhere the lock is to last until then
                file.close()
            os.replace(part, target)
    except OSError as error:
        raise DownloadError(Errors.DOWNLOAD_WRITE.format(path=target, reason=error, part=part)) from error


def _gather(url: str, file: BinaryIO, target: Path, part: Path) -> None:
    with requests.Session() as session:
        for pause in (*PAUSES, None):
            try:
                return transfer(session, url, file, target.name)
            except NETWORK_ERRORS as error:
                if pause is None:
                    got = file.seek(0, 2)
                    message = Errors.DOWNLOAD_CUT if got else Errors.DOWNLOAD_CONNECTION
                    raise DownloadError(message.format(url=url, reason=error, got=got, part=part)) from error
                time.sleep(pause)


@contextmanager
def _opened(part: Path) -> Iterator[BinaryIO]:
    """The part, open for appending and reading, and locked; where nothing is in it at the end, it is removed."""
    with part.open("a+b") as file:
        _lock(file, part)
        try:
            yield file
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
    # another run may have moved the part to its place between open and lock
    if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
        raise DownloadError(Errors.DOWNLOAD_TWICE.format(part=part))


def transfer(session: requests.Session, url: str, file: BinaryIO, title: str) -> None:
    """Append to `file`, open for appending and reading, what it lacks of the content of `url`.

    It is emptied first where the server can't go on from its end. Progress is shown on stderr under `title`.

    Raises DownloadError for an answer that is no file, OSError where the file can't be written, and one of
    NETWORK_ERRORS where the connection fails or is cut: then the file has what came.
    """
    with _answer(session, url, file.seek(0, 2)) as (response, start):
        file.truncate(start)
        file.seek(start)
        total = _total(response.headers, start)
        bar = tqdm(desc=title, initial=start, total=total, unit="B", unit_scale=True, file=sys.stderr)
        with bar:
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
    """The server's answer with the content from byte `have` or, where it can't do that, from byte 0; and which."""
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
        except ValueError as error:  # an address, of the user or of the server, that is none
            raise DownloadError(Errors.DOWNLOAD_URL.format(url=_plain(current), reason=error)) from error
        if scheme != urlsplit(url).scheme:
            raise DownloadError(Errors.DOWNLOAD_SCHEME.format(url=url, new=_plain(new)))
        current = new
    raise DownloadError(Errors.DOWNLOAD_REDIRECTS.format(url=url, limit=MAX_REDIRECTS, new=_plain(current)))


def _continues(headers: CaseInsensitiveDict[str], start: int) -> bool:
    found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if not found or int(found[1]) != start or int(found[2]) < start:
        return False
    return found[3] == "*" or int(found[3]) > int(found[2])


def _total(headers: CaseInsensitiveDict[str], start: int) -> int | None:
    """Size of the whole file in bytes, None where the server does not say."""
    found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if start and found and found[3] != "*":
        return int(found[3])
    length = re.fullmatch(r"\d{1,18}", headers.get("Content-Length", ""))
    return start + int(length[0]) if length and "Transfer-Encoding" not in headers else None


def _plain(text: str) -> str:
    """What a server wrote, fit for a terminal."""
    return ascii(text)[1:-1]
