"""Where the layers of a doc are: stored on the doc, or held beside it for listeners; and how they are read.

What is stored are plain arrays in doc.user_data, under the keys that spaCy uses for values of extension attributes. So
to_bytes, pickle and DocBin save them, and spaCy's own tools recognise them. Layers that only listeners need are held
beside the doc: nobody writes them, and they go with the doc. A listener reads what is held, else what is stored.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
from spacy.attrs import IDX, LENGTH, ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import NotEmbeddedError, SettingsError

# suffixes of the keys. The last two cannot be part of an attribute's name, so that no other pipe uses the same keys
LAYERS, VECTORS, MIX, TOKENS = "_layers", "", ":mix", ":tokens"
NOTHING = ":nothing"  # suffix of the key that says that a pipe has run but stores nothing


def key(attr: str, suffix: str, start: int | None = 0) -> Any:
    """Return spaCy's key of an extension value. start: place in the text; None for docs that version 0.1.0 wrote."""
    return ("._.", attr + suffix, start, None)


# Writing


def annotate(doc: Doc, attr: str, layers: Floats3d, weights: Any, store: str) -> None:
    """Store a doc's layers, *Shape:* (layers, tokens, width), or only their mix, in place of earlier values under attr.

    weights: *Shape:* (layers,), after the softmax. Raises SettingsError if a value is too large for float16.
    """
    remove(doc, attr)
    if store == "none":
        doc.user_data[key(attr, NOTHING)] = True
        return
    doc.user_data[key(attr, TOKENS)] = tokens_of(doc)
    if store == "mix":
        doc.user_data[key(attr, VECTORS)] = mix(layers, weights)
        return
    stored: Any = layers
    if store == "layers_float16":
        # values that are too large become infinite, and raise below
        with np.errstate(over="ignore", under="ignore"):
            stored = stored.astype("float16")
        if get_array_module(stored).isinf(stored).any():
            raise SettingsError(
                'store is "layers_float16", but this biLM gives values beyond 65504, the largest of float16. Set '
                'store to "layers".'
            )
    doc.user_data[key(attr, LAYERS)] = stored
    doc.user_data[key(attr, MIX)] = weights


def tokens_of(part: Doc | Span) -> Any:
    """Return the hash of each token's text, its place in the text and its length: *Shape:* (tokens, 3), uint64."""
    array: Any = part.to_array([ORTH, IDX, LENGTH])  # type: ignore[union-attr]  # missing in the stub of Span
    return array


# a weight that is too small for float32 is 0: users who have numpy raise errors need not hear of it
@np.errstate(under="ignore")
def mix_parameters(scalar_mix_parameters: Sequence[float]) -> Any:
    """Return the softmax of the weights of the layers, *Shape:* (layers,), float32."""
    weights = np.asarray(scalar_mix_parameters, np.float64)
    exp = np.exp(weights - weights.max())
    return (exp / exp.sum()).astype(np.float32)


@np.errstate(under="ignore")
def mix(layers: Floats3d, weights: Any) -> Floats2d:
    """Return the sum of the layers, *Shape:* (layers, tokens, width), by their weights: *Shape:* (tokens, width)."""
    xp = get_array_module(layers)
    weighted: Floats2d = xp.tensordot(xp.asarray(weights), layers.astype("f", copy=False), axes=1)
    return weighted


def remove(doc: Doc, attr: str) -> None:
    """Remove all that is stored on the doc or held for it under attr."""
    _drop(doc, attr)
    suffixes = LAYERS, VECTORS, MIX, TOKENS, NOTHING
    for start in _starts(doc, attr, *suffixes):
        for suffix in suffixes:
            doc.user_data.pop(key(attr, suffix, start), None)


def _starts(doc: Doc, attr: str, *suffixes: str) -> set[int | None]:
    """Return the places at which the doc has values with one of these suffixes."""
    names = {attr + suffix for suffix in suffixes}
    keys: Any = doc.user_data  # spaCy's type stub expects strings
    keys = (key for key in keys if isinstance(key, tuple) and len(key) == 4)
    return {start for kind, name, start, end in keys if kind == "._." and name in names and end is None}


# Reading


class Embedded(NamedTuple):
    """What is stored of one doc. A doc that was joined of several has several of them.

    start: place of the doc's text in the text of the doc on which it is stored, in characters.
    tokens: *Shape:* (tokens, 3), uint64, what `tokens_of` returned for the doc.
    layers, mix: *Shape:* (layers, tokens, width) and (layers,); None if only vectors are stored.
    vectors: *Shape:* (tokens, width); None if layers are stored.
    """

    start: int
    tokens: Any
    layers: Any
    mix: Any
    vectors: Any


ValuesOf = Callable[[Embedded, Any], Any]  # selects rows: returns *Shape:* (..., rows, width)


def has_values(doc: Doc, *, attr: str) -> bool:
    """Whether layers or vectors are stored on the doc."""
    return bool(_starts(doc, attr, LAYERS, VECTORS))


def is_not_stored(doc: Doc, attr: str) -> bool:
    """Whether a pipe with store = "none" has run on the doc, or on a part of it."""
    return bool(_starts(doc, attr, NOTHING))


def layers_of(part: Doc | Span, *, attr: str, copy: bool = True) -> Floats3d:
    """Return the layers of a doc or span, *Shape:* (layers, tokens, width), float32.

    copy: whether they are always a copy; false: a view if they are stored as float32, for those who only read them.
    """

    def layers(stored: Embedded, rows: Any) -> Any:
        if stored.layers is None:
            raise NotEmbeddedError(
                f"this doc has vectors under {attr!r}, but not the layers that they were made of. The pipe that made "
                'them has store = "mix": set it to "layers". Or embed the text again with --layers all.'
            )
        return stored.layers[:, rows].astype("f", copy=copy)

    return cast(Floats3d, _read(part, attr, layers))


def vectors_of(part: Doc | Span, *, attr: str) -> Floats2d:
    """Return the vectors of a doc or span, which are the mix of the layers: *Shape:* (tokens, width), a new array."""

    def vectors(stored: Embedded, rows: Any) -> Any:
        if stored.vectors is None:
            return mix(stored.layers[:, rows], stored.mix)
        return stored.vectors[rows].astype("f")  # a copy; `embed` writes docs with float16 if it is asked to

    return cast(Floats2d, _read(part, attr, vectors))


def mean_vector(part: Doc | Span, *, attr: str) -> Floats1d:
    """Return the mean of the vectors of all tokens but whitespace, *Shape:* (width,); zeros if there are none."""
    vectors = vectors_of(part, attr=attr)
    words = [i for i, token in enumerate(part) if not token.is_space]
    xp = get_array_module(vectors)
    result: Floats1d = vectors[xp.asarray(words)].mean(0) if words else xp.zeros(vectors.shape[1], "f")
    return result


def _read(part: Doc | Span, attr: str, values_of: ValuesOf) -> Any:
    """Return values of a part of a doc, whose tokens may have changed since it was embedded."""
    span = part[:] if isinstance(part, Doc) else part
    doc, rows = span.doc, slice(span.start, span.end)
    whole = _embedded(doc, attr, 0)
    if whole is not None and len(whole.tokens) == len(doc) and np.array_equal(whole.tokens[rows], tokens_of(span)):
        return values_of(whole, rows)
    found = [_embedded(doc, attr, start) for start in _starts(doc, attr, TOKENS)]
    blocks = [block for block in found if block is not None]
    if not blocks:
        raise not_embedded(doc, attr)
    return _follow(part, attr, blocks, values_of)


def _embedded(doc: Doc, attr: str, start: int | None) -> Embedded | None:
    """Return what is stored at a place in the text; None if there is nothing."""
    parts: Any = [doc.user_data.get(key(attr, suffix, start)) for suffix in (TOKENS, LAYERS, MIX, VECTORS)]
    tokens, layers, weights, vectors = parts
    if tokens is None or (layers is None and vectors is None) or (vectors is None and weights is None):
        return None
    if tokens.shape[1] == 2:  # version 0.1.0 stored no lengths
        tokens = np.pad(tokens, ((0, 0), (0, 1)))
    return Embedded(start or 0, tokens, layers, weights, vectors)


def not_embedded(doc: Doc, attr: str) -> NotEmbeddedError:
    """Return the error that says why a doc has nothing under attr."""
    if is_not_stored(doc, attr):
        return NotEmbeddedError(
            f'this doc has no ELMo vectors under {attr!r}, because the pipe has store = "none": only components '
            'that listen get them. Set store to "layers". For a saved pipeline whose pipe is named elmo: '
            'spacy.load(path, config={"components.elmo.store": "layers"}).'
        )
    return NotEmbeddedError(
        f"this doc has no ELMo layers under {attr!r}: no elmo pipe with that attr has processed it, or they were set "
        "to None, or not copied (as_doc needs copy_user_data=True, a DocBin store_user_data=True). Run the pipe on it."
    )


def _follow(part: Doc | Span, attr: str, blocks: Sequence[Embedded], values_of: ValuesOf) -> Any:
    """Return the values of tokens: of merged ones the mean over their words, of split ones that of the whole."""
    doc, now = (part if isinstance(part, Doc) else part.doc), tokens_of(part)
    none = values_of(blocks[0], slice(0))
    columns: list[Any] = [None] * len(now)
    twice = False
    for block in blocks:
        for i, rows in _rows(doc, now, block):
            twice = twice or columns[i] is not None
            values = values_of(block, rows)
            columns[i] = values.mean(-2) if rows else values.sum(-2)  # no rows: only whitespace, which has zeros
    if twice or any(column is None for column in columns):
        raise NotEmbeddedError(
            f"the tokens here are not those that the ELMo vectors under {attr!r} belong to: the doc was joined "
            "with one that has none, or its text is another. Run the pipe on it again."
        )
    return get_array_module(none).stack(columns, -2) if columns else none


def _rows(doc: Doc, now: Any, block: Embedded) -> Iterator[tuple[int, list[int]]]:
    """Yield the index of each token, of those now in the doc, that the block has values for, and its rows of words."""
    starts = block.tokens[:, 1].astype(np.int64) + block.start
    ends = starts + block.tokens[:, 2].astype(np.int64)
    begins = now[:, 1].astype(np.int64)
    stops = begins + now[:, 2].astype(np.int64)
    first = np.searchsorted(starts, begins, "right") - 1
    last = np.searchsorted(starts, stops, "left")
    text = ""
    for i, (a, b) in enumerate(zip(first.tolist(), last.tolist())):
        if a >= 0 and b - a == 1 and starts[a] == begins[i] and block.tokens[a, 0] == now[i, 0]:
            yield i, [a]
            continue
        if not len(starts) or stops[i] <= starts[0] or begins[i] >= ends[-1]:
            continue
        text = text or doc.text
        # without the whitespace at its ends, which was between tokens before a merge and a split: "the bank" may be
        # split into "the " and "bank"
        word = text[begins[i] : stops[i]].rstrip()
        stop = int(begins[i]) + len(word)
        begin = stop - len(word.lstrip())
        if begin == stop:
            if starts[0] <= begins[i] and stops[i] <= ends[-1]:
                yield i, []
            continue
        a, b = int(np.searchsorted(starts, begin, "right")) - 1, int(np.searchsorted(starts, stop, "left"))
        if a < 0 or begin >= ends[a] or stop > ends[b - 1]:
            continue
        parts = {row: text[max(starts[row], 0) : max(ends[row], 0)] for row in range(a, b)}
        if all(get_string_id(word) == int(block.tokens[row, 0]) for row, word in parts.items()):
            yield i, [row for row, word in parts.items() if not word.isspace()]


# Held for listeners: the layers of each doc by attr, and the ids of those that have not read them yet

_HELD: WeakKeyDictionary[Doc, dict[str, tuple[Embedded, set[Hashable]]]] = WeakKeyDictionary()


def hold(doc: Doc, attr: str, layers: Floats3d, readers: Iterable[Hashable]) -> None:
    """Hold layers until each reader has released them, or the doc is gone. Without readers nothing is held."""
    if waiting := set(readers):
        _HELD.setdefault(doc, {})[attr] = (Embedded(0, tokens_of(doc), layers, None, None), waiting)


def held_or_stored(doc: Doc, attr: str) -> Floats3d | None:
    """Return a doc's layers, *Shape:* (layers, tokens, width); None if neither they nor their mix are there."""
    if attr not in _HELD.get(doc, {}):
        return layers_of(doc, attr=attr, copy=False) if has_values(doc, attr=attr) else None
    held, _ = _HELD[doc][attr]
    if np.array_equal(held.tokens, tokens_of(doc)):
        return cast(Floats3d, held.layers)
    return cast(Floats3d, _follow(doc, attr, [held], lambda held, rows: held.layers[:, rows]))


def release(doc: Doc, attr: str, reader: Hashable) -> None:
    """Note that the reader with this id needs the layers no more. Drop them if no reader does."""
    if attr in _HELD.get(doc, {}):
        waiting = _HELD[doc][attr][1]
        waiting.discard(reader)
        if not waiting:
            _drop(doc, attr)


def _drop(doc: Doc, attr: str) -> None:
    """Drop layers that are held, if any."""
    held = _HELD.get(doc, {})
    held.pop(attr, None)
    if not held:
        _HELD.pop(doc, None)
