"""Reads the message that a DocBin consists of, part by part. It may be damaged or hostile."""

from __future__ import annotations

import zlib
from typing import Any, cast

import numpy as np
from srsly.msgpack import Unpacker

from ...errors import shown

_ATTRIBUTES = 1000  # attributes of a token, at most; spaCy has about 90
_VALUES = 10_000_000  # in the user data of a doc, which take less than 1 GB then
UNKNOWN_SPACES = "has_unknown_spaces"


class TooLargeError(ValueError):
    """The data unpack to more bytes than the limit."""


def read_parts(data: bytes, limit: int, user_data: bool) -> dict[str, Any]:
    """Return the parts of a DocBin's message that are needed.

    They are attrs (list of int), strings (sorted list of str), tokens, spaces and lengths (bytes), flags (for each doc
    whether its spaces are unknown), and if wanted user_data (for each doc bytes or None).

    data: what DocBin.to_bytes returned.
    limit: number of bytes that the data may unpack to.
    user_data: whether they are wanted.

    Raises TooLargeError if they are more, and other exceptions if the data are damaged.
    """
    message = _unpacked(data, limit)
    unpacker = Unpacker(raw=False, max_buffer_size=len(message), max_ext_len=0)
    unpacker.feed(message)
    parts: dict[str, Any] = {}
    for _ in range(unpacker.read_map_header()):
        name = unpacker.unpack()
        if name in parts:
            raise ValueError(f"{name} comes twice")
        if name == "attrs":
            parts[name] = _values(unpacker, int, _ATTRIBUTES)
        elif name == "strings":
            parts[name] = _words(unpacker)
        elif name == "flags":
            parts[name] = [_has_unknown_spaces(unpacker) for _ in range(_n_docs(unpacker, parts, name))]
        elif name == "user_data" and user_data:
            parts[name] = [_bytes_or_none(unpacker.unpack()) for _ in range(_n_docs(unpacker, parts, name))]
        elif name in ("tokens", "spaces", "lengths"):
            parts[name] = _checked(unpacker.unpack(), bytes)
        else:
            unpacker.skip()
    return parts


def read_user_data(packed: bytes) -> dict[Any, Any]:
    """Return the user data of a doc. Raises ValueError or an exception of msgpack if they are damaged.

    packed: one of a DocBin's user_data. Each empty list of them is a byte there, and 56 bytes in memory.
    """
    n = 0

    def count(values: Any) -> Any:
        nonlocal n
        n += 1 + len(values)
        if n > _VALUES:
            raise ValueError(f"user data of more than {_VALUES:,} values")
        return values

    limits = {"max_buffer_size": max(1, len(packed)), "max_array_len": _VALUES}  # a buffer of 0 bytes has no limit
    unpacker = Unpacker(raw=False, use_list=False, strict_map_key=False, list_hook=count, object_hook=count, **limits)
    unpacker.feed(packed)
    return cast(dict[Any, Any], _checked(unpacker.unpack(), dict))


def _unpacked(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj()
    message = stream.decompress(data, limit + 1)
    if len(message) > limit:
        raise TooLargeError
    if not stream.eof or stream.unused_data:
        raise ValueError("cut short, or with other data after its end")
    return message


def _values(unpacker: Unpacker, kind: type, limit: int) -> list[Any]:
    n = unpacker.read_array_header()
    if n > limit:
        raise ValueError(f"a list of {n:,}")
    return [_checked(unpacker.unpack(), kind) for _ in range(n)]


def _words(unpacker: Unpacker) -> list[str]:
    """Return the strings. spaCy writes each once; else a small file might have hundreds of millions."""
    words: set[str] = set()
    for _ in range(unpacker.read_array_header()):
        word = _checked(unpacker.unpack(), str)
        if word in words:
            raise ValueError(f"the string {shown(word)} comes twice")
        words.add(word)
    return sorted(words)


def _n_docs(unpacker: Unpacker, parts: dict[str, Any], name: str) -> int:
    """Return the length of a list that has a value for each doc. spaCy writes the lengths of the docs before it."""
    if "lengths" not in parts:
        raise ValueError(f"no lengths of docs before the {name}")
    n: int = unpacker.read_array_header()
    if n != len(parts["lengths"]) // np.dtype(np.int32).itemsize:
        raise ValueError(f"{n:,} {name}, which are not as many as docs")
    return n


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{type(value).__name__} in place of {kind.__name__}")
    return value


def _bytes_or_none(value: Any) -> bytes | None:
    """Return user data; None for a doc of a DocBin that had none, before it was merged with one that has some."""
    return None if value is None else cast(bytes, _checked(value, bytes))


def _has_unknown_spaces(unpacker: Unpacker) -> bool:
    result = False
    for _ in range(unpacker.read_map_header()):
        if _checked(unpacker.unpack(), str) == UNKNOWN_SPACES:
            result = _checked(unpacker.unpack(), bool)
        else:
            unpacker.skip()
    return result
