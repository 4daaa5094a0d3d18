"""Text files with one sentence per line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import IO

from ..errors import CommandError, Errors
from .vectors import key_problem

_LISTED = 10  # numbers in a message


def read_lines(file: IO[str], source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text, each with its number, without the whitespace at its ends.

    file: open for reading text.
    source: the file's name in messages.

    Yields (number, line); numbers start at 1.
    Raises CommandError if a line is not text in the file's encoding (the message names the line), if the file was
    opened for bytes, or if reading fails.
    """
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if not isinstance(line, str):
                raise CommandError(Errors.EMBED_BYTES.format(source=source))
            yield number, line.strip()
    except UnicodeDecodeError as error:
        # Python decodes text in blocks. The bad block starts in the line after the one that was yielded last.
        before = error.object[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        message = Errors.EMBED_ENCODING.format(
            source=source, line=number + 1 + before, encoding=error.encoding.upper(), reason=error.reason
        )
        raise CommandError(message) from error
    except OSError as error:
        raise CommandError(Errors.EMBED_UNREADABLE.format(source=source, reason=error)) from error


def read_sentences(file: IO[str], source: str, *, keys: bool = False) -> list[str]:
    """Return all lines of a text, without the whitespace at their ends.

    file: open for reading text.
    source: the file's name in messages.
    keys: whether each line must be usable as the name of an HDF5 dataset.

    Raises CommandError as read_lines does, and for empty lines. With `keys` also for a line that can't be a dataset's
    name, and for a line that occurs twice.
    """
    lines = [line for _, line in read_lines(file, source)]
    empty = [number for number, line in enumerate(lines, 1) if not line]
    if empty:
        raise CommandError(Errors.EMBED_EMPTY_LINES.format(source=source, lines=listed(empty)))
    if keys:
        _check_keys(lines, source)
    return lines


def refuse_same_file(file: IO[str], path: str | os.PathLike[str]) -> None:
    """Raise CommandError if an open text and the file to write are the same: the output would replace the text.

    file: the text. It is accepted if it is not a file of the operating system, as a StringIO is not.
    path: of the file to write. It may be missing.
    """
    try:
        same = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except (AttributeError, OSError, ValueError):  # no file, or nothing at the path
        return
    if same:
        raise CommandError(Errors.EMBED_SAME.format(path=path))


def listed(numbers: Sequence[int]) -> str:
    """Return the first ten numbers as text, and how many more there are."""
    text = ", ".join(map(str, numbers[:_LISTED]))
    return f"{text} and {len(numbers) - _LISTED:,} more" if len(numbers) > _LISTED else text


def _check_keys(lines: Sequence[str], source: str) -> None:
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        problem = key_problem(line)
        if problem is not None:
            raise CommandError(Errors.EMBED_KEY.format(source=source, line=number, reason=problem))
        first = seen.setdefault(line, number)
        if first != number:
            raise CommandError(Errors.EMBED_KEY_TWICE.format(source=source, first=first, line=number))
