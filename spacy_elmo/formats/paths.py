"""Network addresses, and text that no path can be, in places that need a path to a file."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import BinaryIO

from ..errors import FILE_MISSING, FILE_NOT_REGULAR, ElmoError, shown

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def refuse_address(path: str | os.PathLike[str], error: type[ElmoError]) -> None:
    """Raise `error` if what the user gave as a path is an address such as s3://..., has a NUL character, or is no path.

    An address begins with a scheme of two letters or more (one letter is a Windows drive).
    """
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
    if not os.path.exists(path):  # also False if the name is too long
        raise error(FILE_MISSING.format(path=path, expected=expected))
    if not os.path.isfile(path):
        raise error(FILE_NOT_REGULAR.format(path=path, expected=expected))
    return Path(path)


def sha256_of(file: Path | BinaryIO) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits in lower case. Raises OSError if it can't be read.

    file: a path, or a file open for reading bytes, which is read from its beginning and left at its end.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return sha256_of(opened)
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(2**20):
        digest.update(block)
    return digest.hexdigest()
