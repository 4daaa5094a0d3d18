"""Text with one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from ..errors import CommandError, Errors
from .hdf5_vectors import key_problem

_LISTED = 10


def read_lines(file: IO[str], source: str) -> Iterator[tuple[int, str]]:
    """Lines one by one, each with its number, from 1 on, and without the blanks at its ends.

    source: the file's name in messages. Raises CommandError, which names the line, for what is no text in the file's
    encoding, for a file that was opened as bytes, and where reading fails.
    """
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if not isinstance(line, str):
                raise CommandError(Errors.EMBED_BYTES.format(source=source))
            yield number, line.strip()
    except UnicodeDecodeError as error:
        # text is decoded block by block: the block begins in the line after those that were given out
        before = error.object[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        message = Errors.EMBED_ENCODING.format(
            source=source, line=number + 1 + before, encoding=error.encoding.upper(), reason=error.reason
        )
        raise CommandError(message) from error
    except OSError as error:
        raise CommandError(Errors.EMBED_UNREADABLE.format(source=source, reason=error)) from error


def read_sentences(file: IO[str], source: str, *, keys: bool = False) -> list[str]:
    """All lines of a text, without the blanks at their ends.

    keys: whether each is to be the key of an HDF5 dataset. Raises CommandError as read_lines does, and for empty
    lines; with keys also for a line that can't be a key, and for one that comes twice.
    """
    lines = [line for _, line in read_lines(file, source)]
    empty = [number for number, line in enumerate(lines, 1) if not line]
    if empty:
        raise CommandError(Errors.EMBED_EMPTY_LINES.format(source=source, lines=listed(empty)))
    if keys:
        _check_keys(lines, source)
    return lines


def listed(numbers: Sequence[int]) -> str:
    """The first ten numbers, and how many more there are."""
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
