"""Which files a source names: a file, a folder or a pattern."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from ...errors import CorpusError, Errors

EXPECTED = "text, one sentence a line (plain, .gz, .xz or .zst), .jsonl or .spacy files: one, a folder or a pattern"


def find_files(source: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> list[Path]:
    """The files of a source, sorted: itself, all files in a folder and its folders, or those that match a pattern.

    In folders and patterns, names that begin with a dot are left out, and links to folders are not followed. What
    exists under the very name is no pattern. output: a folder whose files, found by a pattern or in a folder, do not
    count. Raises CorpusError where there is no file.
    """
    path = Path(source)
    if not os.fspath(source):  # else it would be the folder one is in
        raise CorpusError(Errors.SOURCE_MISSING.format(source='""', expected=EXPECTED))
    if path.is_file():
        return [path]
    if path.is_dir():
        walk = os.walk(path, onerror=_raise)
        files = [Path(folder, name) for folder, _, names in walk for name in names]
    elif path.exists():
        raise CorpusError(Errors.SOURCE_SPECIAL.format(source=path, expected=EXPECTED))
    else:
        files = _matching(path)
    hidden = _n_hidden(path)  # those were asked for
    found = sorted(file for file in files if _n_hidden(file) == hidden and file.is_file())
    if output is not None:
        own = Path(output).resolve()
        found = [file for file in found if not file.resolve().is_relative_to(own)]
    if not found:
        message = Errors.SOURCE_EMPTY if path.is_dir() else Errors.SOURCE_MISSING
        raise CorpusError(message.format(source=path, expected=EXPECTED))
    return found


def name_of(source: str) -> str:
    """The last part of a path, which tells nothing of the machine."""
    return Path(source).name or Path(source).resolve().name


def refuse_inside(
    source: str | os.PathLike[str], output: str | os.PathLike[str], own: str | os.PathLike[str] | None = None
) -> None:
    """Raise CorpusError where an output is the source, lies in it, or matches it; own: see output of find_files."""
    root, target = Path(source).resolve(), Path(output).resolve()
    inside = target.is_relative_to(root)
    if not inside and glob.has_magic(str(source)):
        inside = any(file.resolve().is_relative_to(target) for file in find_files(source, own))
    if inside:
        raise CorpusError(Errors.SOURCE_HOLDS_OUTPUT.format(output=output, source=source))


def _matching(path: Path) -> list[Path]:
    """Path.glob does not follow links to folders, of which there may be circles; glob.glob does."""
    if not glob.has_magic(str(path)):
        return []
    try:
        return list(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    except ValueError as error:  # such as a**
        raise CorpusError(Errors.SOURCE_PATTERN.format(source=path, reason=error, expected=EXPECTED)) from error


def _raise(error: OSError) -> None:
    raise CorpusError(Errors.SOURCE_DAMAGED.format(path=error.filename, reason=error)) from error


def _n_hidden(path: Path) -> int:
    return sum(part.startswith(".") for part in path.parts)
