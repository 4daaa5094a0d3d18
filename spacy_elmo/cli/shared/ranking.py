"""Ranks vectors by their similarity."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def most_alike(query: Floats, others: Floats, top: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rank vectors by their cosine with a query, for each layer. Equal cosines stay in the order of the vectors.

    query: *Shape:* (layers, width).
    others: *Shape:* (n, layers, width).
    top: largest number of results.

    Returns the indices of the vectors and their cosines, each *Shape:* (layers, min(n, top)). The cosine with a vector
    of zeros is 0.
    """
    a, b = query.astype(np.float64), others.astype(np.float64)
    norms = np.linalg.norm(b, axis=2) * np.linalg.norm(a, axis=1)
    dots = np.einsum("nlw,lw->nl", b, a)
    cosines = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0).clip(-1, 1).T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :top]
    return order, np.take_along_axis(cosines, order, axis=1)
