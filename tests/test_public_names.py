"""The public names (docs/stability.md) are those of the list, so that none goes or comes unnoticed."""

import re
from importlib import import_module
from importlib.metadata import distribution
from inspect import signature
from pathlib import Path
from typing import Any

from spacy_elmo.cli import COMMANDS, load

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "public_names.txt"


def of_the_reference() -> set[str]:
    """The classes and functions that docs/reference.md lists, with the names of their arguments."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf8")
    lines = set()
    for kind, name, members in re.findall(
        r"^\.\. auto(class|function|module):: (\S+)((?:\n   .*)*)", text, re.MULTILINE
    ):
        found = resolved(name)
        if kind != "module":
            lines.add(described(name, found))
        named = re.search(r":members: (.+)", members)
        for member in named[1].split(", ") if named else ():
            lines.add(described(f"{name}.{member}", getattr(found, member)))
    return lines


def resolved(name: str) -> Any:
    """What has this full name: a module, or something in it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        owner, _, last = name.rpartition(".")
        return getattr(import_module(owner), last)


def described(name: str, found: Any) -> str:
    if isinstance(found, type) and issubclass(found, BaseException):
        return name
    return f"{name}({', '.join(signature(found).parameters)})" if callable(found) else name


def of_commands() -> set[str]:
    lines = set()
    for name in COMMANDS:
        lines.add(f"elmo {name}")
        for parameter in load(name).params:
            if parameter.name != "help":
                given = sorted(parameter.opts + parameter.secondary_opts)
                lines |= {
                    f"elmo {name} {option}" for option in (given if given[0].startswith("-") else [parameter.name])
                }
    return lines


def registered() -> set[str]:
    return {f"{point.group} {point.name}" for point in distribution("spacy-elmo").entry_points}


def test_public_names() -> None:
    found = of_the_reference() | of_commands() | registered()
    expected = LIST.read_text(encoding="utf8").splitlines()
    assert expected == sorted(set(expected))
    assert found - set(expected) == set(), "new public names: add them to tests/public_names.txt"
    assert set(expected) - found == set(), "public names are gone: see docs/stability.md"
