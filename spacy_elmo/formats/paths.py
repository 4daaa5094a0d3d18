"""What users give as paths: files, folders, patterns, and what is none."""

import errno
import glob
import hashlib
import os
import re
from pathlib import Path

from ..errors import FILE_MISSING, FILE_NOT_REGULAR, CorpusError, ElmoError, shown

Name = str | os.PathLike[str]

# two letters or more, since one letter is a drive of Windows
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path of the user, whose ~ at its begin is the home folder."""
    return Path(os.path.expanduser(path))


def name_of(source: str) -> str:
    """Return the last part of a path, which tells nothing about the machine."""
    return Path(source).name or Path(source).resolve().name


def refuse_address(path: str | os.PathLike[str], error: type[ElmoError]) -> None:
    """Raise `error` if a path of the user is an address such as s3://..., has a NUL character, or is no path."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise error(f"{shown(path)} is no path. Expected text or a pathlib.Path: make bytes text with os.fsdecode.")
    if "\0" in os.fspath(path):
        raise error(f"{shown(os.fspath(path))} has a NUL character, which no path can have. Remove the character.")
    if _SCHEME.match(os.fspath(path)):
        raise error(
            f"{path}: an address on the network. Expected a file: this package downloads nothing by itself. "
            f"Download it first with python -m spacy elmo download {path} --sha256 HEX, and give the path of the "
            "file."
        )


def refuse_name(path: Name, error: type[ElmoError]) -> None:
    """Raise `error` if nothing can have this path: for a NUL character, half a surrogate pair, or its length."""
    try:
        os.lstat(expanded(path))
    except (OSError, ValueError) as exc:
        if isinstance(exc, ValueError) or exc.errno == errno.ENAMETOOLONG:
            reason = exc.strerror if isinstance(exc, OSError) else exc
            raise error(
                f"{shown(os.fspath(path))} can't be the name of a file ({reason}). Expected a name that the file "
                "system can have: change it."
            ) from exc


def existing_file(path: str | os.PathLike[str], expected: str, error: type[ElmoError]) -> Path:
    """Return the path of a regular file. Raises `error` as `refuse_address` does, and if there is no such file."""
    refuse_address(path, error)
    path = expanded(path)
    if not os.path.exists(path):  # also False if the name is too long
        raise error(FILE_MISSING.format(path=path, expected=expected))
    if not os.path.isfile(path):
        raise error(FILE_NOT_REGULAR.format(path=path, expected=expected))
    return path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits in lower case."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


EXPECTED = (
    "text, .jsonl, .csv, .tsv, .conllu or .spacy files (plain, .gz, .bz2, .xz or .zst): one, a folder or a pattern; or "
    "- for standard input"
)


def find_files(source: Name, output: Name | None = None) -> list[Path]:
    """Return the files of a source, sorted: a file, a folder (all in it and in its folders), or a pattern.

    A name that exists is no pattern. In folders and patterns, names that begin with a dot are left out, links to
    folders, and the folder `output`.
    """
    path, files = expanded(source), list[Path]()
    problem = "no such file or folder, and no pattern that matches a file"
    if not os.fspath(source):  # Path("") is the current folder
        raise CorpusError(f'"": {problem}. Expected {EXPECTED}.')
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            problem = "a folder without files that can be read"
            files = [Path(folder, name) for folder, _, names in os.walk(path, onerror=_raise) for name in names]
        elif path.exists():
            problem = "neither a file nor a folder"
        elif glob.has_magic(str(path)):  # glob.glob would follow links to folders, even in circles
            files = list(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
        hidden = _n_hidden(path)  # dots that the user wrote
        visible = sorted(file for file in files if _n_hidden(file) == hidden and file.is_file())
        if output is not None:
            excluded = expanded(output).resolve()
            visible = [file for file in visible if not file.resolve().is_relative_to(excluded)]
    except (OSError, ValueError) as error:  # unreadable, too long, with NUL or half a surrogate pair, or such as a**
        path_shown = shown(os.fspath(source))
        raise CorpusError(f"{path_shown}: no files can be found there ({error}). Expected {EXPECTED}.") from error
    if not visible:
        raise CorpusError(f"{path}: {problem}. Expected {EXPECTED}.")
    return visible


def _raise(error: OSError) -> None:
    raise error


def _n_hidden(path: Path) -> int:
    return sum(part.startswith(".") for part in path.parts)
