"""The extension attributes `token._.elmo`, `doc._.elmo_layers` and so on, as spaCy knows them: getters and setters."""

import keyword
from functools import partial
from typing import Any

from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import Errors, SettingsError
from .attributes import layers_of, token_vector, vectors_of
from .hooks import restore_lost_hooks
from .storage import LAYERS, VECTORS, remove


def clear(doc: Doc, value: Any, *, attr: str) -> None:
    """Remove the stored values: the setter of the doc's attributes, as in `doc._.elmo = None`.

    doc: the doc.
    value: None.
    attr: name of the extension attributes.

    Raises SettingsError if value is not None.
    """
    if value is not None:
        raise SettingsError(Errors.SET_VALUE.format(attr=attr, got=type(value).__name__))
    remove(doc, attr)


def _refuse(part: Span | Token, value: Any, *, attr: str) -> None:
    """Raise SettingsError: the setter of attributes of tokens and spans. Without one spaCy would ignore the value."""
    raise SettingsError(Errors.SET_PART.format(attr=attr))


def _layers(part: Doc | Span, *, attr: str) -> Floats3d:
    layers = layers_of(part, attr=attr)
    restore_lost_hooks(part)
    return layers


def _vectors(part: Doc | Span, *, attr: str) -> Floats2d:
    vectors = vectors_of(part, attr=attr)
    restore_lost_hooks(part)
    return vectors


def _token_layers(token: Token, *, attr: str) -> Floats2d:
    result: Floats2d = _layers(token.doc[token.i : token.i + 1], attr=attr)[:, 0]
    return result


def _token_vector(token: Token, *, attr: str) -> Floats1d:
    vector = token_vector(token, attr=attr)
    restore_lost_hooks(token)
    return vector


_GETTERS = (
    (Token, VECTORS, _token_vector),
    (Token, LAYERS, _token_layers),
    (Span, VECTORS, _vectors),
    (Span, LAYERS, _layers),
    (Doc, VECTORS, _vectors),
    (Doc, LAYERS, _layers),
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
