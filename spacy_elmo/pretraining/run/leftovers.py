"""What killed runs left half-written."""

import re
import shutil
from pathlib import Path

from ...errors import CheckpointError
from ...formats.atomic import writing

# as formats/atomic.py, preparing.py and language_model.py name what is not finished or was replaced
_NAME = re.compile(r"\.(.+\.)?[0-9a-f]{32}\.(tmp|old)")


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files and folders in a run's folder and in the folders inside it, where nobody else writes.

    Raises CheckpointError.
    """
    with writing(folder, CheckpointError):
        for path in [*folder.glob(".*"), *folder.glob("*/.*")]:
            if not _NAME.fullmatch(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
