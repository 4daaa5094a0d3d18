"""The extension attributes that components of this package set on docs and spans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from spacy.tokens import Doc, Span

from ...errors import Errors, SettingsError


def set_getter(owner: type[Doc] | type[Span], name: str, getter: Callable[..., Any], **arguments: Any) -> None:
    """Set an extension attribute that is read by a function, unless it is set already.

    owner: Doc or Span.
    name: of the attribute.
    getter: the function that reads it.
    arguments: of this function, beside the doc or span.

    Raises SettingsError if something else, or a component with other arguments, has set an attribute of this name: its
    values would be taken for ours.
    """
    if not owner.has_extension(name):
        owner.set_extension(name, getter=partial(getter, **arguments))
        return
    found = owner.get_extension(name)[2]
    names = {"owner": owner.__name__, "name": name}
    if not isinstance(found, partial) or found.func is not getter:
        raise SettingsError(Errors.TASK_EXTENSION_TAKEN.format(**names))
    if found.keywords != arguments:
        pairs = {"got": _written(found.keywords), "expected": _written(arguments)}
        raise SettingsError(Errors.TASK_EXTENSION_OURS.format(**names, **pairs))


def _written(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value!r}" for key, value in arguments.items())
