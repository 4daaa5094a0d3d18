"""Limits of configuration files, whose values may contain one another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

MOST_BYTES = 2**20  # of a file; those that init-pretrain-config writes have about 3,000
_MOST_EXPANDED = 2**20  # characters of a value after all variables in it are replaced
_DEEPEST = 20  # sections and values inside one another
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")


def check_limits(tree: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, if reading a configuration would take very long or much memory.

    tree: sections and values, before variables like ${paths.train} are replaced.
    """
    texts = dict(_texts(tree, "", _DEEPEST))
    sizes: dict[str, int] = {}
    for key in texts:
        if _size(key, texts, sizes) > _MOST_EXPANDED:
            raise ValueError(f"{key} has more than {_MOST_EXPANDED:,} characters after its variables are replaced")


def _texts(tree: Mapping[str, Any], prefix: str, deepest: int) -> Iterator[tuple[str, str]]:
    """Yield the values by their full names, and each section as well, as text."""
    if not deepest:
        raise ValueError(f"sections or values are inside one another, more than {_DEEPEST} deep")
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _texts(value, f"{prefix}{name}.", deepest - 1)
        elif isinstance(value, list):
            yield from _texts(dict(enumerate(value)), f"{prefix}{name}.", deepest - 1)  # type: ignore[arg-type]
            continue
        yield f"{prefix}{name}", str(value)


def _size(key: str, texts: Mapping[str, str], sizes: dict[str, int]) -> int:
    """Return the characters of a value after its variables are replaced.

    key: its full name.
    texts: all values by their full names.
    sizes: the results so far; it gets this one.
    """
    if key not in sizes:
        text = texts.get(key, "")
        sizes[key] = 0  # for variables that contain themselves, which thinc refuses
        sizes[key] = len(text) + sum(_size(name.replace(":", "."), texts, sizes) for name in _VARIABLE.findall(text))
    return sizes[key]
