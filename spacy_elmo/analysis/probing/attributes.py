"""The labels of tokens, by the name of an attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spacy.tokens import MorphAnalysis, Token

from ...errors import Errors, SettingsError, shown

Getter = Callable[[Token], str]  # "" means that a token has no label
ENTITIES, OUTSIDE = "ent", "O"
_CUSTOM = "_."
_NAMES = {"upos": "pos", "xpos": "tag"}  # what spaCy calls them


def label_getter(attribute: str) -> Getter:
    """Return a function that reads the label of a token.

    attribute: "upos" (spaCy's pos), "tag", "ent" (IOB and the type, such as B-PER, or O), another attribute of spaCy's
        tokens, such as "dep" or "is_title", or "_.name" for an extension attribute whose values are in the docs.

    The function raises SettingsError if a value is no label, such as a vector. Raises SettingsError if tokens have no
    such attribute.
    """
    if attribute == ENTITIES:
        return _entity
    if attribute.startswith(_CUSTOM) and len(attribute) > len(_CUSTOM):
        return _custom(attribute.removeprefix(_CUSTOM), attribute)
    name = _NAMES.get(attribute, attribute)
    if name.startswith("_") or name.endswith("_") or not hasattr(Token, name):
        raise SettingsError(Errors.PROBE_ATTRIBUTE.format(got=shown(attribute)))
    read = f"{name}_" if hasattr(Token, f"{name}_") else name  # spaCy has pos as a number and pos_ as a string
    return lambda token: _text(getattr(token, read), attribute)


def _entity(token: Token) -> str:
    return f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else token.ent_iob_


def _custom(name: str, attribute: str) -> Getter:
    def getter(token: Token) -> str:
        # read from where spaCy stores it, so that the extension need not be registered
        data: dict[Any, Any] = token.doc.user_data
        return _text(data.get(("._.", name, token.idx, None)), attribute)

    return getter


def _text(value: object, attribute: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, (str, int, MorphAnalysis)):  # bool is an int
        raise SettingsError(Errors.PROBE_VALUE.format(attribute=shown(attribute), got=shown(value)))
    return str(value)
