"""index.json: what the vectors of an index are."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import CorpusError, Errors, shown
from ..formats.strict.strict_json import read_json

HEADER, VECTORS = "index.json", "vectors.npy"
VERSION = 1
MIX: Literal["mix"] = "mix"
Layer = int | Literal["mix"]
_MOST_BYTES = 2**16
_MOST_WIDTH = 2**20


@dataclass(frozen=True)
class Header:
    """The content of index.json.

    bilm: fingerprint of the biLM that made the vectors.
    model: what its user called it, for messages; "" if that is not known.
    layer: the layer that the vectors are of; "mix": the mean of all layers.
    width: of the vectors.
    text: SHA-256 of the sentences.txt that the vectors belong to.
    """

    bilm: str
    model: str
    layer: Layer
    width: int
    text: str


def is_index(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder has an index.json. folder: a path, which may be missing."""
    return (Path(folder) / HEADER).is_file()


def write_header(folder: Path, header: Header) -> None:
    """Write index.json into a folder, and sync it to the disk. Raises OSError."""
    with (folder / HEADER).open("w", encoding="utf8") as file:
        file.write(json.dumps({"version": VERSION} | asdict(header), indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_header(folder: Path) -> Header:
    """Read index.json of a folder. Raises CorpusError if it is missing, damaged or of another version."""
    try:
        record = read_json(folder / HEADER, _MOST_BYTES)
    except OSError as error:
        raise CorpusError(Errors.INDEX_MISSING.format(folder=folder, reason=error)) from error
    except ValueError as error:
        raise CorpusError(Errors.INDEX_DAMAGED.format(folder=folder, reason=f"{HEADER}: {error}")) from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION or isinstance(version, bool):
        raise CorpusError(Errors.INDEX_VERSION.format(folder=folder, got=shown(version), expected=VERSION))
    try:
        return _header(record)
    except (KeyError, TypeError) as error:
        raise CorpusError(Errors.INDEX_DAMAGED.format(folder=folder, reason=f"{HEADER}: {error!r}")) from error


def _header(record: dict[str, Any]) -> Header:
    header = Header(**{name: record[name] for name in ("bilm", "model", "layer", "width", "text")})
    for name in ("bilm", "model", "text"):
        if not isinstance(record[name], str):
            raise TypeError(f"{name} is {shown(record[name])}")
    if type(header.width) is not int or not 0 < header.width <= _MOST_WIDTH:
        raise TypeError(f"width is {shown(header.width)}")
    if header.layer != MIX and (type(header.layer) is not int or header.layer < 0):
        raise TypeError(f"layer is {shown(header.layer)}")
    return header
