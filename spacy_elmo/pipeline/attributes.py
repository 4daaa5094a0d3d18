"""The extension attributes `token._.elmo`, `doc._.elmo_layers` and so on, and where their values are kept.

They are plain arrays in doc.user_data under the keys of extension attributes, so that they survive to_bytes, pickle
and DocBin, and spaCy's own tools know whose they are.
"""

import keyword
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import Errors, NotEmbeddedError, SettingsError

# no attribute can end like the last: another pipe's never meets it
LAYERS, VECTORS, MIX = "_layers", "", ":mix"


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


def annotate(doc: Doc, attr: str, layers: Floats3d, weights: Any, store: str) -> None:
    """Keep a doc's layers, or with store="mix" only their mix."""
    clear(doc, None, attr=attr)
    if store == "mix":
        doc.user_data[_key(attr, VECTORS)] = mix(layers, weights)
    else:
        doc.user_data[_key(attr, LAYERS)] = layers.astype("float16") if store == "layers_float16" else layers
        doc.user_data[_key(attr, MIX)] = weights


def clear(doc: Doc, value: Any, *, attr: str) -> None:
    """The setter of the doc's attributes: None frees what is kept."""
    if value is not None:
        raise SettingsError(Errors.SET_VALUE.format(attr=attr, got=type(value).__name__))
    for suffix in (LAYERS, VECTORS, MIX):
        doc.user_data.pop(_key(attr, suffix), None)


def has_values(doc: Doc, *, attr: str) -> bool:
    """Whether the doc keeps layers or vectors under this name."""
    return _key(attr, LAYERS) in doc.user_data or _key(attr, VECTORS) in doc.user_data


def doc_layers(doc: Doc, *, attr: str) -> Floats3d:
    """*Shape:* (layers, tokens, width), float32; the doc's own array where it keeps float32."""
    result: Floats3d = _stored_layers(doc, attr).astype("f", copy=False)
    return result


def _stored_layers(doc: Doc, attr: str) -> Any:
    layers = doc.user_data.get(_key(attr, LAYERS))
    if layers is None:
        message = Errors.STORED_MIX if _key(attr, VECTORS) in doc.user_data else Errors.NOT_EMBEDDED
        raise NotEmbeddedError(message.format(attr=attr))
    return _fitting(doc, attr, layers, layers.shape[1])


def doc_vectors(doc: Doc, *, attr: str) -> Floats2d:
    """*Shape:* (tokens, width), float32."""
    vectors = doc.user_data.get(_key(attr, VECTORS))
    if vectors is not None:
        result: Floats2d = _fitting(doc, attr, vectors, vectors.shape[0])
        return result
    return mix(_stored_layers(doc, attr), doc.user_data[_key(attr, MIX)])


def _fitting(doc: Doc, attr: str, array: Any, rows: int) -> Any:
    if rows != len(doc):
        raise NotEmbeddedError(Errors.OTHER_TOKENS.format(attr=attr, rows=rows, tokens=len(doc)))
    return array


def _part_layers(part: Span | Token, *, attr: str) -> Any:
    """(layers, width) of a token, (layers, tokens, width) of a span; only these are converted to float32."""
    layers = _stored_layers(part.doc, attr)
    chosen = layers[:, part.i] if isinstance(part, Token) else layers[:, part.start : part.end]
    return chosen.astype("f", copy=False)


def _span_vectors(span: Span, *, attr: str) -> Floats2d:
    if _key(attr, VECTORS) in span.doc.user_data:
        result: Floats2d = doc_vectors(span.doc, attr=attr)[span.start : span.end]
        return result
    return mix(_part_layers(span, attr=attr), span.doc.user_data[_key(attr, MIX)])


def _token_vector(token: Token, *, attr: str) -> Floats1d:
    result: Floats1d = _span_vectors(token.doc[token.i : token.i + 1], attr=attr)[0]
    return result


_GETTERS = (
    (Token, VECTORS, _token_vector),
    (Token, LAYERS, _part_layers),
    (Span, VECTORS, _span_vectors),
    (Span, LAYERS, _part_layers),
    (Doc, VECTORS, doc_vectors),
    (Doc, LAYERS, doc_layers),
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
        setter = partial(clear, attr=attr) if owner is Doc else None
        owner.set_extension(name, getter=partial(getter, attr=attr), setter=setter)
