"""Reads msgpack that may be damaged or hostile: only maps, lists, strings, bytes, numbers and arrays of numbers.

srsly's own reader hands the type of an array to numpy as it stands in the message, makes lists as long as a message
says, and leaves Python's garbage collector switched off if a message is damaged.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from srsly.msgpack import unpackb

from ..errors import shown

# What srsly writes for an array; of a number of numpy it writes "nd" = False, and neither kind nor shape.
_ARRAY = (b"nd", b"type", b"kind", b"shape", b"data")
_NUMBER = (b"nd", b"type", b"data")
_TYPE = re.compile(r"[<>|=][biufc]\d\d?")
_MAX_AXES = 32


def read_message(data: object, *, longest_list: int, longest_map: int) -> Any:
    """Return the content of a message that srsly.msgpack_dumps has written. Arrays are read-only views of its bytes.

    Raises ValueError, with the reason, if the bytes are damaged, or have longer lists and maps or other values.
    No objects are made from their description, and nothing is unpickled.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ValueError(f"{shown(data)} is no bytes")
    try:
        return unpackb(
            data,
            raw=False,
            object_pairs_hook=_map,
            ext_hook=_refuse_extension,
            max_array_len=longest_list,
            max_map_len=longest_map,
            max_ext_len=0,
        )
    except ValueError as error:
        raise ValueError(str(error) or type(error).__name__) from error
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _map(pairs: list[tuple[object, Any]]) -> Any:
    keys = tuple(key for key, _ in pairs)
    if keys in (_ARRAY, _NUMBER):
        return _numbers(dict(pairs))
    if not all(isinstance(key, str) for key in keys):
        raise ValueError(f"a map has the key {shown(next(key for key in keys if not isinstance(key, str)))}")
    result = dict(pairs)
    if len(result) < len(keys):
        raise ValueError("a map has a key twice")
    return result


def _numbers(fields: dict[Any, Any]) -> Any:
    kind, data = fields[b"type"], fields[b"data"]
    is_array = fields[b"nd"]
    shape = fields.get(b"shape", [])
    if is_array is not (b"shape" in fields) or fields.get(b"kind", b"") != b"" or not isinstance(data, bytes):
        raise ValueError("an array is not described as it should be")
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        raise ValueError(f"an array has the type {shown(kind)}")
    if not isinstance(shape, list) or len(shape) > _MAX_AXES or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"an array has the shape {shown(shape)}")
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise ValueError(f"an array has the type {shown(kind)}") from None
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an array of shape {shown(tuple(shape))} and type {kind} has {len(data):,} bytes")
    array = np.frombuffer(data, dtype).reshape(shape)
    return array if is_array else array[()]


def _refuse_extension(code: int, data: bytes) -> None:
    raise ValueError(f"it has an extension, of code {code}")
