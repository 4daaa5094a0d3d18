"""The names of biLMs that are not embedded: those of published ones, and those that installed packages bring.

A package with a biLM has an entry point in the group `spacy_elmo_bilms`, with the name of the biLM. It names a function
that returns the folder of the package's files, or a module in that folder. The folder holds options.json and
weights.hdf5, and perhaps softmax.hdf5, vocabulary.txt, its counts, and README.md, the model card.
"""

import os
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from ...errors import Errors, SettingsError, WeightsError
from ..published.names import PUBLISHED, downloaded_folder
from .entry_points import find_point, folder_of

GROUP = "spacy_elmo_bilms"
KNOWN = ("en_midi",)  # biLMs of packages in this project's repository, which may not be installed
_NEEDED = ("options.json", "weights.hdf5")


def is_named(bilm: str | os.PathLike[str]) -> bool:
    """Return whether a biLM is named by the name of a published one, or of one in a package.

    A file or folder of that name comes first. So does the embedded biLM, which callers ask for before.

    bilm: a folder, or a name.
    """
    return not Path(bilm).exists() and _is_name(os.fspath(bilm))


def is_hidden(bilm: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder hides the biLM of its name. bilm: a folder, or a name."""
    return Path(bilm).exists() and _is_name(os.fspath(bilm))


def _is_name(name: str) -> bool:
    return name in PUBLISHED or name in KNOWN or find_point(GROUP, name) is not None


def folder_named(bilm: str | os.PathLike[str]) -> Path:
    """Return the folder of a biLM for which `is_named` is true. A published biLM wins over one in a package.

    bilm: its name.

    Raises SettingsError, which says what to do, if it was not downloaded or its package is not installed, and
    WeightsError if the package can't be loaded or lacks files.
    """
    name = os.fspath(bilm)
    if name in PUBLISHED:
        return downloaded_folder(name)
    point = find_point(GROUP, name)
    if point is None:
        raise SettingsError(Errors.NOT_INSTALLED.format(name=name, package=f"spacy-elmo-{name.replace('_', '-')}"))
    folder = folder_of(point)
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if missing:
        message = Errors.BILM_PACKAGE_FILES
        missed = ", ".join(missing)
        raise WeightsError(message.format(folder=folder, missing=missed, name=name, value=point.value, group=GROUP))
    return folder


def folders_of_packages() -> dict[str, Path]:
    """Return the folder of each biLM that an installed package brings, by its name.

    Packages that fail are left out, and so are those with the name of a published biLM, which wins.
    """
    folders: dict[str, Path] = {}
    for point in metadata.entry_points(group=GROUP):
        if point.name in PUBLISHED:
            continue
        with suppress(WeightsError):
            folders.setdefault(point.name, folder_of(point))  # the first one, as `find_point`
    return folders
