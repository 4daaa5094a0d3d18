"""What values the settings of a run may have, stated beside each field of their dataclasses."""

import math
from collections.abc import Callable
from dataclasses import Field, fields
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from ...errors import Errors, SettingsError, shown

_RULE, _HELP = "rule", "help"
_MOST = 2**63 - 1  # what arrays of int64 hold


class Rule(NamedTuple):
    """fits: whether a value is one that can be used; expected: the same in words; final: the value's last form."""

    fits: Callable[[Any], bool]
    expected: str
    final: Callable[[Any], Any] = lambda value: value


Metadata = dict[str, Any]


def whole(least: int, most: int | None = None, optional: bool = False) -> Metadata:
    """A whole number from least to most; None too if it is optional."""
    bound = f"{least:,} or more" if most is None else f"from {least:,} to {most:,}"
    highest = _MOST if most is None else most

    def fits(value: object) -> bool:
        return _is_whole(value) and least <= value <= highest  # type: ignore[operator]

    return _metadata(fits, f"a whole number, {bound}", optional)


def real(
    least: float | None = None, most: float | None = None, *, above: float | None = None, below: float | None = None
) -> Metadata:
    """A finite number between bounds: least and most are allowed themselves, above and below are not."""
    bounds = [(least, "{} or more"), (above, "more than {}"), (most, "{} or less"), (below, "less than {}")]
    said = " and ".join(text.format(bound) for bound, text in bounds if bound is not None)

    def fits(value: object) -> bool:
        number = _number(value)
        if number is None:
            return False
        return (
            (least is None or number >= least)
            and (above is None or number > above)
            and (most is None or number <= most)
            and (below is None or number < below)
        )

    return {_RULE: Rule(fits, "a number, " + said if said else "a number", float)}


def text(optional: bool = False) -> Metadata:
    """A string that is not empty, without NUL, which no path can have."""
    return _metadata(
        lambda value: isinstance(value, str) and value != "" and "\0" not in value, "text in quotes", optional
    )


def one_of(*choices: str) -> Metadata:
    """One of these strings."""
    expected = "one of " + ", ".join(f'"{choice}"' for choice in choices)
    return _metadata(lambda value: isinstance(value, str) and value in choices, expected, False)


def rising(least: int) -> Metadata:
    """A list of one whole number or more, the first at least `least`, each larger than the one before it."""

    def fits(value: object) -> bool:
        if not isinstance(value, list | tuple) or not value or not all(map(_is_whole, value)):
            return False
        return bool(value[0] >= least and value[-1] <= _MOST and all(a < b for a, b in pairwise(value)))

    return {_RULE: Rule(fits, f"a list of whole numbers, {least:,} or more, each larger than the one before", tuple)}


def help_text(text: str) -> Metadata:
    """What a setting does, in words: for a field's metadata, beside its rule."""
    return {_HELP: text}


def help_of(field: Field[Any]) -> str | None:
    """The help text of a field; None if it has none."""
    text: str | None = field.metadata.get(_HELP)
    return text


class Section:
    """A dataclass of settings, checked when it is made. SECTION: its name in the file."""

    SECTION: ClassVar[str]

    def __post_init__(self) -> None:
        check_section(self)


def check_section(section: Any) -> None:
    """Check all fields of a section that say what they may be, and bring them to their last form.

    Raises SettingsError.
    """
    for field in fields(section):
        rule = field.metadata.get(_RULE)
        if rule is None:
            continue
        value = getattr(section, field.name)
        if not rule.fits(value):
            refuse(f"{section.SECTION}.{field.name}", value, rule.expected)
        object.__setattr__(section, field.name, rule.final(value))  # sections are frozen


def refuse(key: str, value: object, expected: str) -> None:
    """Raise SettingsError."""
    raise SettingsError(Errors.CONFIG_VALUE.format(key=key, got=shown(value), expected=expected))


def _metadata(fits: Callable[[Any], bool], expected: str, optional: bool) -> Metadata:
    if optional:
        return {_RULE: Rule(lambda value: value is None or fits(value), f"{expected}, or null")}
    return {_RULE: Rule(fits, expected)}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> float | None:
    """The value as a float; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        return None
    return number if math.isfinite(number) else None
