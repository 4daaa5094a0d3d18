"""Network addresses, and text that no path can be, in places that need a path to a file."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import BinaryIO

from ..errors import FILE_MISSING, FILE_NOT_REGULAR, ElmoError, shown

# two letters or more, since one letter is a drive of Windows
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path of the user, whose ~ at its begin is the home folder."""
    return Path(os.path.expanduser(path))


def refuse_address(path: str | os.PathLike[str], error: type[ElmoError]) -> None:
    """Raise `error` if a path of the user is an address such as s3://..., has a NUL character, or is no path."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise error(f"{shown(path)} is no path. Expected text or a pathlib.Path: make bytes text with os.fsdecode.")
    if "\0" in os.fspath(path):
        raise error(f"{shown(os.fspath(path))} has a NUL character, which no path can have. Remove the character.")
    if _SCHEME.match(os.fspath(path)):
        raise error(
            f"{path}: an address on the network. Expected a file: this package downloads nothing by itself. "
            f"Download it first with python -m spacy elmo download {path} --sha256 HEX, and give the path of the "
            "file."
        )


def existing_file(path: str | os.PathLike[str], expected: str, error: type[ElmoError]) -> Path:
    """Return the path of a regular file. Raises `error` as `refuse_address` does, and if there is no such file."""
    refuse_address(path, error)
    path = expanded(path)
    if not os.path.exists(path):  # also False if the name is too long
        raise error(FILE_MISSING.format(path=path, expected=expected))
    if not os.path.isfile(path):
        raise error(FILE_NOT_REGULAR.format(path=path, expected=expected))
    return path


def sha256_of(file: Path | BinaryIO) -> str:
    """Return the SHA-256 of a file, or of one open for reading bytes, as 64 hexadecimal digits in lower case."""
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return sha256_of(opened)
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(2**20):
        digest.update(block)
    return digest.hexdigest()
