"""Text files with one sentence per line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import IO

from ..errors import EMBED_SAME, CommandError
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
                raise CommandError(f"{source}: opened as bytes. Expected text: open it without the b in its mode.")
            yield number, line.strip()
    except UnicodeDecodeError as error:
        # Python decodes text in blocks. The bad block starts in the line after the one that was yielded last.
        before = error.object[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        message = (
            f"{source}: line {number + 1 + before} is not {error.encoding.upper()} ({error.reason}). Expected "
            f"text in {error.encoding.upper()} throughout: convert the file, for example with iconv, or correct "
            "that line."
        )
        raise CommandError(message) from error
    except OSError as error:
        raise CommandError(f"{source}: can't be read ({error}). Expected text, one sentence a line.") from error


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
        raise CommandError(
            f"{source}: these lines are empty: {listed(empty)}. Expected a sentence in every line: remove the "
            "empty ones. Or let python -m spacy elmo embed leave them out: give --lang CODE, whose tokenizer "
            "then splits the text (a warning tells how many there were), or write another file than HDF5, such "
            "as a .spacy file."
        )
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
        raise CommandError(EMBED_SAME.format(path=path))


def listed(numbers: Sequence[int]) -> str:
    """Return the first ten numbers as text, and how many more there are."""
    text = ", ".join(map(str, numbers[:_LISTED]))
    return f"{text} and {len(numbers) - _LISTED:,} more" if len(numbers) > _LISTED else text


def _check_keys(lines: Sequence[str], source: str) -> None:
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        problem = key_problem(line)
        if problem is not None:
            raise CommandError(
                f"{source}: line {number} can't be the key of its vectors: {problem}. Leave out "
                "--use-sentence-keys (use_sentence_keys), or change the line."
            )
        first = seen.setdefault(line, number)
        if first != number:
            raise CommandError(
                f"{source}: the lines {first} and {number} are the same sentence. Expected each sentence once, "
                "because it is used as a key: leave out --use-sentence-keys (use_sentence_keys), or remove one "
                "of the lines."
            )
