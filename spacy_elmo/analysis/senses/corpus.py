"""Reads corpora whose words have senses, and lists of first senses: text files with tabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import CorpusError, Errors, shown
from ...formats.text.lines import Unusable, decode_line
from ...formats.unpacking import lines_of, unpacked

NONE = "-"
_EXPECTED = "a text with tabs"


class Lemma(NamedTuple):
    """What senses are looked up by, as the corpus writes it."""

    lemma: str
    pos: str


class Instance(NamedTuple):
    """A word of a sentence that has a sense.

    start, end: its place: several words make one if they are an expression, such as "natural gas".
    lemma: its lemma and part of speech.
    senses: those that are right, one or more.
    """

    start: int
    end: int
    lemma: Lemma
    senses: tuple[str, ...]


class SenseSentence(NamedTuple):
    """words: of the sentence. instances: those that have senses, in order."""

    words: list[str]
    instances: list[Instance]


def read_senses(path: Path) -> list[SenseSentence]:
    """Read a corpus with senses. Sentences without a sense are left out, because nothing depends on them.

    path: text in UTF-8, perhaps packed as .gz, .xz or .zst. A line is a word (several if it has blanks), its lemma, its
        part of speech and its senses, with tabs between them; several senses have blanks between them, and - stands
        for none. An empty line ends a sentence. Lines that begin with # and have no tab are comments.

    Raises CorpusError if the file can't be read, if a line is something else, or if no word has a sense.
    """
    sentences: list[SenseSentence] = []
    current = SenseSentence([], [])
    for number, line in _lines(path):
        if line:
            _add(current, line, path, number)
            continue
        if current.instances:  # a small packed file may have very many empty lines
            sentences.append(current)
        if current.words:
            current = SenseSentence([], [])
    if current.instances:
        sentences.append(current)
    if not sentences:
        raise CorpusError(Errors.SENSES_NONE.format(source=path))
    return sentences


def read_first_senses(path: Path) -> dict[Lemma, str]:
    """Read the first sense of each lemma, such as WordNet's.

    path: text in UTF-8, perhaps packed as .gz, .xz or .zst. A line is a lemma, its part of speech and its first sense,
        with tabs between them.

    Raises CorpusError if the file can't be read, if a line is something else, if a lemma comes twice, or if
        there is none.
    """
    first: dict[Lemma, str] = {}
    for number, line in _lines(path):
        if not line:
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 3 or not all(columns) or columns[2] == NONE or len(columns[2].split()) > 1:
            raise CorpusError(Errors.FIRST_SENSES_COLUMNS.format(source=path, line=number, got=shown(line)))
        lemma = Lemma(*columns[:2])
        if lemma in first:
            raise CorpusError(Errors.FIRST_SENSES_TWICE.format(source=path, line=number, lemma=lemma[0], pos=lemma[1]))
        first[lemma] = columns[2]
    if not first:
        raise CorpusError(Errors.FIRST_SENSES_EMPTY.format(source=path))
    return first


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the lines of a text, without comments. A blank line is empty."""
    if not path.exists():
        raise CorpusError(Errors.FILE_MISSING.format(path=path, expected=_EXPECTED))
    if path.is_dir():
        raise CorpusError(Errors.FILE_NOT_REGULAR.format(path=path, expected=_EXPECTED))
    with unpacked(path) as file:
        for number, data in enumerate(lines_of(file), 1):
            try:
                line = decode_line(data, number).rstrip("\r\n")
            except Unusable as error:
                raise CorpusError(Errors.SENSES_LINE.format(source=path, line=number, reason=error)) from error
            if not line.startswith("#") or "\t" in line:
                yield number, line if line.strip() else ""


def _add(sentence: SenseSentence, line: str, path: Path, number: int) -> None:
    """Add the word of a line to a sentence. Raises CorpusError if the line has another form."""
    columns = [column.strip() for column in line.split("\t")]
    words = columns[0].split()
    if len(columns) != 4 or not words or not columns[3]:
        raise CorpusError(Errors.SENSES_COLUMNS.format(source=path, line=number, got=shown(line)))
    start = len(sentence.words)
    sentence.words.extend(words)
    if columns[3] == NONE:
        return
    if NONE in columns[3].split():
        raise CorpusError(Errors.SENSES_COLUMNS.format(source=path, line=number, got=shown(line)))
    lemma = Lemma(*columns[1:3])
    if not all(lemma):
        missing = "a part of speech" if lemma.lemma else "a lemma"
        raise CorpusError(Errors.SENSES_LEMMA.format(source=path, line=number, missing=missing))
    sentence.instances.append(Instance(start, len(sentence.words), lemma, tuple(columns[3].split())))
