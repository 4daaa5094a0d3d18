"""The values of the extension attributes `token._.elmo`, `doc._.elmo_layers` and so on: what sets and reads them.

The values are plain arrays in doc.user_data, under the keys that spaCy uses for values of extension attributes. So
to_bytes, pickle and DocBin save them, and spaCy's own tools recognise them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import IDX, LENGTH, ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import NotEmbeddedError, SettingsError

# suffixes of the keys. The last two cannot be part of an attribute's name, so that no other pipe uses the same keys
LAYERS, VECTORS, MIX, TOKENS = "_layers", "", ":mix", ":tokens"
# suffix of the key that says that a pipe has run but stores nothing
NOTHING = ":nothing"
# name of the value that says under which attr `.vector` is ELMo's
HOOKS = ":hooks"


class Block(NamedTuple):
    """What is stored of one doc.

    start: place of the doc's text in the text of the doc on which it is stored, in characters.
    tokens: *Shape:* (tokens, 3), uint64, what `tokens_of` returned for the doc.
    layers: *Shape:* (layers, tokens, width); None if only vectors are stored.
    mix: *Shape:* (layers,), the weights of the mix; None if only vectors are stored.
    vectors: *Shape:* (tokens, width); None if layers are stored.
    """

    start: int
    tokens: Any
    layers: Any
    mix: Any
    vectors: Any


def key(attr: str, suffix: str, start: int | None = 0) -> Any:
    """Return spaCy's key of an extension value. (spaCy's type stub expects strings.)

    attr: name of the extension attributes.
    suffix: LAYERS, VECTORS, MIX, TOKENS, NOTHING or HOOKS.
    start: place in the text, in characters; None for docs that version 0.1.0 wrote.
    """
    return ("._.", attr + suffix, start, None)


def tokens_of(part: Doc | Span) -> Any:
    """Return what identifies each token: its text's hash, its place in the text and its length in characters.

    part: the doc or span.

    Returns *Shape:* (tokens, 3), uint64. If they differ from those of the embedded doc, the tokens have changed.
    """
    array: Any = part.to_array([ORTH, IDX, LENGTH])  # type: ignore[union-attr]  # missing in the stub of Span
    return array


def _starts(doc: Doc, attr: str, *suffixes: str) -> set[int | None]:
    """Return the places at which the doc has values with one of these suffixes."""
    names = {attr + suffix for suffix in suffixes}
    keys: Any = doc.user_data  # spaCy's type stub expects strings
    keys = (key for key in keys if isinstance(key, tuple) and len(key) == 4)
    return {start for kind, name, start, end in keys if kind == "._." and name in names and end is None}


def blocks_of(doc: Doc, attr: str) -> list[Block]:
    """Return all blocks of a doc that are complete.

    doc: any doc.
    attr: name of the extension attributes.
    """
    blocks = []
    for start in _starts(doc, attr, TOKENS):
        tokens: Any = doc.user_data[key(attr, TOKENS, start)]
        layers, weights, vectors = (doc.user_data.get(key(attr, suffix, start)) for suffix in (LAYERS, MIX, VECTORS))
        values: Any = layers if vectors is None else vectors
        if values is None or (vectors is None and weights is None) or values.shape[-2] != len(tokens):
            continue
        if tokens.shape[1] == 2:  # version 0.1.0 stored no lengths
            tokens = np.pad(tokens, ((0, 0), (0, 1)))
        blocks.append(Block(start or 0, tokens, layers, weights, vectors))
    return blocks


def has_values(doc: Doc, *, attr: str) -> bool:
    """Whether layers or vectors are stored on the doc.

    doc: any doc.
    attr: name of the extension attributes.
    """
    stored = doc.user_data
    if key(attr, LAYERS) in stored or key(attr, VECTORS) in stored:
        return True
    return bool(stored) and bool(_starts(doc, attr, LAYERS, VECTORS))


def is_not_stored(doc: Doc, attr: str) -> bool:
    """Whether a pipe with store = "none" has run on the doc, or on a part of it.

    doc: any doc.
    attr: name of the extension attributes.
    """
    return bool(doc.user_data) and bool(_starts(doc, attr, NOTHING))


def remove(doc: Doc, attr: str) -> None:
    """Remove all that is stored on the doc.

    doc: any doc.
    attr: name of the extension attributes.
    """
    if doc.user_data:
        suffixes = LAYERS, VECTORS, MIX, TOKENS, NOTHING
        for start in _starts(doc, attr, *suffixes):
            for suffix in suffixes:
                doc.user_data.pop(key(attr, suffix, start), None)
        for start in _starts(doc, "", HOOKS):
            if doc.user_data[key("", HOOKS, start)] == attr:
                del doc.user_data[key("", HOOKS, start)]


def note_hooks(doc: Doc, attr: str) -> None:
    """Note that `.vector` of the doc and its parts is read from attr, for those who get the doc without its hooks.

    doc: any doc.
    attr: name of the extension attributes.
    """
    doc.user_data[key("", HOOKS)] = attr


def hooks_of(doc: Doc) -> str | None:
    """Return the name of the extension attributes that `.vector` was read from; None if it was not ELMo's.

    doc: any doc.
    """
    attr: str | None = doc.user_data.get(key("", HOOKS))
    return attr


def follow(part: Doc | Span, blocks: list[Block], values_of: Callable[[Block, Any], Any]) -> Any | None:
    """Return the values of the part's tokens, from the embedded tokens that have the same characters.

    A token that is as it was has its own value. A token that was merged has the mean over its parts that are not
    whitespace. A token that was split off has the value of the token that it is a part of.

    part: the doc or span.
    blocks: what is stored on the doc, at least one.
    values_of: returns a block's values of some rows, *Shape:* (..., rows, width); the second argument selects them.

    Returns *Shape:* (..., tokens, width); None if a token has no value, or has one in two blocks.
    """
    doc, now = (part if isinstance(part, Doc) else part.doc), tokens_of(part)
    none = values_of(blocks[0], slice(0))
    columns: list[Any] = [None] * len(now)
    for block in blocks:
        for i, rows in _rows(doc, now, block):
            if columns[i] is not None:
                return None
            values = values_of(block, rows)
            columns[i] = values.mean(-2) if rows else values.sum(-2)  # no rows: only whitespace, which has zeros
    if any(column is None for column in columns):
        return None
    return get_array_module(none).stack(columns, -2) if columns else none


def _rows(doc: Doc, now: Any, block: Block) -> Iterator[tuple[int, list[int]]]:
    """Yield the index of each token that the block has values for, and its rows without whitespace.

    now: *Shape:* (tokens, 3), the tokens as they are now.
    """
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
        begin, stop = _without_whitespace(text, int(begins[i]), int(stops[i]))
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


def _without_whitespace(text: str, begin: int, stop: int) -> tuple[int, int]:
    """Return the place of a token without the whitespace at its ends, which was between tokens before a merge and a
    split: "the bank" may be split into "the " and "bank". Both are the same if there is nothing else.
    """
    word = text[begin:stop].rstrip()
    stop = begin + len(word)
    return stop - len(word.lstrip()), stop


def mix_parameters(scalar_mix_parameters: Sequence[float]) -> Any:
    """Return the softmax of the weights of the layers, *Shape:* (layers,), float32.

    scalar_mix_parameters: *Shape:* (layers,), the weights before the softmax.
    """
    weights = np.asarray(scalar_mix_parameters, np.float64)
    exp = np.exp(weights - weights.max())
    return (exp / exp.sum()).astype(np.float32)


def mix(layers: Floats3d, weights: Any) -> Floats2d:
    """Return the weighted sum of the layers, *Shape:* (tokens, width).

    layers: *Shape:* (layers, tokens, width).
    weights: *Shape:* (layers,).
    """
    xp = get_array_module(layers)
    weighted: Floats2d = xp.tensordot(xp.asarray(weights), layers.astype("f", copy=False), axes=1)
    return weighted


def annotate(doc: Doc, attr: str, layers: Floats3d, weights: Any, store: str) -> None:
    """Store a doc's layers, or only their mix, on the doc.

    doc: the doc. Earlier values under attr are removed.
    attr: name of the extension attributes.
    layers: *Shape:* (layers, tokens, width).
    weights: *Shape:* (layers,), the weights of the mix, after the softmax.
    store: "layers", "layers_float16", "mix" or "none".

    Raises SettingsError if store is "layers_float16" and a value is too large for float16.
    """
    remove(doc, attr)
    if store == "none":
        doc.user_data[key(attr, NOTHING)] = True
        return
    doc.user_data[key(attr, TOKENS)] = tokens_of(doc)
    if store == "mix":
        doc.user_data[key(attr, VECTORS)] = mix(layers, weights)
    else:
        doc.user_data[key(attr, LAYERS)] = _half(layers) if store == "layers_float16" else layers
        doc.user_data[key(attr, MIX)] = weights


def _half(layers: Floats3d) -> Any:
    with np.errstate(over="ignore"):  # values that are too large become infinite, and raise below
        half: Any = layers.astype("float16")
    if get_array_module(half).isinf(half).any():
        raise SettingsError(
            'store is "layers_float16", but this biLM gives values beyond 65504, the largest of float16. Set '
            'store to "layers".'
        )
    return half


def _stored(part: Doc | Span, attr: str, suffix: str) -> Any | None:
    """Return the part's rows of an array that is stored on the doc; None if the doc is not as it was embedded."""
    doc, start, end = (part, 0, len(part)) if isinstance(part, Doc) else (part.doc, part.start, part.end)
    array, tokens = doc.user_data.get(key(attr, suffix)), doc.user_data.get(key(attr, TOKENS))
    if array is None or tokens is None or array.shape[-2] != len(doc) or tokens.shape != (len(doc), 3):
        return None
    if end > start and (tokens[start:end] != tokens_of(part)).any():
        return None
    return array[..., start:end, :]


def _followed(part: Doc | Span, attr: str, values_of: Callable[[Block, Any], Any]) -> Any:
    """Return values of a part of a doc that is not as it was embedded; see `follow`.

    Raises NotEmbeddedError if there are none, or not for all tokens.
    """
    doc = part if isinstance(part, Doc) else part.doc
    blocks = blocks_of(doc, attr)
    if not blocks:
        raise not_embedded(doc, attr)
    if (values := follow(part, blocks, values_of)) is None:
        raise NotEmbeddedError(
            f"the tokens here are not those that the ELMo vectors under {attr!r} belong to: the doc was joined "
            "with one that has none, or its text is another. Run the pipe on it again."
        )
    return values


def not_embedded(doc: Doc, attr: str) -> NotEmbeddedError:
    """Return the error that says why a doc has nothing under attr.

    doc: a doc without layers and vectors.
    attr: name of the extension attributes.
    """
    message = (
        (
            'this doc has no ELMo vectors under {attr!r}, because the pipe has store = "none": only components '
            'that listen get them. Set store to "layers". For a saved pipeline whose pipe is named elmo: '
            'spacy.load(path, config={{"components.elmo.store": "layers"}}).'
        )
        if is_not_stored(doc, attr)
        else (
            "this doc has no ELMo layers under {attr!r}: no elmo pipe with that attr has processed it, or they were "
            "set to None, or the doc is a copy without them (as_doc without copy_user_data=True, a DocBin without "
            'store_user_data=True). Add the pipe, nlp.add_pipe("elmo"), and run it on the doc.'
        )
    )
    return NotEmbeddedError(message.format(attr=attr))


def layers_of(part: Doc | Span, *, attr: str) -> Floats3d:
    """Return the layers of a doc or span, *Shape:* (layers, tokens, width), float32.

    The result is a view of the array on the doc if this is float32, and the doc is as it was embedded.

    part: the doc or span.
    attr: name of the extension attributes.

    Raises NotEmbeddedError if no layers are stored on the doc, or some of its tokens have none.
    """

    def layers(block: Block, rows: Any) -> Any:
        if block.layers is None:
            raise NotEmbeddedError(
                f"this doc has vectors under {attr!r}, but not the layers that they were made of. The pipe that "
                'made them has store = "mix", or the doc is from a file that spacy elmo embed wrote without '
                'layers. Set store to "layers", or embed the text again with --layers all.'
            )
        return block.layers[:, rows].astype("f", copy=False)

    array = _stored(part, attr, LAYERS)
    result: Floats3d = _followed(part, attr, layers) if array is None else array.astype("f", copy=False)
    return result


def vectors_of(part: Doc | Span, *, attr: str) -> Floats2d:
    """Return the vectors of a doc or span, which are the mix of the layers: *Shape:* (tokens, width), float32.

    part: the doc or span.
    attr: name of the extension attributes.

    Raises NotEmbeddedError if no vectors are stored on the doc, or some of its tokens have none.
    """

    def vectors(block: Block, rows: Any) -> Any:
        if block.vectors is None:
            return mix(block.layers[:, rows], block.mix)
        return block.vectors[rows].astype("f", copy=False)  # `embed` writes docs with float16 if it is asked to

    stored = (part if isinstance(part, Doc) else part.doc).user_data
    array = _stored(part, attr, VECTORS if key(attr, VECTORS) in stored else LAYERS)
    weights = stored.get(key(attr, MIX))
    result: Floats2d
    if array is None or (array.ndim == 3 and weights is None):
        result = _followed(part, attr, vectors)
    else:
        result = array.astype("f", copy=False) if array.ndim == 2 else mix(array, weights)
    return result


def mean_vector(part: Doc | Span, *, attr: str) -> Floats1d:
    """Return the mean of the vectors of all tokens but whitespace tokens, *Shape:* (width,), float32.

    It is zero if there are only whitespace tokens.

    part: the doc or span.
    attr: name of the extension attributes.

    Raises NotEmbeddedError if no vectors are stored on the doc, or its tokens have changed.
    """
    vectors = vectors_of(part, attr=attr)
    words = [i for i, token in enumerate(part) if not token.is_space]
    xp = get_array_module(vectors)
    result: Floats1d = vectors[xp.asarray(words)].mean(0) if words else xp.zeros(vectors.shape[1], "f")
    return result


def token_vector(token: Token, *, attr: str) -> Floats1d:
    """Return the vector of a token, *Shape:* (width,), float32.

    token: the token.
    attr: name of the extension attributes.

    Raises NotEmbeddedError if no vectors are stored on the doc, or the token has none.
    """
    result: Floats1d = vectors_of(token.doc[token.i : token.i + 1], attr=attr)[0]
    return result
