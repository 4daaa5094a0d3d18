"""The extension attributes `token._.elmo`, `doc._.elmo_layers` and so on: what a doc stores, and how it is read.

The values are plain arrays in doc.user_data, under the keys that spaCy uses for values of extension attributes. So
to_bytes, pickle and DocBin save them, and spaCy's own tools recognise them. Layers that only listeners need are held
beside the doc: nobody writes them, and they go with the doc. A listener reads what is held, else what is stored.
"""

import keyword
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, cast, overload
from weakref import WeakKeyDictionary

import numpy as np
from spacy.attrs import IDX, LENGTH, ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d, FloatsXd

from ..errors import NotEmbeddedError, SettingsError, shown
from ..models.listener import Upstream

Part = Doc | Span | Token

# The layers of each doc by attr that are held for listeners, and the ids of those that have not read them yet
_HELD: WeakKeyDictionary[Doc, dict[str, tuple["Embedded", set[Hashable]]]] = WeakKeyDictionary()

# suffixes of the keys. The last two cannot be part of an attribute's name, so that no other pipe uses the same keys
LAYERS, VECTORS, MIX, TOKENS = "_layers", "", ":mix", ":tokens"
# suffix of the key that says that a pipe has run but stores nothing
NOTHING = ":nothing"


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


def hold(doc: Doc, attr: str, layers: Floats3d, readers: Iterable[Hashable]) -> None:
    """Hold layers until each reader has released them, or the doc is gone. Without readers nothing is held."""
    if waiting := set(readers):
        _HELD.setdefault(doc, {})[attr] = (Embedded(0, tokens_of(doc), layers, None, None), waiting)


def _drop(doc: Doc, attr: str) -> None:
    """Drop layers that are held, if any."""
    held = _HELD.get(doc, {})
    held.pop(attr, None)
    if not held:
        _HELD.pop(doc, None)


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
        raise _not_embedded(doc, attr)
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


def _not_embedded(doc: Doc, attr: str) -> NotEmbeddedError:
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


# What listeners read


class DocLayers(Upstream):
    """An elmo pipe as its listeners see it: what docs hold or store under its attr."""

    def read(self, doc: Doc) -> Floats3d | None:
        if self.attr not in _HELD.get(doc, {}):
            return layers_of(doc, attr=self.attr, copy=False) if has_values(doc, attr=self.attr) else None
        held, _ = _HELD[doc][self.attr]
        if np.array_equal(held.tokens, tokens_of(doc)):
            return cast(Floats3d, held.layers)
        return cast(Floats3d, _follow(doc, self.attr, [held], lambda held, rows: held.layers[:, rows]))

    def was_dropped(self, doc: Doc) -> bool:
        return is_not_stored(doc, self.attr)

    def release(self, doc: Doc, reader: Hashable) -> None:
        if self.attr in _HELD.get(doc, {}):
            waiting = _HELD[doc][self.attr][1]
            waiting.discard(reader)
            if not waiting:
                _drop(doc, self.attr)


# The extension attributes


def _get(part: Part, *, attr: str, read: Callable[..., Any]) -> Any:
    if isinstance(part, Token):
        return read(part.doc[part.i : part.i + 1], attr=attr)[..., 0, :]
    return read(part, attr=attr)


def _set(part: Part, value: Any, *, attr: str) -> None:
    """Free what is stored on a doc if the value is None. Without a setter spaCy would ignore other values."""
    if not isinstance(part, Doc):
        raise SettingsError(
            f"the attributes of tokens and spans can't be set. To free the layers of a doc, set doc._.{attr} to None."
        )
    if value is not None:
        raise SettingsError(
            f"doc._.{attr} can only be set to None, which frees the layers. Got {type(value).__name__}."
        )
    remove(part, attr)


# by the suffix of the attribute's name
READERS: dict[str, Callable[..., Any]] = {VECTORS: vectors_of, LAYERS: layers_of}


def register(attr: str) -> None:
    """Set the extensions for `attr` on Token, Span and Doc. Raises SettingsError if the name can't be used."""
    if not attr.isidentifier():
        raise SettingsError(
            f"attr is {attr!r}. Expected a Python identifier, since it names the attributes doc._.{attr} and so on."
        )
    if keyword.iskeyword(attr) or attr.startswith("_") or hasattr(Underscore, attr):
        raise SettingsError(f"attr is {attr!r}, a name that spaCy or Python uses itself. Set attr to another name.")
    for owner, (suffix, read) in product((Token, Span, Doc), READERS.items()):
        name = attr + suffix
        if owner.has_extension(name) and getattr(owner.get_extension(name)[2], "func", None) is not _get:
            raise SettingsError(
                f"attr is {attr!r}, but {owner.__name__}._.{name} was set by something else. Set attr to another "
                "name, or remove that extension."
            )
        getter, setter = partial(_get, attr=attr, read=read), partial(_set, attr=attr)
        owner.set_extension(name, getter=getter, setter=setter, force=True)


# The hooks that make `.vector` and `.similarity` ELMo's


def set_vector_hooks(doc: Doc, attr: str) -> None:
    """Set the hooks on a doc that has vectors under attr, and on its spans and tokens.

    `doc.tensor`, which spaCy keeps better, would not do: spaCy prefers static vectors to it, counts whitespace, finds a
    word like itself in any context (1.0), and hands it to a Tok2VecListener.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks["vector"] = partial(_vector, attr=attr)
        hooks["has_vector"] = partial(_has_vector, attr=attr)
        hooks["similarity"] = _similarity
    doc.user_hooks["vector_norm"] = partial(_norm, attr=attr)  # spaCy's would be that of the tokens' norms


def _vector(part: Part, *, attr: str) -> Any:
    return _get(part, attr=attr, read=vectors_of) if isinstance(part, Token) else mean_vector(part, attr=attr)


def _has_vector(part: Part, *, attr: str) -> bool:
    """Whether the part contains words and the doc has vectors that are not zero."""
    tokens = [part] if isinstance(part, Token) else part
    try:
        return any(not token.is_space for token in tokens) and bool(_vector(part, attr=attr).any())
    except NotEmbeddedError:
        return False


def _norm(doc: Doc, *, attr: str) -> float:
    vector: Any = mean_vector(doc, attr=attr)
    return float((vector**2).sum() ** 0.5)


def _similarity(part: Part, other: Part) -> float:
    """Return the cosine of two vectors; 0 if one is zero. Raises SettingsError if their widths differ."""
    a: Any = part.vector
    try:
        b: Any = other.vector
    except ValueError:  # a lexeme of a vocabulary without vectors
        b = np.zeros(0, "f")
    if a.shape != b.shape:
        raise SettingsError(
            f"this has an ELMo vector of width {a.shape[0]}, but what it is compared with has a vector of width "
            f"{b.shape[0]}. Run the same pipe on both; a lexeme, nlp.vocab[word], has no ELMo vector. If a doc was "
            "written, or sent by another process, call spacy_elmo.restore_vectors(doc)."
        )
    norms = float((a**2).sum() ** 0.5) * float((b**2).sum() ** 0.5)
    return float(np.clip(float(a @ b) / norms, -1.0, 1.0)) if norms else 0.0


@overload
def restore_vectors(docs: Doc, attr: str = "elmo") -> Doc: ...


@overload
def restore_vectors(docs: Iterable[Doc], attr: str = "elmo") -> Iterator[Doc]: ...


def restore_vectors(docs: Doc | Iterable[Doc], attr: str = "elmo") -> Doc | Iterator[Doc]:
    """Make `.vector`, `.has_vector`, `.vector_norm` and `.similarity` of docs and their parts come from ELMo again.

    Docs from a DocBin, from Doc.from_bytes, from Doc.from_docs and from nlp.pipe with n_process need it: spaCy loses
    their hooks, and often says so (W109).

    docs: a doc that an elmo pipe has annotated, or a stream of such docs, such as nlp.pipe(texts, n_process=2), which
        are returned as they were given. Raises NotEmbeddedError if a doc has no vectors under attr.
    """
    register(attr)  # a process that only reads docs has no pipe that would have done this
    return _restored(docs, attr) if isinstance(docs, Doc) else (_restored(doc, attr) for doc in docs)


def _restored(doc: Doc, attr: str) -> Doc:
    if not isinstance(doc, Doc):
        raise SettingsError(f"restore_vectors was given {shown(doc)}. Expected a Doc, or a stream of docs.")
    if not has_values(doc, attr=attr):
        raise _not_embedded(doc, attr)
    set_vector_hooks(doc, attr)
    return doc


def tfhub_outputs(doc: Doc, attr: str = "elmo") -> dict[str, FloatsXd]:
    """Return the outputs of TF-Hub's ELMo module (google/elmo/3) for a doc, under the module's names.

    word_emb: *Shape:* (tokens, width / 2), the character encoder's vectors, which layer 0 contains twice.
    lstm_outputs1, lstm_outputs2, and so on for each LSTM layer: *Shape:* (tokens, width).
    elmo: *Shape:* (tokens, width), the mix of the layers (see the setting scalar_mix_parameters).
    default: *Shape:* (width,), the mean of `elmo` over the tokens that are not whitespace; zeros if there are none.

    Raises NotEmbeddedError if the doc has no layers under attr.
    """
    register(attr)
    layers, elmo = doc._.get(f"{attr}_layers"), doc._.get(attr)
    outputs = {"word_emb": layers[0, :, : layers.shape[2] // 2]}
    outputs |= {f"lstm_outputs{k}": layers[k] for k in range(1, len(layers))}
    return outputs | {"elmo": elmo, "default": mean_vector(doc, attr=attr)}
