"""Finds the files of a model: in a folder, or in the installed packages."""

import os
from pathlib import Path

from ...errors import ElmoError, Errors, SettingsError, WeightsError
from ...formats.named.bilms import folder_named, is_hidden, is_named
from ...modules.loading import BEST as BEST
from ...modules.loading import EMBEDDED, best_of_run, embedded_files
from ...modules.loading import OPTIONS as OPTIONS
from ...modules.loading import WEIGHTS as WEIGHTS
from ...modules.naming import no_bilm
from .softmax_packages import package_folder, package_name

SOFTMAX, WORDS = "softmax.hdf5", "vocabulary.txt"
COUNTS = "vocabulary.counts.npy"  # may be missing
CARD = "README.md"  # may be missing
LAST = "model-last"  # in the folder of a run, beside BEST
RUN = "run.json"  # in the folder of a run
FILES = (OPTIONS, WEIGHTS, SOFTMAX, WORDS)


def is_embedded(model: str | os.PathLike[str]) -> bool:
    """Return whether a model is the embedded biLM: it is called en_mini, and there is no folder of this name.

    model: a folder, or a name.
    """
    return os.fspath(model) == EMBEDDED and not Path(model).is_dir()


def bilm_folder(model: str | os.PathLike[str]) -> Path:
    """Return the folder of a model's options.json and weights.hdf5. It may be missing.

    model: a folder, that of a run for its model-best, en_mini for the embedded biLM, or the name of a published one or
        of one in a package.

    Raises SettingsError if another file or folder hides the biLM of this name, and ElmoError as `folder_named` does.
    """
    if is_embedded(model):
        return Path(embedded_files()[0]).parent
    if is_named(model):
        return folder_named(model)
    folder = best_of_run(Path(model))
    if is_hidden(model) and not (folder / OPTIONS).exists():
        raise no_bilm(model)
    return folder


def refuse_new_run(folder: Path) -> None:
    """Raise WeightsError if a model's folder is that of a run which has written no model yet, or is inside it.

    folder: what `bilm_folder` returns.
    """
    run = folder.parent if folder.name in (BEST, LAST) else folder
    if (run / RUN).is_file() and not (folder / OPTIONS).exists():
        raise WeightsError(Errors.MODEL_OF_NEW_RUN.format(path=run))


def softmax_folder(model: str | os.PathLike[str]) -> Path | None:
    """Return the folder of a model's softmax.hdf5 and vocabulary.txt.

    model: a folder, that of a run for its model-best, en_mini for the embedded biLM, whose softmax is in a package of
        its own, or the name of a published biLM or of one in a package, whose softmax is beside the biLM.

    Returns None if the package with the softmax of en_mini is not installed.
    Raises WeightsError if that package does not belong to the embedded biLM, and ElmoError as `folder_named` does.
    """
    if is_embedded(model):
        return package_folder(EMBEDDED, Path(embedded_files()[1]))
    return folder_named(model) if is_named(model) else best_of_run(Path(model))


def folders_of(model: str | os.PathLike[str]) -> set[Path]:
    """Return the folders in which a model's files are: of the biLM, of its softmax, and of the run that wrote them.

    model: as in `softmax_folder`, which also tells the errors.
    """
    folders = {Path(os.path.realpath(folder)) for folder in (bilm_folder(model), softmax_folder(model)) if folder}
    return folders | {folder.parent for folder in folders if (folder.parent / RUN).is_file()}


def has_softmax(model: str | os.PathLike[str]) -> bool:
    """Return whether a model has a softmax.

    model: as in `softmax_folder`, which also tells the errors.
    """
    folder = softmax_folder(model)
    return folder is not None and (folder / SOFTMAX).exists()


def no_package(model: str | os.PathLike[str]) -> WeightsError:
    """Return the error that names the package of an embedded biLM's softmax."""
    package = package_name(os.fspath(model))
    return WeightsError(Errors.SOFTMAX_PACKAGE.format(name=model, package=package, folder=f"packages/{model}_softmax"))


def no_softmax(model: str | os.PathLike[str]) -> ElmoError:
    """Return the error that says how a biLM without a softmax is tuned. model: as in `softmax_folder`."""
    return no_package(model) if is_embedded(model) else SettingsError(Errors.TUNE_NO_SOFTMAX.format(folder=model))
