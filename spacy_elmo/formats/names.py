"""The names of biLMs that are not embedded: those of published ones, and those that installed packages bring.

A package with a biLM has an entry point in the group `spacy_elmo_bilms`, with the name of the biLM. It names a function
that returns the folder of the package's files, or a module in that folder. The folder holds options.json and
weights.hdf5, and perhaps softmax.hdf5, vocabulary.txt, its counts, and README.md, the model card.
"""

import os
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ..errors import SettingsError, WeightsError
from .options import BiLMOptions

GROUP = "spacy_elmo_bilms"
KNOWN = ("en_mini", "la_mini")  # biLMs of packages in this project's repository, which may not be installed
_NEEDED = ("options.json", "weights.hdf5")

CACHE = "SPACY_ELMO_CACHE"  # environment variable that moves the folder
_ADDRESS = "https://allennlp.s3.amazonaws.com/models/elmo/"  # as AllenNLP 2.10.1 names it


class PublishedModel(NamedTuple):
    """A published biLM: addresses of its options.json and its weights.hdf5, and spaCy's code of its language."""

    options_url: str
    weights_url: str
    language: str


def _published(name: str, weights: str = "weights", language: str = "en") -> PublishedModel:
    return PublishedModel(f"{_ADDRESS}{name}_options.json", f"{_ADDRESS}{name}_{weights}.hdf5", language)


# The paper's page (allennlp.org/elmo) named the same files in this bucket, by its older address.
PUBLISHED = {
    "original": _published("2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway"),
    "original-5.5B": _published("2x4096_512_2048cnn_2xhighway_5.5B/elmo_2x4096_512_2048cnn_2xhighway_5.5B"),
    "medium": _published("2x2048_256_2048cnn_1xhighway/elmo_2x2048_256_2048cnn_1xhighway"),
    "small": _published("2x1024_128_2048cnn_1xhighway/elmo_2x1024_128_2048cnn_1xhighway"),
    "pubmed": _published("contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway", "weights_PubMed_only"),
    "pt": _published("contributed/pt/elmo_pt", language="pt"),
}


def published_folder(name: str | os.PathLike[str]) -> Path:
    """Return the folder for a published biLM, which may be missing: in $SPACY_ELMO_CACHE or the user's cache.

    Raises SettingsError if the user has no home folder.
    """
    if own := os.environ.get(CACHE):
        return Path(os.path.expanduser(own)) / name  # a shell expands ~ in some places only
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG specification: a relative path is not valid and should be ignored
    if os.path.isabs(shared):
        return Path(shared) / "spacy-elmo" / name
    try:
        return Path.home() / ".cache" / "spacy-elmo" / name
    except RuntimeError as error:
        raise SettingsError(
            f"{name}: a published biLM is kept in the user's cache, but no home folder is known. Set {CACHE} to a "
            "folder for published biLMs, or set HOME."
        ) from error


def find_point(group: str, name: str) -> metadata.EntryPoint | None:
    """Return the entry point of a group with a name, the first one if several packages have it; None if none has."""
    return next(iter(metadata.entry_points(group=group, name=name)), None)


def folder_of(point: metadata.EntryPoint) -> Path:
    """Return the folder of a package's files, which may be missing. Raises WeightsError if the package gives none."""
    try:
        loaded = point.load()
        if isinstance(loaded, ModuleType):
            return Path(loaded.__file__).parent  # type: ignore[arg-type]  # None, of a folder without __init__.py, fails
        return Path(loaded())
    except Exception as error:  # a package's own code fails in any way
        reason = str(error) or type(error).__name__
        raise WeightsError(
            f"{point.name}: the entry point {point.value} of the group {point.group} gives no folder ({reason}). "
            "Expected a function that returns it, or a module in it. Install the package again, or uninstall it."
        ) from error


def is_named(bilm: str | os.PathLike[str]) -> bool:
    """Return whether this is the name of a published biLM, or of one in a package, and no file or folder hides it."""
    return not Path(bilm).exists() and _is_name(os.fspath(bilm))


def is_hidden(bilm: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder hides the biLM of its name."""
    return Path(bilm).exists() and _is_name(os.fspath(bilm))


def _is_name(name: str) -> bool:
    # a path is no name, and to look through all installed packages takes milliseconds
    return name in PUBLISHED or name in KNOWN or (Path(name).name == name and find_point(GROUP, name) is not None)


def folder_named(bilm: str | os.PathLike[str]) -> Path:
    """Return the folder of a biLM for which `is_named` is true. A published biLM wins over one in a package."""
    name = os.fspath(bilm)
    if name in PUBLISHED:
        folder = published_folder(name)
        if not all((folder / file).is_file() for file in _NEEDED):
            raise SettingsError(
                f"{name}: a published biLM that was not downloaded to {folder}. Get it with python -m spacy elmo "
                f"download {name}; or give the folder of its files, or set {CACHE} to the folder above that one."
            )
        return folder
    point = find_point(GROUP, name)
    if point is None:
        raise SettingsError(
            f"{name}: a biLM in the package spacy-elmo-{name.replace('_', '-')}, which is not installed. Run "
            f"pip install spacy-elmo-{name.replace('_', '-')}, or in a clone pip install ./packages/{name}."
        )
    folder = folder_of(point)
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if missing:
        raise WeightsError(
            f"{folder}: {', '.join(missing)} missing. The entry point {point.value} of the group {GROUP} names this "
            f"folder for the biLM {name}. Install a copy that has all files; if it is yours, see package_data."
        )
    return folder


def folders_of_packages() -> dict[str, Path]:
    """Return the folder of each biLM that an installed package brings, by its name; a published biLM wins."""
    folders: dict[str, Path] = {}
    for point in metadata.entry_points(group=GROUP):
        if point.name in PUBLISHED:
            continue
        with suppress(WeightsError):
            folders.setdefault(point.name, folder_of(point))  # the first one, as `find_point`
    return folders


_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class OfficialModel(NamedTuple):
    """An official model. sha256, n_bytes: of its weights.hdf5; None if no source states them."""

    name: str
    options: BiLMOptions
    sha256: str | None = None
    n_bytes: int | None = None


def _options(dim: int, projection_dim: int, n_highway: int) -> BiLMOptions:
    return BiLMOptions(16, _FILTERS, n_highway, "relu", 50, dim, projection_dim, 2, 3.0, 3.0, True)


_SMALL = "747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229"
OFFICIAL_MODELS = (
    OfficialModel("small", _options(1024, 128, 1), _SMALL, 54_402_456),
    OfficialModel("medium", _options(2048, 256, 1)),
    OfficialModel("original (and 5.5B)", _options(4096, 512, 2)),  # two models of the same sizes
)


def find_official(options: BiLMOptions | None, sha256: str | None = None) -> tuple[OfficialModel, bool] | None:
    """Return the official model with this hash of its weights or else these sizes, and whether the hash decided."""
    found = [(model, True) for model in OFFICIAL_MODELS if sha256 is not None and sha256 == model.sha256]
    found += [(model, False) for model in OFFICIAL_MODELS if options == model.options]
    return found[0] if found else None
