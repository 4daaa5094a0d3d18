"""SHA-256 of files."""

import hashlib
from pathlib import Path
from typing import BinaryIO

_BLOCK = 2**20


def sha256_of(file: Path | BinaryIO) -> str:
    """SHA-256 of a whole file, read block by block: 64 hexadecimal digits in lower case. Raises OSError.

    An open file is read from its beginning, and left at its end.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return sha256_of(opened)
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()
