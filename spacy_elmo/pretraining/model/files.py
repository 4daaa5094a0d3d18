"""Where a biLM's files are: in a folder, or in the installed packages."""

import os
from pathlib import Path

from ...errors import Errors, WeightsError
from ...modules.loading import EMBEDDED, embedded_files
from .softmax_packages import package_folder, package_name

OPTIONS, WEIGHTS, SOFTMAX, WORDS = "options.json", "weights.hdf5", "softmax.hdf5", "vocabulary.txt"
COUNTS = "vocabulary.counts.npy"  # may be missing
CARD = "README.md"  # may be missing
BEST, LAST = "model-best", "model-last"  # in the folder of a run
FILES = (OPTIONS, WEIGHTS, SOFTMAX, WORDS)


def is_embedded(model: str | os.PathLike[str]) -> bool:
    """Whether a model is the embedded biLM: its name, en_mini, and no folder of that name is there."""
    return os.fspath(model) == EMBEDDED and not Path(model).is_dir()


def bilm_folder(model: str | os.PathLike[str]) -> Path:
    """Where options.json and weights.hdf5 of a model are. model: a folder, or en_mini.

    Raises WeightsError for the folder of a run, which has models inside.
    """
    if is_embedded(model):
        return Path(embedded_files()[0]).parent
    folder = Path(model)
    if not (folder / OPTIONS).exists() and (folder / BEST / OPTIONS).exists():
        raise WeightsError(Errors.MODEL_OF_RUN.format(folder=folder, best=folder / BEST))
    return folder


def softmax_folder(model: str | os.PathLike[str]) -> Path | None:
    """Where softmax.hdf5 and vocabulary.txt of a model are; None for en_mini, where their package is not installed.

    model: a folder, or en_mini. Raises WeightsError for a package that does not belong to the installed biLM.
    """
    return package_folder(EMBEDDED, Path(embedded_files()[1])) if is_embedded(model) else Path(model)


def has_softmax(model: str | os.PathLike[str]) -> bool:
    """Whether a model has a softmax. Raises as softmax_folder does."""
    folder = softmax_folder(model)
    return folder is not None and (folder / SOFTMAX).exists()


def no_package(model: str | os.PathLike[str]) -> WeightsError:
    """The error that tells which package en_mini's softmax is in."""
    package = package_name(os.fspath(model))
    return WeightsError(Errors.SOFTMAX_PACKAGE.format(name=model, package=package, folder=f"packages/{model}_softmax"))
