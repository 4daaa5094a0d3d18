"""Digests of arrays, by which models and checkpoints are compared bit by bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of the arrays' names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()
