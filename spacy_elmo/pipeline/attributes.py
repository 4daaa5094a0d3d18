"""The values of the extension attributes `token._.elmo`, `doc._.elmo_layers` and so on: what sets and reads them.

The values are plain arrays in doc.user_data, under the keys that spaCy uses for values of extension attributes. So
to_bytes, pickle and DocBin save them, and spaCy's own tools recognise them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import Errors, NotEmbeddedError, SettingsError
from .following import follow
from .storage import LAYERS, MIX, NOTHING, TOKENS, VECTORS, Block, blocks_of, is_not_stored, key, remove, tokens_of


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
        raise SettingsError(Errors.STORE_FLOAT16)
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
        raise NotEmbeddedError(Errors.OTHER_TOKENS.format(attr=attr))
    return values


def not_embedded(doc: Doc, attr: str) -> NotEmbeddedError:
    """Return the error that says why a doc has nothing under attr.

    doc: a doc without layers and vectors.
    attr: name of the extension attributes.
    """
    message = Errors.STORED_NONE if is_not_stored(doc, attr) else Errors.NOT_EMBEDDED
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
            raise NotEmbeddedError(Errors.STORED_VECTORS.format(attr=attr))
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
