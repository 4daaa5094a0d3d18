"""What is said of a name that stands for no biLM, and of a folder whose files have other names."""

import os
from pathlib import Path

from ..errors import Errors, SettingsError, shown
from ..formats.named.bilms import is_hidden
from ..formats.published.names import PUBLISHED

_PACKED = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".zst", ".7z")


def is_packed(name: str | os.PathLike[str]) -> bool:
    """Return whether a name ends like that of a ZIP file or another packed one."""
    return Path(name).suffix.lower() in _PACKED


def no_bilm(name: str | os.PathLike[str]) -> SettingsError:
    """Return the error for a name that is neither that of a biLM nor a folder."""
    reason = "there is no such folder"
    if is_hidden(name):
        reason = "a file or folder of this name is in the current folder. Rename it, or work in another folder"
    elif is_packed(name) and Path(name).exists():
        reason = "it is a packed file. Unpack it, and give its folder"
    return SettingsError(
        Errors.BILM_UNKNOWN.format(got=shown(os.fspath(name)), reason=reason, expected=", ".join(PUBLISHED))
    )


def refuse_other_names(options_file: str, weight_file: str) -> None:
    """Raise SettingsError if files are missing, but their folder has one file that can be such a file.

    options_file, weight_file: in the same folder.
    """
    folder = Path(options_file).parent
    patterns = {Path(options_file): "*options.json", Path(weight_file): "*.hdf5"}
    missing = [file for file in patterns if not file.exists()]
    candidates = [sorted(folder.glob(patterns[file])) for file in missing]
    others = [[file.name for file in files if not file.name.startswith("softmax")] for files in candidates]
    found = [names[0] for names in others if len(names) == 1]
    if found:
        raise SettingsError(
            Errors.BILM_OTHER_NAMES.format(
                folder=folder, missing=" and no ".join(file.name for file in missing), found=" and ".join(found)
            )
        )
