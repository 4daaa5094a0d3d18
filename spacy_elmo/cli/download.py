"""`elmo download`: fetch a file and check its SHA-256. No other command uses the network."""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer
from wasabi import msg

from ..errors import CommandError, ElmoError, Errors, shown
from ..formats.contents.untrusted import check, is_hdf5
from .shared.checksums import sha256_of
from .shared.errors import printing_errors
from .shared.fetching import fetch


def file_name(url: str) -> str:
    """Return the name of the file at a URL, the last part of its path. Raises CommandError if the URL can't be used."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError as error:
        raise CommandError(Errors.DOWNLOAD_URL.format(url=url, reason=error)) from error
    if parts.scheme not in ("http", "https"):
        reason = Errors.DOWNLOAD_URL_SCHEME.format(got=parts.scheme)
        raise CommandError(Errors.DOWNLOAD_URL.format(url=url, reason=reason))
    if not parts.hostname:
        raise CommandError(Errors.DOWNLOAD_URL.format(url=url, reason=Errors.DOWNLOAD_URL_HOST))
    name = unquote(parts.path.rpartition("/")[2])
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():  # NUL is not printable
        raise CommandError(Errors.DOWNLOAD_NAME.format(url=url, got=shown(name)))
    return name


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


def check_content(path: Path) -> None:
    """Raise CommandError if an HDF5 file is not one that this package can read. Other files are not looked into."""
    if not is_hdf5(path):
        return
    try:
        check(path)
    except ElmoError as error:
        raise CommandError(Errors.DOWNLOAD_CONTENT.format(error=error)) from error


def download(
    url: Annotated[str, typer.Argument(help="Address of the file, http or https")],
    sha256: Annotated[str, typer.Option("--sha256", help="SHA-256 of the file: 64 hexadecimal digits")],
    to: Annotated[Path, typer.Option("--to", help="Folder for the file")] = Path("."),
) -> None:
    """Download a file and check its SHA-256.

    A download that was interrupted is resumed. The file appears when its SHA-256 is right. Then an HDF5 file is
    checked in a process of its own.
    """
    with printing_errors(Errors.DOWNLOAD_STOPPED.format(folder=to)):
        if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
            raise CommandError(Errors.DOWNLOAD_SHA256.format(got=shown(sha256)))
        name, sha256 = file_name(url), sha256.lower()
        target = target_in(to, name)
        if target.is_file() and sha256_of(target) == sha256:
            check_content(target)
            msg.good(f"{target}: already there, with this SHA-256")
            return
        fetch(url, target, sha256)
        check_content(target)
        msg.good(f"{target}: {target.stat().st_size:,} bytes, SHA-256 {sha256}")
