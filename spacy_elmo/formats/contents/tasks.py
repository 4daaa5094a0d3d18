"""The tasks of the process that reads untrusted files. It calls them by their names, with arguments from JSON.

Each raises ElmoErrors, and says with `allow` how many bytes it is about to read, once the file has told its sizes.
"""

from __future__ import annotations

from typing import Any

from ..hdf5_storage import MAX_BYTES, allowed_bytes
from ..options import BiLMOptions
from ..untrusted.child import Result
from ..untrusted.limits import allow
from ..weights.hdf5 import n_values, read_weights
from ..weights.table import weights_table
from .files import kind_of, read_output_layer, shapes_in, softmax_bytes, vectors_in
from .vector_parts import read_part


def weights(path: str, options: dict[str, Any], max_bytes: int) -> Result:
    """Read a weight file. options: the contents of an options.json. path, max_bytes: as in `read_weights`."""
    sizes = BiLMOptions.from_dict(options)
    n_bytes = 4 * n_values(weights_table(sizes, True, True))
    allow(min(n_bytes, allowed_bytes(path, max_bytes)))
    return Result(None, read_weights(path, sizes, max_bytes=max_bytes))


def softmax(path: str, max_bytes: int) -> Result:
    """Read a softmax file; the fact is the list of its cutoffs. path, max_bytes: as in `read_output_layer`."""
    allow(min(softmax_bytes(path), allowed_bytes(path, max_bytes)))
    return Result(*read_output_layer(path, max_bytes))


def kind(path: str) -> Result:
    """Return the kind of a file (see `kind_of`)."""
    allow(allowed_bytes(path, 0))
    return Result(kind_of(path))


def vectors(path: str) -> Result:
    """Return what a file of embedded sentences holds (see `vectors_in`)."""
    allow(allowed_bytes(path, 0))
    return Result(vectors_in(path))


def sentences(path: str, first: int) -> Result:
    """Return some embedded sentences; the fact is the list of their texts. path, first: as in `read_part`."""
    allowed = allowed_bytes(path, 0)
    allow(allowed)
    texts, vectors = read_part(
        path, first, lambda n_bytes: allow(max(allowed, min(n_bytes, allowed_bytes(path, MAX_BYTES))))
    )
    return Result(texts, {str(number): array for number, array in enumerate(vectors)})


def shapes(path: str) -> Result:
    """Return the main datasets of a weight file (see `shapes_in`)."""
    return Result(shapes_in(path, allow))
