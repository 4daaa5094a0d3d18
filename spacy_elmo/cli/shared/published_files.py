"""Downloads the two files of a published biLM, and checks that they belong together."""

from pathlib import Path
from typing import NamedTuple

from ...errors import CommandError, ElmoError, Errors
from ...formats.atomic import replacing, writing
from ...formats.checksums import sha256_of
from ...formats.options import read_options
from ...formats.published.names import PublishedModel
from ...formats.weights.hdf5 import read_weights
from ...pretraining.model.files import CARD, OPTIONS, WEIGHTS
from .fetching import fetch, target_in

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
        message = Errors.DOWNLOAD_NO_BILM if urls else Errors.DOWNLOAD_THERE
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
