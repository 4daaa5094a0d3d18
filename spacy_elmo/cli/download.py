"""`elmo download`: fetch a published biLM, or a file by its address. No other command uses the network."""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer

from ..errors import CommandError, ElmoError, Errors, shown
from ..formats.checksums import sha256_of
from ..formats.contents.untrusted import check, is_hdf5
from ..formats.published.names import PUBLISHED, published_folder
from ..formats.published.sizes import OFFICIAL_MODELS
from .shared.errors import printing_errors
from .shared.fetching import fetch, removing_new_folders, target_in
from .shared.printer import msg
from .shared.published_files import fetch_published

_NAMES = ", ".join(PUBLISHED)


def file_name(url: str) -> str:
    """Return the name of the file at a URL, the last part of its path. Raises CommandError if the URL can't be used."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError as error:
        raise CommandError(Errors.DOWNLOAD_URL.format(url=url, reason=error)) from error
    if not parts.scheme:
        raise CommandError(Errors.DOWNLOAD_UNKNOWN.format(got=shown(url), names=_NAMES))
    if parts.scheme not in ("http", "https"):
        reason = Errors.DOWNLOAD_URL_SCHEME.format(got=parts.scheme)
        raise CommandError(Errors.DOWNLOAD_URL.format(url=url, reason=reason))
    if not parts.hostname:
        raise CommandError(Errors.DOWNLOAD_URL.format(url=url, reason=Errors.DOWNLOAD_URL_HOST))
    name = unquote(parts.path.rpartition("/")[2])
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():  # NUL is not printable
        raise CommandError(Errors.DOWNLOAD_NAME.format(url=url, got=shown(name)))
    return name


def checked_hashes(given: list[str]) -> list[str]:
    """Return SHA-256 in lower case. Raises CommandError if one is none."""
    for sha256 in given:
        if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
            raise CommandError(Errors.DOWNLOAD_SHA256.format(got=shown(sha256)))
    return [sha256.lower() for sha256 in given]


def check_content(path: Path) -> None:
    """Raise CommandError if an HDF5 file is not one that this package can read. Other files are not looked into."""
    if not is_hdf5(path):
        return
    try:
        check(path)
    except ElmoError as error:
        raise CommandError(Errors.DOWNLOAD_CONTENT.format(error=error)) from error


def download_file(url: str, hashes: list[str], folder: Path) -> None:
    """Download a file by its address. Raises ElmoError if that fails, or its SHA-256 is not the one that is given."""
    name = file_name(url)
    if not hashes:
        raise CommandError(Errors.DOWNLOAD_UNHASHED.format(url=url))
    if len(hashes) > 1:
        raise CommandError(Errors.DOWNLOAD_HASHES.format(got=len(hashes), expected="it once, for one file"))
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
        raise CommandError(Errors.DOWNLOAD_HASHES.format(got=len(hashes), expected=expected))
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
    stopped = Errors.DOWNLOAD_STOPPED.format(folder=folder) if given else Errors.DOWNLOAD_STOPPED_ANEW
    with printing_errors(stopped):
        hashes = checked_hashes(given)
        with removing_new_folders(folder):
            if source in PUBLISHED:
                download_published(source, hashes, folder)
            else:
                download_file(source, hashes, folder)
