"""Folders whose files are replaced together."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ElmoError
from .atomic import writing

UNFINISHED = ".unfinished"  # name of a marker file that stands in a folder while its files are replaced


def is_unfinished(folder: Path) -> bool:
    """Whether a folder may mix old and new files, because a process was killed while it replaced them."""
    return (folder / UNFINISHED).exists()


@contextmanager
def replacing_folder(path: str | os.PathLike[str], names: Iterable[str], error: type[ElmoError]) -> Iterator[Path]:
    """Yield a temporary folder; move its files to the folder `path` if the block succeeds.

    If `path` does not exist, the temporary folder is renamed to it; folders above it are made. If it exists, its files
    are replaced one after the other, after the block has written all of them. If the block raises, nothing changes. If
    the process is killed between two replacements, is_unfinished(path) is true until the folder is replaced again.

    path: the folder to write. If it is a symbolic link, the link's target is written.
    names: files that belong to the set. Those that the block does not write are deleted; other files stay.
    error: class of the exception.

    Yields the temporary folder, which is beside `path`, or inside it if a file system is mounted there.
    Raises `error` if the file system refuses an operation.
    """
    folder = Path(os.path.realpath(path))
    # files can't be moved to another file system
    parent = folder if os.path.ismount(folder) else folder.parent
    temporary = parent / f".{uuid.uuid4().hex}.tmp"
    missing: list[Path] = []
    try:
        with writing(folder, error):
            missing = [above for above in temporary.parents if not above.exists()]
            temporary.mkdir(parents=True)
        with _naming(folder, temporary):
            yield temporary
        with writing(folder, error):
            if folder.exists():
                _replace_files(temporary, folder, names)
            else:
                os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for above in missing:  # the inner ones first
            with suppress(OSError):  # not empty, as after a success
                above.rmdir()


@contextmanager
def _naming(folder: Path, temporary: Path) -> Iterator[None]:
    """Name the folder in an error's message about the temporary one, which a user has never seen."""
    try:
        yield
    except ElmoError as exc:
        exc.args = tuple(str(argument).replace(str(temporary), str(folder)) for argument in exc.args)
        raise


def _replace_files(source: Path, folder: Path, names: Iterable[str]) -> None:
    (folder / UNFINISHED).touch()
    for name in names:  # deleted first, so that no file of the earlier model is read with files of this one
        if not (source / name).exists():
            (folder / name).unlink(missing_ok=True)
    for path in source.iterdir():
        os.replace(path, folder / path.name)
    (folder / UNFINISHED).unlink()
