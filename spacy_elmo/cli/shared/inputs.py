"""Opens the texts that commands read."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ...corpus.reading import STANDARD_INPUT_NAME, standard_input
from ...errors import CommandError, Errors
from ...pretraining.text.reading import Report, read_sentences, read_stream

STANDARD_INPUT = Path(STANDARD_INPUT_NAME)


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a text in UTF-8, with or without a byte order mark.

    path: the file; "-" is standard input, which stays open afterwards.

    Raises CommandError if the file does not exist or can't be opened.
    """
    if path == STANDARD_INPUT:
        text = io.TextIOWrapper(standard_input(), encoding="utf-8-sig")
        try:
            yield text
        finally:
            text.detach()  # otherwise it would close standard input
        return
    expected = "text, one sentence a line"
    if path.is_dir():
        raise CommandError(Errors.FILE_NOT_REGULAR.format(path=path, expected=expected))
    try:
        file = path.open(encoding="utf-8-sig")
    except FileNotFoundError:
        raise CommandError(Errors.FILE_MISSING.format(path=path, expected=expected)) from None
    except OSError as error:
        raise CommandError(Errors.FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
    with file:
        yield file


def sentences_in(path: Path, language: str | None, report: Report) -> Iterator[list[str]]:
    """Yield the words of each sentence of a text: a file, a folder or a pattern as `read_sentences` reads it.

    path: of the text; "-" is standard input, one sentence a line.
    language, report: as in `read_sentences`, which also tells the errors.
    """
    if path == STANDARD_INPUT:
        return read_stream(standard_input(), source_of(path), language, report)
    return read_sentences(path, language, report)


def source_of(path: Path) -> str:
    """Return what messages call a text. path: as in `open_text`."""
    return "standard input" if path == STANDARD_INPUT else str(path)
