"""What is said of a name that stands for no biLM."""

import os
from pathlib import Path

from ..errors import Errors, SettingsError, shown
from ..formats.published.names import PUBLISHED

_PACKED = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".zst", ".7z")


def is_packed(name: str | os.PathLike[str]) -> bool:
    """Return whether a name ends like that of a ZIP file or another packed one."""
    return Path(name).suffix.lower() in _PACKED


def no_bilm(name: str | os.PathLike[str]) -> SettingsError:
    """Return the error for a name that is neither that of a biLM nor a folder."""
    reason = "it is a packed file. Unpack it, and give its folder" if is_packed(name) else "there is no such folder"
    return SettingsError(
        Errors.BILM_UNKNOWN.format(got=shown(os.fspath(name)), reason=reason, expected=", ".join(PUBLISHED))
    )
