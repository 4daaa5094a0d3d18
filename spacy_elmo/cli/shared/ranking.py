"""Which vectors are most alike."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def most_alike(query: Floats, others: Floats, top: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rank vectors by their cosine with a query's, for each layer; equal ones keep their order.

    query: *Shape:* (layers, width); others: *Shape:* (n, layers, width); top: how many are returned, at most.
    Returns which of the others and their cosines, *Shape:* (layers, min(n, top)) each. A vector of zeros has cosine 0.
    """
    a, b = query.astype(np.float64), others.astype(np.float64)
    norms = np.linalg.norm(b, axis=2) * np.linalg.norm(a, axis=1)
    products = np.einsum("nlw,lw->nl", b, a)
    cosines = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0).clip(-1, 1).T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :top]
    return order, np.take_along_axis(cosines, order, axis=1)
