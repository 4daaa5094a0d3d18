"""Exact search: the cosines of one vector with all vectors of an index."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

_BLOCK = 2**24  # bytes of the float32 vectors that are in memory at once
_FIRST = 256  # results that are sorted at first


def cosines_with(vectors: npt.NDArray[np.float16], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the cosines of all vectors with one, *Shape:* (n,). The vectors are read block by block.

    vectors: *Shape:* (n, width), each of length 1.
    query: *Shape:* (width,), of length 1.
    """
    cosines = np.empty(len(vectors), np.float32)
    rows = max(1, _BLOCK // (4 * vectors.shape[1]))
    for start in range(0, len(vectors), rows):
        block = vectors[start : start + rows].astype(np.float32)
        np.matmul(block, query, out=cosines[start : start + rows])
    return cosines


def best_first(cosines: npt.NDArray[np.float32]) -> Iterator[int]:
    """Yield the places of numbers from the largest to the smallest, equal ones in their order.

    Only as many are sorted as are asked for, in steps.

    cosines: *Shape:* (n,).
    """
    done, n = 0, len(cosines)
    while done < n:
        wanted = min(n, max(_FIRST, 8 * done))
        # all that are equal to the last one of these are sorted too, so that their order is that of the places
        least = np.partition(cosines, n - wanted)[n - wanted]
        chosen = np.flatnonzero(cosines >= least)
        order = chosen[np.argsort(-cosines[chosen], kind="stable")]
        yield from order[done:].tolist()
        done = len(order)
