"""SHA-256 of files."""

import hashlib
from pathlib import Path
from typing import BinaryIO

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
