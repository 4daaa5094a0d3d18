"""Finds the files of a source: a file, a folder or a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import CorpusError, Errors, shown
from ..unpacking import PACKED

EXPECTED = "text, one sentence a line (plain, .gz, .xz or .zst), .jsonl or .spacy files: one, a folder or a pattern"


def find_files(
    source: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, expected: str = EXPECTED
) -> list[Path]:
    """Return the files of a source, sorted.

    In folders and for patterns, names that begin with a dot are left out, and symbolic links to folders are not
    followed.

    source: a file, a folder (all files in it and in its folders), or a pattern such as texts/*.txt. If a file or folder
        has exactly this name, it is not used as a pattern.
    output: a folder whose files are left out of folders and patterns.
    expected: what messages say that a source is.

    Raises CorpusError if there is no file.
    """
    path = Path(source)
    if not os.fspath(source):  # Path("") is the current folder
        raise CorpusError(Errors.SOURCE_MISSING.format(source='""', expected=expected))
    with _usable(source):
        return _find_files(path, output, expected)


def _find_files(path: Path, output: str | os.PathLike[str] | None, expected: str) -> list[Path]:
    if path.is_file():
        return [path]
    if path.is_dir():
        walk = os.walk(path, onerror=_raise)
        files = [Path(folder, name) for folder, _, names in walk for name in names]
    elif path.exists():
        raise CorpusError(Errors.SOURCE_SPECIAL.format(source=path, expected=expected))
    else:
        files = _matching(path, expected)
    hidden = _n_hidden(path)  # dots that the user wrote
    visible = sorted(file for file in files if _n_hidden(file) == hidden and file.is_file())
    if output is not None:
        excluded = Path(output).resolve()
        visible = [file for file in visible if not file.resolve().is_relative_to(excluded)]
    if not visible:
        message = Errors.SOURCE_EMPTY if path.is_dir() else Errors.SOURCE_MISSING
        raise CorpusError(message.format(source=path, expected=expected))
    return visible


def kind_of(path: Path) -> str:
    """Return the end of a file's name that tells its format, after .gz, .xz or .zst is removed: ".jsonl", for example.

    path: the file. A name without a dot gives "".
    """
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def name_of(source: str) -> str:
    """Return the last part of a path, which tells nothing about the machine."""
    return Path(source).name or Path(source).resolve().name


def refuse_inside(
    source: str | os.PathLike[str], target: str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> None:
    """Raise CorpusError if what is to be written would belong to the source.

    source: a file, a folder or a pattern.
    target: the file or folder to be written.
    output: a folder whose files do not belong to a pattern; see `find_files`.
    """
    with _usable(source):
        root, resolved = (Path(os.path.realpath(path)) for path in (source, target))  # resolve() fails if links loop
        inside = resolved.is_relative_to(root)
        if not inside and glob.has_magic(str(source)):
            inside = any(file.resolve().is_relative_to(resolved) for file in find_files(source, output))
        if inside:
            raise CorpusError(Errors.SOURCE_HOLDS_OUTPUT.format(output=target, source=source))


@contextmanager
def _usable(source: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of paths that can't be used into CorpusError: too long, with NUL, or with half a surrogate pair."""
    try:
        yield
    except CorpusError:
        raise
    except (OSError, ValueError) as error:
        raise CorpusError(Errors.SOURCE_DAMAGED.format(path=shown(os.fspath(source)), reason=error)) from error


def _matching(path: Path, expected: str) -> list[Path]:
    """Return what matches a pattern. Path.glob is used because glob.glob follows links to folders, even in circles."""
    if not glob.has_magic(str(path)):
        return []
    try:
        return list(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    except ValueError as error:  # such as a**
        raise CorpusError(Errors.SOURCE_PATTERN.format(source=path, reason=error, expected=expected)) from error


def _raise(error: OSError) -> None:
    raise CorpusError(Errors.SOURCE_DAMAGED.format(path=error.filename, reason=error)) from error


def _n_hidden(path: Path) -> int:
    return sum(part.startswith(".") for part in path.parts)
