"""Packed files, some of them bombs."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import zstandard

from .mutate import mutated

_PIECE = 2**24
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, 1),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
}


def write_packed(path: Path, data: bytes, random: Random) -> None:
    """Write some bytes as they are, or packed and perhaps damaged; rarely a bomb in their place.

    path: without the ending of a packed file, which is added.
    """
    packing = random.choice(list(_PACKERS))
    packed = _bomb(packing) if packing and random.random() < 0.02 else _PACKERS[packing](data)
    path.with_name(path.name + packing).write_bytes(mutated(packed, random) if random.random() < 0.3 else packed)


@cache
def _bomb(packing: str) -> bytes:
    """Return a small file of 2.5 GB of one letter: one line."""
    piece = _PACKERS[packing](b"a" * _PIECE)
    return io.BytesIO(b"".join(islice(iter(lambda: piece, None), 150))).getvalue()
