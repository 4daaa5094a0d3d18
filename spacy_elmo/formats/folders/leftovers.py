"""Deletes the incomplete files of killed processes."""

import os
import re
import shutil
from pathlib import Path

from ...errors import ElmoError
from ..atomic import writing

# names of incomplete or replaced files and folders in formats/atomic.py, formats/atomic_folder.py and preparing.py
_NAME = re.compile(r"\.(.+\.)?[0-9a-f]{32}\.(tmp|old)")


def is_leftover(name: str) -> bool:
    """Whether a name is that of a temporary file or folder."""
    return _NAME.fullmatch(name) is not None


def remove_leftovers(folder: Path, error: type[ElmoError]) -> None:
    """Delete temporary files and folders in a folder, and in the folders directly inside it.

    folder: where no other process may write.
    error: class of the exception.

    Raises `error` if something can't be deleted.
    """
    with writing(folder, error):
        for path in [*folder.glob(".*"), *folder.glob("*/.*")]:
            if not is_leftover(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def remove_leftovers_of(path: Path, error: type[ElmoError]) -> None:
    """Delete the temporary files of killed processes that were to become one file (see `replacing`).

    path: that file. No other process may write it.
    error: class of the exception.

    Raises `error` if something can't be deleted.
    """
    target = Path(os.path.realpath(path))
    name = re.compile(rf"\.+{re.escape(target.name)}\.(.+\.)?[0-9a-f]{{32}}\.tmp")
    if target.parent.is_dir():
        with writing(path, error):
            for other in target.parent.iterdir():
                if name.fullmatch(other.name):
                    other.unlink(missing_ok=True)
