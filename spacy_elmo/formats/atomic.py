"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spacy_elmo.errors import ElmoError, Errors


@contextmanager
def replacing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[Path]:
    """Give a temporary path in the folder of `path`; move the file there to `path` when the block succeeds.

    When the block raises, the temporary file is deleted and an earlier file at `path` stays as it was.

    Raises `error` where the folder is missing, `path` is a folder, or the move fails.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise error(Errors.FOLDER_MISSING.format(path=target, folder=target.parent))
    if target.is_dir():
        raise error(Errors.FILE_UNWRITABLE.format(path=target, reason="it is a folder"))
    temporary = target.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        yield temporary
        with writing(target, error):
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[None]:
    """Turn what the file system refuses inside the block into `error`, naming `path`."""
    try:
        yield
    except OSError as exc:
        raise error(Errors.FILE_UNWRITABLE.format(path=path, reason=exc)) from exc
