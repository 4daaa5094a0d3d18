"""Deletes the incomplete files of killed runs."""

import re
import shutil
from pathlib import Path

from ...errors import CheckpointError
from ...formats.atomic import writing

# names of incomplete or replaced files and folders in formats/atomic.py, formats/atomic_folder.py and preparing.py
_NAME = re.compile(r"\.(.+\.)?[0-9a-f]{32}\.(tmp|old)")


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files and folders in the folder of a run, and in the folders directly inside it.

    folder: of a run. No other process may write there.

    Raises CheckpointError if something can't be deleted.
    """
    with writing(folder, CheckpointError):
        for path in [*folder.glob(".*"), *folder.glob("*/.*")]:
            if not _NAME.fullmatch(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
