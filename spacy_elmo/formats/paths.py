"""Network addresses, and text that no path can be, in places that need a path to a file."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import BinaryIO

from ..errors import ElmoError, shown

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def refuse_address(path: str | os.PathLike[str], error: type[ElmoError]) -> None:
    """Refuse an address on the network, such as http://... or s3://..., and a path with a NUL character.

    path: what the user gave as a path; anything else is refused, too.
    error: class of the exception; its message names the command that downloads.

    Raises `error` if `path` begins with a scheme of two letters or more (one letter is a Windows drive), or has a NUL
    character. Raises it also for bytes and for what is no path at all.
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


_BLOCK = 2**20


def sha256_of(file: Path | BinaryIO) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits in lower case. It is read block by block.

    file: a path, or a file open for reading bytes, which is read from its beginning and left at its end.

    Raises OSError if it can't be read.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return sha256_of(opened)
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()
