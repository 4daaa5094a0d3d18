"""The files of a vocabulary: a text with a word a line, and an array of counts beside it."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError, Errors, shown
from ...formats.atomic import replacing, writing
from ...formats.strict.npy import read_npy
from ...formats.unpacking import lines_of

START, END, UNKNOWN = 0, 1, 2  # ids of the special words
SPECIAL = ("<S>", "</S>", "<UNK>")

Counts = npt.NDArray[np.int64]


def counts_path(path: Path) -> Path:
    """Return the path of the counts of a vocabulary: vocabulary.counts.npy for vocabulary.txt."""
    return path.with_name(f"{path.name.removesuffix('.txt')}.counts.npy")


def read_words(path: Path) -> list[str]:
    """Return the words of a vocabulary file. Raises CorpusError, which names the line, as `Vocabulary.read` does."""
    words: dict[str, int] = {}
    expected = "a vocabulary, one word a line"
    _check_regular(path, expected)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(lines_of(file), 1):
                word = _word(path, number, line)
                if number <= len(SPECIAL) and word != SPECIAL[number - 1]:
                    _refuse_first(path, number, word)
                if word in words:
                    _refuse(path, number, f"{shown(word)} comes twice, in line {words[word]} as well")
                words[word] = number
    except OSError as error:
        raise CorpusError(Errors.FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
    if len(words) < len(SPECIAL):
        _refuse_first(path, len(words) + 1, None)
    return list(words)


def _word(path: Path, number: int, line: bytes | None) -> str:
    if line is None:
        _refuse(path, number, "it is far too long for a word")
    try:
        word = line.decode("utf8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        _refuse(path, number, f"it is not UTF-8 ({error.reason})")
    if number == 1:
        word = word.removeprefix("\ufeff")  # a byte order mark
    if not word:
        _refuse(path, number, "it is empty")
    if word.split() != [word]:
        _refuse(path, number, f"{shown(word)} has blanks")
    return word


def read_counts(path: Path, n_words: int) -> Counts | None:
    """Read the counts of a vocabulary.

    path: of the vocabulary, not of the counts.
    n_words: number of its words.

    Returns *Shape:* (n_words,); None if there is no file of counts.
    Raises CorpusError if the file does not hold `n_words` counts.
    """
    file = counts_path(path)
    if not file.exists():
        return None
    _check_regular(file, "the counts of a vocabulary")
    try:
        counts = np.array(read_npy(file, np.int64))
    except (OSError, ValueError) as error:
        raise CorpusError(Errors.VOCABULARY_COUNTS.format(source=file, reason=error, n=n_words)) from error
    check_counts(str(file), counts, n_words)
    return counts


def check_counts(source: str, counts: object, n_words: int) -> None:
    """Raise CorpusError if counts are not an int64 array of shape (n_words,) without negative numbers.

    source: where the counts come from, for messages.
    counts: what to check.
    n_words: number of words of the vocabulary.
    """
    if not isinstance(counts, np.ndarray):
        reason = f"a {type(counts).__name__}"
    elif counts.dtype != np.int64 or counts.shape != (n_words,):
        reason = f"{counts.dtype} of shape {counts.shape}"
    elif (counts < 0).any():
        reason = f"{counts.min()} is among them"
    else:
        return
    raise CorpusError(Errors.VOCABULARY_COUNTS.format(source=source, reason=reason, n=n_words))


def write_files(path: Path, words: list[str], counts: Counts | None) -> None:
    """Write both files of a vocabulary, each atomically.

    If the process is killed in between, the vocabulary has no counts; it never has those of another one.

    path: of the vocabulary.
    words: all words, special words included.
    counts: *Shape:* (words,); None: no file of counts is written, and an earlier one is deleted.

    Raises CorpusError if a file can't be written.
    """
    counts_file = counts_path(path)
    with replacing(path, CorpusError) as temporary, writing(path, CorpusError):
        temporary.write_text("".join(f"{word}\n" for word in words), encoding="utf8", newline="\n")
        counts_file.unlink(missing_ok=True)
    if counts is not None:
        with (
            replacing(counts_file, CorpusError) as temporary,
            writing(counts_file, CorpusError),
            temporary.open("wb") as file,
        ):
            np.save(file, counts, allow_pickle=False)


def _check_regular(path: Path, expected: str) -> None:
    if path.exists() and not path.is_file():  # reading a pipe could wait forever
        raise CorpusError(Errors.FILE_NOT_REGULAR.format(path=path, expected=expected))


def _refuse(path: Path, number: int, problem: str) -> NoReturn:
    raise CorpusError(Errors.VOCABULARY_LINE.format(source=path, line=number, problem=problem))


def _refuse_first(path: Path, number: int, word: str | None) -> NoReturn:
    got = "missing" if word is None else shown(word)
    expected, special = SPECIAL[number - 1], ", ".join(SPECIAL)
    message = Errors.VOCABULARY_SPECIAL.format(source=path, line=number, got=got, expected=expected, special=special)
    raise CorpusError(message)
