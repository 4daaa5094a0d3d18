"""Rows that were read before are not read again, while a biLM is frozen."""

from collections.abc import Callable

from ..inference import LayerCache, row_key
from .shim import BiLMShim
from .with_spans import Row, RowLayers

__all__ = ["LayerCache", "with_cache"]


def with_cache(
    cache: LayerCache | None, shim: BiLMShim, rows: list[Row], run: Callable[[list[Row]], RowLayers], stateful: bool
) -> RowLayers:
    """What `run` gives for the rows, (layers, words, width) each, from the cache where it has them.

    Equal rows are run once. stateful: a row depends on those before it in its doc, so that its key holds theirs, and
    a doc that lacks one is run whole.
    """
    if cache is None or not cache.is_open:
        return run(rows)
    keys = _keys(rows, f"{shim.compute_fingerprint()} {shim.dtype}".encode(), stateful)
    found = cache.get(keys)
    if stateful:
        lacking = {row.doc for row, layers in zip(rows, found) if layers is None}
        missing = [i for i, row in enumerate(rows) if row.doc in lacking]
    else:
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        missing = [i for i, layers in enumerate(found) if layers is None and first[keys[i]] == i]
    computed = dict(zip((keys[i] for i in missing), run([rows[i] for i in missing]))) if missing else {}
    for values in computed.values():  # equal rows share one
        values.setflags(write=False)
    cache.put(list(computed), list(computed.values()))
    return [computed[key] if layers is None else layers for key, layers in zip(keys, found)]


def _keys(rows: list[Row], fingerprint: bytes, stateful: bool) -> list[bytes]:
    keys: list[bytes] = []
    for i, row in enumerate(rows):
        follows = stateful and i > 0 and rows[i - 1].doc == row.doc
        keys.append(row_key(fingerprint, row.words, keys[-1] if follows else b""))
    return keys
