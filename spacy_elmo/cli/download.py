"""`elmo download`: fetch a published biLM, or a file by its address. No other command uses the network."""

from __future__ import annotations

import hashlib
import os
import re
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
from spacy.cli._util import Arg, Opt

from ..errors import CommandError, DownloadError, ElmoError, shown
from ..formats.atomic import replacing, writing
from ..formats.names import OFFICIAL_MODELS, PUBLISHED, published_folder
from ..formats.options import read_options
from ..formats.paths import sha256_of
from ..formats.weights import read_weights
from ..modules.loading import CARD, OPTIONS, WEIGHTS
from . import shared
from .console import msg

_NAMES = ", ".join(PUBLISHED)
_MARK = "A published biLM, as `python -m spacy elmo download"


def download(
    source: str = Arg(..., metavar="NAME", help=f"Name of a published biLM ({_NAMES}), or address of a file"),
    sha256: list[str] | None = Opt(None, "--sha256", metavar="HEX", help="SHA-256 that the file must have"),
    to: Path | None = Opt(None, "--to", metavar="FOLDER", help="Folder to write to; a file's default: the current one"),
    force: shared.Force = False,
) -> None:
    """For the name of a published biLM, it gets options.json and weights.hdf5 from the addresses that AllenNLP 2.10.1
    names, which could not be tried. Afterwards the name works as a MODEL in other commands. The files go to the folder
    $SPACY_ELMO_CACHE, or to spacy-elmo in $XDG_CACHE_HOME or in ~/.cache. You may give the SHA-256 that you expect:
    --sha256 once is that of weights.hdf5, twice is that of options.json and then of weights.hdf5.

    For an address, it gets that file. --sha256 is required.
    """
    hashes = [given.lower() for given in sha256 or []]
    for given in hashes:
        if not re.fullmatch(r"[0-9a-f]{64}", given):
            raise CommandError(f"--sha256 is {shown(given)}. Expected 64 hexadecimal digits, from the publisher.")
    if source not in PUBLISHED and source.partition("://")[0] not in ("http", "https"):
        meant = "".join(f" Did you mean {name}?" for name in get_close_matches(source, PUBLISHED, 1))
        problem = f"neither an address nor the name of a published biLM.{meant}"
        raise CommandError(f"{shown(source)}: {problem} Expected http://..., https://..., or one of {_NAMES}.")
    if len(hashes) not in ((0, 1, 2) if source in PUBLISHED else (1,)):
        expected = "Expected it once for a file; with the name of a published biLM twice at most, or not at all"
        raise CommandError(f"{source}: --sha256 was given {len(hashes)} times. {expected}.")
    if source in PUBLISHED:
        _download_published(source, hashes, to or published_folder(source), force)
    else:
        _download_file(source, hashes[0], to or Path("."), force)


def _download_file(url: str, sha256: str, folder: Path, force: bool) -> None:
    rest = url.partition("://")[2]
    name = unquote(rest.partition("?")[0].partition("#")[0].partition("/")[2].rpartition("/")[2])
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():  # NUL is not printable
        expected = "Expected the address of a file, like https://example.org/weights.hdf5"
        raise CommandError(f"{url}: the last part of its path, {shown(name)}, can't be the name of a file. {expected}.")
    target = folder / name
    told = "already there, with this SHA-256"
    if not target.is_file() or sha256_of(target) != sha256:
        _fetch(url, target, sha256, force)
        told = f"{target.stat().st_size:,} bytes, SHA-256 {sha256}"
    msg.good(f"{target}: {told}")


def _download_published(name: str, hashes: list[str], folder: Path, force: bool) -> None:
    """Download the files of a published biLM that are not in a folder, or have another SHA-256 there, and a card."""
    model = PUBLISHED[name]
    of_weights, of_options = ([*hashes[::-1], None, None])[:2]
    files = {OPTIONS: (model.options_url, of_options), WEIGHTS: (model.weights_url, of_weights)}
    got: dict[str, str] = {}
    new: list[str] = []
    for title, (url, expected) in files.items():
        if (folder / title).is_file():
            got[title] = sha256_of(folder / title)
        if title not in got or expected not in (None, got[title]):
            got[title] = _fetch(url, folder / title, expected, force)
            new.append(title)
    try:
        read_weights(folder / WEIGHTS, read_options(folder / OPTIONS))
    except ElmoError as error:
        for title in new:
            (folder / title).unlink()
        urls = " and ".join(files[title][0] for title in new)
        raise CommandError(
            f"{error} This came from {urls}, and was deleted. Check the network; if the address no longer has the "
            f"file, get it from elsewhere, and put options.json and weights.hdf5 into {folder}."
            if new
            else f"{error} The files were in {folder} before. Delete them, and run the same command again."
        ) from error
    card = folder / CARD
    if not card.is_file() or (new and _MARK in card.read_text(encoding="utf8", errors="replace")):
        rows = [f"| language | {model.language} |"]
        for title, (url, expected) in files.items():
            origin = url if title in new or expected else "there before the download"
            rows.append(f"| {title} | {origin}, SHA-256 {got[title]} |")
        shared.write_text("\n".join([f"# {name}\n\n{_MARK} {name}` got it.\n\n| | |\n|---|---|", *rows, ""]), card)
    for title, digest in got.items():
        how = f"{(folder / title).stat().st_size:,} bytes" if title in new else "already there"
        msg.good(f"{folder / title}: {how}, SHA-256 {digest}")
    for official in OFFICIAL_MODELS:
        if official.name == name and official.sha256 not in (None, got[WEIGHTS]):
            msg.warn(f"another source tells the SHA-256 {official.sha256} for these weights")
    use = name if folder == published_folder(name) else folder
    msg.text(f"use it as {use}: python -m spacy elmo info {use}")


def _fetch(url: str, target: Path, sha256: str | None, force: bool) -> str:
    """Download a file, and return its SHA-256. It appears when it is complete, with the SHA-256 that is given."""
    with writing(target.parent, DownloadError):
        target.parent.mkdir(parents=True, exist_ok=True)
    shared.hold(target, force=force)
    with replacing(target, DownloadError) as temporary, writing(target, DownloadError):
        try:
            got = _transfer(url, temporary, target.name)
        except DownloadError:
            raise
        except (requests.RequestException, ValueError) as error:  # ValueError: what was given is no address
            raise DownloadError(
                f"{url}: no file arrived ({error}). Check the address and the connection, then run the same "
                "command again; or get the files with another machine, and give their folder as the model."
            ) from error
        if sha256 not in (None, got):
            raise DownloadError(
                f"{url}: the SHA-256 of the downloaded file is {got}. Expected {sha256}, from --sha256. "
                f"Nothing was written to {target}. Check the address and the hash, and run the command again."
            )
    return got


def _transfer(url: str, path: Path, title: str) -> str:
    """Write the content of a URL to a file, and return its SHA-256. Progress is shown on standard error."""
    digest = hashlib.sha256()
    headers = {"Accept-Encoding": "identity"}  # the hash is of the file itself
    # seconds to connect, and between two pieces of the response
    with requests.get(url, headers=headers, stream=True, timeout=(10, 60)) as response:
        if len({urlsplit(answer.url).scheme for answer in (*response.history, response)}) > 1:
            raise DownloadError(
                f"{url}: the server redirects to {response.url}, or over an address with another scheme. If you trust "
                "that address, give it to the command instead."
            )
        if response.status_code != 200:
            answer = f"the server answered {response.status_code} {response.reason[:80]}"
            raise DownloadError(f"{url}: {answer}. Expected 200 and the file: check the address.")
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else None
        with shared.shown_bar(desc=title, total=total, unit="B", unit_scale=True) as bar, path.open("wb") as file:
            for piece in response.iter_content(2**16):
                digest.update(piece)
                file.write(piece)
                bar.update(len(piece))
            if total not in (None, file.tell()):  # older versions of urllib3 do not check it
                raise requests.ConnectionError(f"{file.tell():,} of {total:,} bytes arrived")
            file.flush()
            os.fsync(file.fileno())
    return digest.hexdigest()
