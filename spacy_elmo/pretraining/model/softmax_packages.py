"""Packages that hold the softmax and the vocabulary of an embedded biLM.

Such a package has an entry point in the group `spacy_elmo_softmaxes`, with the name of the biLM. It names a function
that returns the folder of the package's files, or a module in that folder. The folder holds softmax.hdf5,
vocabulary.txt, its counts, and bilm.sha256: a line, as sha256sum writes it, with the SHA-256 of the weights.hdf5 that
the softmax was trained with.
"""

from pathlib import Path

from ...errors import Errors, WeightsError, shown
from ...formats.checksums import sha256_of
from ...formats.named.entry_points import find_point, folder_of

GROUP = "spacy_elmo_softmaxes"
DIGEST = "bilm.sha256"
_NEEDED = ("softmax.hdf5", "vocabulary.txt", DIGEST)


def package_name(name: str) -> str:
    """Return the name of the package of an embedded biLM's softmax. name: of the biLM, like en_mini."""
    return f"spacy-elmo-{name.replace('_', '-')}-softmax"


def package_folder(name: str, weights: Path) -> Path | None:
    """Return the folder of an embedded biLM's softmax.

    name: of the biLM, like en_mini.
    weights: the biLM's weights.hdf5.

    Returns None if no package with it is installed.
    Raises WeightsError if the package can't be loaded, lacks files, or belongs to other weights.
    """
    point = find_point(GROUP, name)
    if point is None:
        return None
    folder = folder_of(point)
    package = package_name(name)
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if missing:
        message = Errors.SOFTMAX_PACKAGE_FILES
        raise WeightsError(message.format(folder=folder, missing=", ".join(missing), package=package))
    got = (folder / DIGEST).read_text(encoding="ascii", errors="replace").partition(" ")[0]
    expected = sha256_of(weights)
    if got != expected:
        message = Errors.SOFTMAX_PACKAGE_OTHER
        raise WeightsError(message.format(folder=folder, name=name, got=shown(got), expected=expected, package=package))
    return folder


def write_digest(folder: Path, weights: Path) -> None:
    """Write bilm.sha256, which tells the weights that a softmax belongs to.

    folder: of the package's files.
    weights: the biLM's weights.hdf5.

    Raises OSError if a file can't be read or written.
    """
    (folder / DIGEST).write_text(f"{sha256_of(weights)}  {weights.name}\n", encoding="utf8", newline="\n")
