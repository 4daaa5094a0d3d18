"""The arguments of a class from a section of an AllenNLP configuration."""

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import Errors, SettingsError, shown

_FILE = (str, os.PathLike)
_BOOL = (bool, int)  # AllenNLP makes bools of whole numbers
# what AllenNLP's FromParams permits for each annotation: no number in place of a bool, for example, and no text
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "options_file": (_FILE, "a path, or null"),
    "weight_file": (_FILE, "a path, or null"),
    "num_output_representations": ((int,), "a whole number"),
    "requires_grad": (_BOOL, "true or false"),
    "do_layer_norm": (_BOOL, "true or false"),
    "keep_sentence_boundaries": (_BOOL, "true or false"),
    "stateful": (_BOOL, "true or false"),
    "dropout": ((int, float), "a number"),
    "vocab_to_cache": ((Sequence,), "a list of words, or null"),
    "scalar_mix_parameters": ((Sequence,), "a list of numbers, or null"),
}
_ELEMENTS: dict[str, tuple[type, ...]] = {"vocab_to_cache": (str,), "scalar_mix_parameters": (int, float)}
_MAY_BE_NULL = ("options_file", "weight_file", "vocab_to_cache", "scalar_mix_parameters", "module")


def arguments_of(cls: type, params: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that parameters describe.

    cls: the class.
    params: arguments by name.
    extras: further arguments by name, which are not checked.

    Raises SettingsError if `params` is no mapping, a name is unknown or missing, or a value has the wrong type.
    """
    if not isinstance(params, Mapping):
        raise SettingsError(Errors.ELMO_PARAMS.format(got=shown(params)))
    known = dict(inspect.signature(cls).parameters)
    given = dict(params.items())
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SettingsError(Errors.ELMO_PARAMS_UNKNOWN.format(got=shown(unknown[0]), expected=", ".join(known)))
    arguments = given | dict(extras)
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in arguments:
            hint = ", or set it to null for the embedded biLM" if name in _MAY_BE_NULL else ""
            raise SettingsError(Errors.ELMO_PARAMS_MISSING.format(missing=name, hint=hint))
    for name, value in given.items():
        _check(name, value)
        if name in _TYPES and _TYPES[name][0] == _BOOL:
            arguments[name] = bool(arguments[name])
    return arguments


def _check(name: str, value: object) -> None:
    if value is None and name in _MAY_BE_NULL:
        return
    if name == "module":
        raise SettingsError(
            Errors.ELMO_PARAMS_VALUE.format(name=name, got=shown(value), expected="it as an argument of from_params")
        )
    types, expected = _TYPES[name]
    fits = isinstance(value, types)
    if isinstance(value, Sequence) and name in _ELEMENTS:
        fits = not isinstance(value, str) and all(isinstance(element, _ELEMENTS[name]) for element in value)
    if not fits:
        raise SettingsError(Errors.ELMO_PARAMS_VALUE.format(name=name, got=shown(value), expected=expected))
