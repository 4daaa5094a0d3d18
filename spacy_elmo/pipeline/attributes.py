"""The extension attributes `token._.elmo`, `doc._.elmo_layers` and so on, and where their values are kept.

They are plain arrays in doc.user_data under the keys of extension attributes, so that they survive to_bytes, pickle
and DocBin, and spaCy's own tools know whose they are.
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

# no attribute can end like the last two: another pipe's never meets them
LAYERS, VECTORS, MIX, TOKENS = "_layers", "", ":mix", ":tokens"


def _key(attr: str, suffix: str) -> Any:
    """As spaCy's own keys of extension values, though its stub asks for strings."""
    return ("._.", attr + suffix, None, None)


def mix_parameters(scalar_mix_parameters: Sequence[float]) -> Any:
    """Pre-softmax weights -> softmax weights, *Shape:* (layers,), float32; gamma is 1."""
    weights = np.asarray(scalar_mix_parameters, np.float64)
    exp = np.exp(weights - weights.max())
    return (exp / exp.sum()).astype(np.float32)


def mix(layers: Floats3d, weights: Any) -> Floats2d:
    """The weighted sum of the layers. layers: (layers, tokens, width), weights: (layers,). Returns (tokens, width)."""
    xp = get_array_module(layers)
    weighted: Floats2d = xp.tensordot(xp.asarray(weights), layers.astype("f", copy=False), axes=1)
    return weighted


def _tokens(part: Doc | Span) -> Any:
    """What makes a token the one that was embedded: its text and place in the text. *Shape:* (tokens, 2), uint64."""
    array: Any = part.to_array([ORTH, IDX])  # type: ignore[union-attr]  # missing in the stub of Span
    return array


def annotate(doc: Doc, attr: str, layers: Floats3d, weights: Any, store: str) -> None:
    """Keep a doc's layers, or with store="mix" only their mix."""
    clear(doc, None, attr=attr)
    doc.user_data[_key(attr, TOKENS)] = _tokens(doc)
    if store == "mix":
        doc.user_data[_key(attr, VECTORS)] = mix(layers, weights)
    else:
        doc.user_data[_key(attr, LAYERS)] = _half(layers) if store == "layers_float16" else layers
        doc.user_data[_key(attr, MIX)] = weights


def _half(layers: Floats3d) -> Any:
    with np.errstate(over="ignore"):  # what is too large is found below
        half: Any = layers.astype("float16")
    if get_array_module(half).isinf(half).any():
        raise SettingsError(Errors.STORE_FLOAT16)
    return half


def clear(doc: Doc, value: Any, *, attr: str) -> None:
    """The setter of the doc's attributes: None frees what is kept."""
    if value is not None:
        raise SettingsError(Errors.SET_VALUE.format(attr=attr, got=type(value).__name__))
    for suffix in (LAYERS, VECTORS, MIX, TOKENS):
        doc.user_data.pop(_key(attr, suffix), None)


def _refuse(part: Span | Token, value: Any, *, attr: str) -> None:
    """The setter of tokens' and spans' attributes: without one, spaCy would take the value and forget it."""
    raise SettingsError(Errors.SET_PART.format(attr=attr))


def has_values(doc: Doc, *, attr: str) -> bool:
    """Whether the doc keeps layers or vectors under this name."""
    return _key(attr, LAYERS) in doc.user_data or _key(attr, VECTORS) in doc.user_data


def _stored(part: Doc | Span, attr: str, suffix: str) -> Any:
    """The part's rows of the doc's array. Raises NotEmbeddedError where there is none, or the tokens have changed."""
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
    """*Shape:* (layers, tokens, width), float32; a view of the doc's own array where it keeps float32."""
    result: Floats3d = _stored(part, attr, LAYERS).astype("f", copy=False)
    return result


def vectors_of(part: Doc | Span, *, attr: str) -> Floats2d:
    """*Shape:* (tokens, width), float32."""
    user_data = (part if isinstance(part, Doc) else part.doc).user_data
    if _key(attr, VECTORS) in user_data:
        vectors: Floats2d = _stored(part, attr, VECTORS)
        return vectors
    layers = _stored(part, attr, LAYERS)
    if _key(attr, MIX) not in user_data:
        raise NotEmbeddedError(Errors.NOT_EMBEDDED.format(attr=attr))
    return mix(layers, user_data[_key(attr, MIX)])


def mean_vector(part: Doc | Span, *, attr: str) -> Floats1d:
    """The mean over tokens but for whitespace; zeros where there are none. *Shape:* (width,), float32."""
    vectors = vectors_of(part, attr=attr)
    read = [i for i, token in enumerate(part) if not token.is_space]
    xp = get_array_module(vectors)
    result: Floats1d = vectors[xp.asarray(read)].mean(0) if read else xp.zeros(vectors.shape[1], "f")
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
    """Set the extensions for `attr` on Token, Span and Doc. Raises SettingsError where another package has them."""
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
