"""Where may this be written? What each output of a command or a function passes before the work on it begins.

An output is no input, and no file of the model that is read. Nobody else writes it until the block ends. What is
replaced is what the same command has written, and only if that was asked for.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..errors import CorpusError, ElmoError
from .atomic import file_to_write, is_unfinished, lock, real
from .paths import Name, expanded, find_files, refuse_name


@contextmanager
def output(path: Name, error: type[ElmoError], inputs: Iterable[Name] = (), **settings: Any) -> Iterator[None]:
    """Hold a file or folder to be written during a `with` block. Raises `error` as `check_output` does."""
    refuse_name(path, error)
    if not settings.get("names"):
        file_to_write(path, error)
    with lock(path, error):
        check_output(path, error, inputs, **settings)
        yield


def check_output(
    path: Name,
    error: type[ElmoError],
    inputs: Iterable[Name] = (),
    *,
    names: Sequence[str] = (),
    marks: Sequence[str] = (),
    force: bool = True,
    beside: bool | None = None,
    begins: bytes = b"",
    left_out: bool = False,
) -> None:
    """Raise `error` if a file, or with `names` a folder, can't be written, or must not be.

    inputs: what is read: files, folders and patterns (see `find_files`), "-", and the files and folders of a model.
    names: the files and folders that are written in a folder.
    marks: one of these files tells that a folder is of this kind; none: the caller looks at what is in it.
    force: whether an earlier file, or a folder of this kind, may be replaced.
    beside: whether other files may be in a folder that have none of the names; None: not even with --force.
    begins: how a file begins that may be replaced, in small or capital letters.
    left_out: whether what is in a folder is not read, though a pattern of the inputs matches it.
    """
    target, kind = (real(path), "folder") if names else (file_to_write(path, error), "file")
    if names and target.exists() and not target.is_dir():
        raise error(f"{path} is no folder. Expected the name of a folder.")
    inputs = [name for name in inputs if not (left_out and _is_pattern(name))]
    _refuse_inputs(path, target, [target / name for name in names] or [target], inputs, error)
    if not target.exists():
        return
    if begins:
        with target.open("rb") as file:
            earlier = file.read(len(begins))
        if earlier and earlier.lower() != begins.lower():
            raise error(
                f"{path}: begins with {earlier!r}, so no earlier command of this kind has written it. Expected a new "
                f"name, or that of a file that begins with {begins!r}: change the name, or delete the file."
            )
    if marks and not is_unfinished(target) and not any((target / mark).exists() for mark in marks):
        found = names if beside else sorted(file.name for file in target.iterdir() if not file.name.startswith("."))
        if foreign := [name for name in found if (target / name).exists()]:
            hint = ", or add --force to write beside them" if beside is False else ""
            raise error(
                f"{path}: holds {', '.join(foreign[:3])}, but no {marks[0]}, so no earlier command of this kind has "
                f"written it. Expected a new or an empty folder: give another one{hint}."
            )
    elif not force:
        raise error(f"{path}: exists. Give another {kind}, or add --force (force=True, replace=True) to replace it.")


def _refuse_inputs(
    path: Name, target: Path, written: Sequence[Path], inputs: Iterable[Name], error: type[ElmoError]
) -> None:
    """Raise `error` if one of the inputs is, or has, a file that would be written, or would have it the next time."""
    present = {(status.st_dev, status.st_ino): file for file in written if file.exists() for status in [file.stat()]}
    folders = [file for file in present.values() if file.is_dir()]
    kind = "file" if written == [target] else "folder"
    for name in inputs:
        refuse_name(name, error)
        source = expanded(name)
        root, is_pattern = real(name), _is_pattern(name)
        same = root in written or any(root.is_relative_to(folder) for folder in folders)
        if os.fspath(name) == "-":
            with suppress(OSError):  # it is closed
                status = os.fstat(0)
                same = (status.st_dev, status.st_ino) in present
        if present and not same:
            with suppress(CorpusError):  # the reader tells it
                for file in find_files(source):
                    status = file.stat()
                    same |= (status.st_dev, status.st_ino) in present
                    same |= any(real(file).is_relative_to(folder) for folder in folders)
        if same:
            raise error(
                f"{path}: the {kind} to read and the {kind} to write are the same. Expected another {kind} for the "
                f"output: change its name. The input is {name}."
            )
        if any(_would_match(file, source) for file in written) if is_pattern else target.is_relative_to(root):
            raise error(
                f"{path}: the output is inside {name}, which is read. Expected a place outside: give another path."
            )


def _is_pattern(name: Name) -> bool:
    return glob.has_magic(os.fspath(name)) and not os.path.exists(expanded(name))


def _would_match(path: Path, pattern: Path) -> bool:
    """Whether a pattern would match a real path if there were such a file."""
    parts = pattern.absolute().parts
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root, above, name = real(Path(*parts[:first])), parts[first:-1], parts[-1]
    if not fnmatchcase(path.name, name):
        return False
    if path.parent.is_dir():
        folders = root.glob(os.path.join(*above)) if above else [root]
        return any(folder.is_dir() and folder.samefile(path.parent) for folder in folders)
    return (
        path.is_relative_to(root) if "**" in above else path.match(os.path.join(glob.escape(str(root)), *above, name))
    )
