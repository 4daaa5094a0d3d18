"""Rows whose layers are cached are not run again while a biLM is frozen."""

from collections.abc import Callable

from ..inference import LayerCache, row_key
from .shim import BiLMShim
from .with_spans import Row, RowLayers

__all__ = ["LayerCache", "with_cache"]


def with_cache(
    cache: LayerCache | None, shim: BiLMShim, rows: list[Row], run: Callable[[list[Row]], RowLayers], stateful: bool
) -> RowLayers:
    """Return the layers of rows, from the cache if it has them, else from `run`. Equal rows are run once.

    cache: the cache; None: all rows are run.
    shim: the biLM. Its fingerprint and matmul type are part of the keys.
    rows: the rows, in the order of the docs.
    run: returns the layers of rows, *Shape:* (layers, words, width) each.
    stateful: whether a row depends on the previous rows of its doc. Then its key depends on theirs, and if any row of
        a doc is missing, all rows of the doc are run.

    Returns *Shape:* (layers, words, width) for each row. Arrays that a cache may share are read-only.
    """
    if cache is None or not cache.is_open:
        return run(rows)
    keys = _keys(rows, f"{shim.compute_fingerprint()} {shim.dtype}".encode(), stateful)
    # A file of a stranger may have arrays of any shape.
    shapes = [(shim.options.layers, len(row.words), shim.options.width) for row in rows]
    cached = [
        layers if layers is not None and layers.shape == shape else None
        for layers, shape in zip(cache.get(keys), shapes)
    ]
    if stateful:
        incomplete = {row.doc for row, layers in zip(rows, cached) if layers is None}
        missing = [i for i, row in enumerate(rows) if row.doc in incomplete]
    else:
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        missing = [i for i, layers in enumerate(cached) if layers is None and first[keys[i]] == i]
    computed = dict(zip((keys[i] for i in missing), run([rows[i] for i in missing]))) if missing else {}
    for values in computed.values():  # equal rows share one array
        values.setflags(write=False)
    cache.put(list(computed), list(computed.values()))
    return [computed[key] if layers is None else layers for key, layers in zip(keys, cached)]


def _keys(rows: list[Row], fingerprint: bytes, stateful: bool) -> list[bytes]:
    keys: list[bytes] = []
    for i, row in enumerate(rows):
        follows = stateful and i > 0 and rows[i - 1].doc == row.doc
        keys.append(row_key(fingerprint, row.words, keys[-1] if follows else b""))
    return keys
