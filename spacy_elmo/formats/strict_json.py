"""Parses JSON that may be damaged or hostile."""

import json
import math
from pathlib import Path
from typing import Any

from ..errors import shown


def read_json(path: Path, limit: int, *, finite: bool = True) -> Any:
    """Return the value of a JSON file of at most `limit` bytes.

    Raises OSError or ValueError with the reason, also for a key twice in one object and, if finite, for
    what is no finite number.
    """
    if path.exists() and not path.is_file():  # opening a pipe could wait for ever
        raise ValueError("it is a folder or a special file")
    with path.open("rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    text = raw.decode("utf-8-sig")
    try:
        return json.loads(
            text,
            object_pairs_hook=_refuse_duplicate_keys,
            parse_constant=_finite if finite else None,
            parse_float=_finite if finite else None,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {shown(key)} occurs twice in one object")
        result[key] = value
    return result


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):  # too large, or one of those that Python's json writes
        raise ValueError(f"{shown(digits)} is no finite number")
    return number
