"""The folder of an installed package's files, which an entry point of the package names."""

from importlib import metadata
from pathlib import Path
from types import ModuleType

from ...errors import Errors, WeightsError


def find_point(group: str, name: str) -> metadata.EntryPoint | None:
    """Return the entry point of a group with a name, the first one if several packages have it; None if none has."""
    return next(iter(metadata.entry_points(group=group, name=name)), None)


def folder_of(point: metadata.EntryPoint) -> Path:
    """Return the folder of a package's files. It may be missing.

    point: names a function that returns the folder, or a module in that folder.

    Raises WeightsError if it can't be loaded, or names neither, and if the path is relative or can't be looked at.
    """
    try:
        loaded = point.load()
        folder = _folder_of_module(loaded) if isinstance(loaded, ModuleType) else Path(loaded())
        if not folder.is_absolute():
            raise ValueError(f"{str(folder)!r} is not an absolute path")
        (folder / "options.json").exists()  # raises OSError if the name is too long, or if nobody may look into it
    except (Exception, SystemExit) as error:  # a package's own code fails in any way
        reason = str(error) or type(error).__name__
        message = Errors.PACKAGE_ENTRY.format(name=point.name, value=point.value, group=point.group, reason=reason)
        raise WeightsError(message) from error
    return folder


def _folder_of_module(module: ModuleType) -> Path:
    if module.__file__ is None:
        raise ImportError(f"{module.__name__} has no __init__.py")
    return Path(module.__file__).parent
