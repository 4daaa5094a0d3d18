"""The extension attributes `token._.elmo`, `doc._.elmo_layers` and so on, and where their values are stored.

The values are plain arrays in doc.user_data, under the keys that spaCy uses for values of extension attributes. So
to_bytes, pickle and DocBin save them, and spaCy's own tools recognise them.
"""

import keyword
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from spacy.attrs import IDX, ORTH
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import Errors, NotEmbeddedError, SettingsError

# suffixes of the keys. The last two cannot be part of an attribute's name, so that no other pipe uses the same keys
LAYERS, VECTORS, MIX, TOKENS = "_layers", "", ":mix", ":tokens"


def _key(attr: str, suffix: str) -> Any:
    """Return spaCy's key of an extension value. (spaCy's type stub expects strings.)"""
    return ("._.", attr + suffix, None, None)


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


def _tokens(part: Doc | Span) -> Any:
    """Return what identifies each token: its text's hash and its place in the text. *Shape:* (tokens, 2), uint64.

    If they differ from those of the embedded doc, the tokens have changed.
    """
    array: Any = part.to_array([ORTH, IDX])  # type: ignore[union-attr]  # missing in the stub of Span
    return array


def annotate(doc: Doc, attr: str, layers: Floats3d, weights: Any, store: str) -> None:
    """Store a doc's layers, or only their mix, on the doc.

    doc: the doc. Earlier values under attr are removed.
    attr: name of the extension attributes.
    layers: *Shape:* (layers, tokens, width).
    weights: *Shape:* (layers,), the weights of the mix, after the softmax.
    store: "layers", "layers_float16" or "mix".

    Raises SettingsError if store is "layers_float16" and a value is too large for float16.
    """
    clear(doc, None, attr=attr)
    doc.user_data[_key(attr, TOKENS)] = _tokens(doc)
    if store == "mix":
        doc.user_data[_key(attr, VECTORS)] = mix(layers, weights)
    else:
        doc.user_data[_key(attr, LAYERS)] = _half(layers) if store == "layers_float16" else layers
        doc.user_data[_key(attr, MIX)] = weights


def _half(layers: Floats3d) -> Any:
    with np.errstate(over="ignore"):  # values that are too large become infinite, and raise below
        half: Any = layers.astype("float16")
    if get_array_module(half).isinf(half).any():
        raise SettingsError(Errors.STORE_FLOAT16)
    return half


def clear(doc: Doc, value: Any, *, attr: str) -> None:
    """Remove the stored values: the setter of the doc's attributes, as in `doc._.elmo = None`.

    doc: the doc.
    value: None.
    attr: name of the extension attributes.

    Raises SettingsError if value is not None.
    """
    if value is not None:
        raise SettingsError(Errors.SET_VALUE.format(attr=attr, got=type(value).__name__))
    for suffix in (LAYERS, VECTORS, MIX, TOKENS):
        doc.user_data.pop(_key(attr, suffix), None)


def _refuse(part: Span | Token, value: Any, *, attr: str) -> None:
    """Raise SettingsError: the setter of attributes of tokens and spans. Without one spaCy would ignore the value."""
    raise SettingsError(Errors.SET_PART.format(attr=attr))


def has_values(doc: Doc, *, attr: str) -> bool:
    """Whether layers or vectors are stored on the doc.

    doc: any doc.
    attr: name of the extension attributes.
    """
    return _key(attr, LAYERS) in doc.user_data or _key(attr, VECTORS) in doc.user_data


def _stored(part: Doc | Span, attr: str, suffix: str) -> Any:
    """Return the part's rows of an array that is stored on the doc.

    Raises NotEmbeddedError if there is no array, or the tokens have changed since it was stored.
    """
    doc, start, end = (part, 0, len(part)) if isinstance(part, Doc) else (part.doc, part.start, part.end)
    array = doc.user_data.get(_key(attr, suffix))
    if array is None:
        message = Errors.STORED_MIX if has_values(doc, attr=attr) else Errors.NOT_EMBEDDED
        raise NotEmbeddedError(message.format(attr=attr))
    rows, tokens = array.shape[-2], doc.user_data.get(_key(attr, TOKENS))
    if rows != len(doc):
        raise NotEmbeddedError(Errors.OTHER_NUMBER.format(attr=attr, rows=rows, tokens=len(doc)))
    if tokens is None or len(tokens) != rows or (end > start and (tokens[start:end] != _tokens(part)).any()):
        raise NotEmbeddedError(Errors.OTHER_TOKENS.format(attr=attr))
    return array[..., start:end, :]


def layers_of(part: Doc | Span, *, attr: str) -> Floats3d:
    """Return the layers of a doc or span, *Shape:* (layers, tokens, width), float32.

    The result is a view of the array on the doc if this is float32.

    part: the doc or span.
    attr: name of the extension attributes.

    Raises NotEmbeddedError if no layers are stored on the doc, or its tokens have changed.
    """
    result: Floats3d = _stored(part, attr, LAYERS).astype("f", copy=False)
    return result


def vectors_of(part: Doc | Span, *, attr: str) -> Floats2d:
    """Return the vectors of a doc or span, which are the mix of the layers: *Shape:* (tokens, width), float32.

    part: the doc or span.
    attr: name of the extension attributes.

    Raises NotEmbeddedError if no vectors are stored on the doc, or its tokens have changed.
    """
    user_data = (part if isinstance(part, Doc) else part.doc).user_data
    if _key(attr, VECTORS) in user_data:
        vectors: Floats2d = _stored(part, attr, VECTORS)
        return vectors
    layers = _stored(part, attr, LAYERS)
    if _key(attr, MIX) not in user_data:
        raise NotEmbeddedError(Errors.NOT_EMBEDDED.format(attr=attr))
    return mix(layers, user_data[_key(attr, MIX)])


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


def _token_layers(token: Token, *, attr: str) -> Floats2d:
    result: Floats2d = layers_of(_alone(token), attr=attr)[:, 0]
    return result


def _token_vector(token: Token, *, attr: str) -> Floats1d:
    result: Floats1d = vectors_of(_alone(token), attr=attr)[0]
    return result


def _alone(token: Token) -> Span:
    return token.doc[token.i : token.i + 1]


_GETTERS = (
    (Token, VECTORS, _token_vector),
    (Token, LAYERS, _token_layers),
    (Span, VECTORS, vectors_of),
    (Span, LAYERS, layers_of),
    (Doc, VECTORS, vectors_of),
    (Doc, LAYERS, layers_of),
)


def register(attr: str) -> None:
    """Set the extensions for `attr` on Token, Span and Doc, unless they are set.

    attr: name of the extension attributes, a Python identifier.

    Raises SettingsError if attr cannot be used as a name, or another package has set an extension of this name.
    """
    if not attr.isidentifier():
        raise SettingsError(Errors.ATTR.format(got=attr))
    if keyword.iskeyword(attr) or attr.startswith("_") or hasattr(Underscore, attr):
        raise SettingsError(Errors.ATTR_RESERVED.format(got=attr))
    missing = []
    for owner, suffix, getter in _GETTERS:
        name = attr + suffix
        if not owner.has_extension(name):
            missing.append((owner, name, getter))
        elif getattr(owner.get_extension(name)[2], "func", None) is not getter:
            raise SettingsError(Errors.ATTR_TAKEN.format(attr=attr, owner=owner.__name__, name=name))
    for owner, name, getter in missing:
        setter = partial(clear if owner is Doc else _refuse, attr=attr)
        owner.set_extension(name, getter=partial(getter, attr=attr), setter=setter)
