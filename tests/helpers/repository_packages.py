"""The packages of the folder packages/, as they stand in the repository."""

from __future__ import annotations

import configparser
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGES = Path(__file__).parents[2] / "packages"


class RepositoryPackage(NamedTuple):
    """A package.

    folder: of its setup.cfg.
    module: name of its module.
    config: what setup.cfg says.
    """

    folder: Path
    module: str
    config: configparser.ConfigParser


def importable(name: str, monkeypatch: pytest.MonkeyPatch) -> RepositoryPackage:
    """Return a package whose module can be imported in a test. name: of its folder in packages/."""
    config = configparser.ConfigParser()
    config.read(PACKAGES / name / "setup.cfg", encoding="utf8")
    monkeypatch.syspath_prepend(str(PACKAGES / name))
    return RepositoryPackage(PACKAGES / name, config["options"]["packages"], config)


def only_entry_point(package: RepositoryPackage, group: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have no entry point but that of a package, for one test. Returns its name. group: of the entry point."""
    name, _, value = package.config["options.entry_points"][group].strip().partition(" = ")
    points = metadata.EntryPoints([metadata.EntryPoint(name, value, group)])
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: points.select(**wanted))
    return name
