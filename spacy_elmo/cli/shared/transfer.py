"""Bytes over HTTP into an open file, from where it ends."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

import requests
from requests.structures import CaseInsensitiveDict
from tqdm import tqdm
from urllib3.exceptions import HTTPError

from ...errors import DownloadError, Errors

# What fails on the way: the next attempt may succeed.
NETWORK_ERRORS = (requests.RequestException, HTTPError)

TIMEOUT = (10, 60)  # seconds, to connect and between two pieces of the answer
MAX_REDIRECTS = 5
_PIECE = 2**16  # what a cut connection loses at most
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")


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
