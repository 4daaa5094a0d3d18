"""Folders whose files appear together."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import ElmoError
from .atomic import writing

UNFINISHED = ".unfinished"  # in a folder while its files are replaced


def is_unfinished(folder: Path) -> bool:
    """Whether files of two fillings may stand in a folder: one was killed while it replaced those of another."""
    return (folder / UNFINISHED).exists()


@contextmanager
def filling(path: str | os.PathLike[str], names: Iterable[str], error: type[ElmoError]) -> Iterator[Path]:
    """Give a temporary folder; move it to `path` when the block succeeds.

    Where `path` is a folder already, each file is replaced whole, when all have been written; those of `names` that
    the block did not write are deleted, and other files stay. When the block raises, all is as it was. What is killed
    between two files leaves a folder of which is_unfinished is true, until it is filled again.

    Raises `error` for what the file system refuses.
    """
    folder = Path(os.path.realpath(path))  # a link stays one
    temporary = folder.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        with writing(folder, error):
            temporary.mkdir(parents=True)
        yield temporary
        with writing(folder, error):
            if folder.exists():
                _replace_files(temporary, folder, names)
            else:
                os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace_files(source: Path, folder: Path, names: Iterable[str]) -> None:
    (folder / UNFINISHED).touch()
    for name in names:  # first: what is left of an earlier model would not belong to this one
        if not (source / name).exists():
            (folder / name).unlink(missing_ok=True)
    for path in source.iterdir():
        os.replace(path, folder / path.name)
    (folder / UNFINISHED).unlink()
