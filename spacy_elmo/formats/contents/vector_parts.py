"""Parts of a file of embedded sentences, each small enough to be held in memory twice."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import h5py

from ...errors import VectorsError
from ..hdf5_checks import Floats, check_dataset, open_hdf5, read_dataset, shape_of
from ..hdf5_vectors import EXPECTED, datasets_in

# A part has at least one sentence, and else at most so many bytes of vectors, sentences, and characters of text.
_BYTES, _SENTENCES, _CHARACTERS = 2**26, 1000, 2**20


def read_part(
    path: str | os.PathLike[str], first: int, allow: Callable[[int], None]
) -> tuple[list[str | None], list[Floats]]:
    """Read some embedded sentences.

    path: the HDF5 file.
    first: number of the sentence to begin with.
    allow: is called with the bytes of all their vectors before the vectors are checked and read.

    Returns the texts, as `read_vectors` yields them, and the vectors; nothing after the last sentence. Raises
    VectorsError.
    """
    n_bytes = n_characters = 0
    found: list[tuple[str | None, str, h5py.Dataset]] = []
    with open_hdf5(path, EXPECTED, VectorsError) as file:
        for text, name, dataset in datasets_in(file, first):
            n_bytes += 4 * math.prod(shape_of(dataset, name, VectorsError) or ())
            n_characters += len(text or "")
            if found and (n_bytes > _BYTES or n_characters > _CHARACTERS or len(found) == _SENTENCES):
                break
            found.append((text, name, dataset))
        allow(n_bytes)
        for _, name, dataset in found:
            check_dataset(dataset, name, VectorsError)
        return [text for text, *_ in found], [read_dataset(dataset, name, VectorsError) for _, name, dataset in found]
