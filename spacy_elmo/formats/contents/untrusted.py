"""Looks into an HDF5 file of a stranger: what `files.py` does, in a process of its own.

All functions also raise their error if the HDF5 library crashes or comes to no end.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ...errors import VectorsError, WeightsError
from ..hdf5_checks import Floats
from ..hdf5_storage import MAX_BYTES, allowed_bytes
from ..untrusted.process import ask
from .files import OUTPUT, VECTORS, VectorFacts

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """Return whether a file has HDF5's signature where HDF5 looks for it: at 0, 512, 1024, 2048 ... bytes.

    Returns False if there is no regular file, or if it can't be read.
    """
    if not path.is_file():
        return False
    with suppress(OSError), path.open("rb") as file:
        size, start = path.stat().st_size, 0
        while start < size:
            file.seek(start)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                return True
            start = max(512, 2 * start)
    return False


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return what an HDF5 file is (see `files.kind_of`). Raises WeightsError."""
    return str(ask("kind", path, {}, WeightsError, 0).facts)


def vectors_in(path: str | os.PathLike[str]) -> VectorFacts:
    """Return what a file of embedded sentences holds. Raises VectorsError."""
    n_sentences, first, keyed, has_index = ask("vectors", path, {}, VectorsError, allowed_bytes(path, 0)).facts
    return VectorFacts(n_sentences, None if first is None else tuple(first), keyed, has_index)


def shapes_in(path: str | os.PathLike[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of the main datasets of a weight file. Raises WeightsError."""
    facts = ask("shapes", path, {}, WeightsError, allowed_bytes(path, MAX_BYTES)).facts
    return [(name, tuple(shape)) for name, shape in facts]


def read_output_layer(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[list[int] | None, dict[str, Floats]]:
    """Read a softmax.hdf5 of either kind (see `files.read_output_layer`). Raises WeightsError."""
    answer = ask("softmax", path, {"max_bytes": max_bytes}, WeightsError, allowed_bytes(path, max_bytes))
    return answer.facts, answer.arrays


def check(path: Path) -> str:
    """Check an HDF5 file as far as it is possible without other files.

    path: weights or softmax of a biLM, or embedded sentences.

    Returns its kind. Raises ElmoError if it can't be used.
    """
    kind = kind_of(path)
    if kind == VECTORS:
        vectors_in(path)
    elif kind == OUTPUT:
        read_output_layer(path)
    else:
        shapes_in(path)
    return kind
