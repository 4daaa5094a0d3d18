"""Reads the sentences of plain and compressed text, of JSON lines and of spaCy's DocBins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from spacy.tokens import Doc

from ..errors import CorpusError
from ..formats.text import (
    EXPECTED,
    BadLine,
    Splitter,
    Unusable,
    checked_words,
    decode_line,
    docs_in,
    find_files,
    json_record,
    layout_of,
    lines_of,
    record_sentences,
    record_text,
    sentences_of,
    splitter,
    unpacked,
    warn_of_fields,
)


@dataclass
class Report:
    """Counts of what was read so far. lines: in .spacy files docs; bad: the first ten that can't be used."""

    lines: int = 0
    sentences: int = 0
    tokens: int = 0
    blank: int = 0
    n_bad: int = 0
    bad: list[BadLine] = field(default_factory=list)
    place = ("", 0)  # file and line of the sentence that was read last; no field, since the report is written to files


def read_sentences(
    source: str | os.PathLike[str], language: str | None = None, report: Report | None = None
) -> Iterator[list[str]]:
    """Yield the words of each sentence of a text (docs/pretraining.md, "The text"), while it is read.

    source: a file, a folder or a pattern; see `find_files`.
    language: of the spaCy tokenizer that splits text; None: text is split at blanks, as str.split does.
    report: its counts are raised. Lines that can't be used are left out, and counted there.

    Raises CorpusError at once if the source has no files or the language is unknown; while it yields if a file is
    damaged; and at the end if there was no sentence.
    """
    return read_files(source, find_files(source), splitter(language), report or Report())


def read_files(
    source: str | os.PathLike[str], files: list[Path], split: Splitter, report: Report
) -> Iterator[list[str]]:
    """Yield what `read_sentences` does, of the files of a source."""
    return _counted(source, (sentence for path in files for sentence in _file(path, split, report)), report)


def read_stream(
    file: IO[bytes], name: str, language: str | None = None, report: Report | None = None
) -> Iterator[list[str]]:
    """Yield the words of an open text, one sentence a line, neither packed nor JSON."""
    report, parse = report or Report(), partial(_line, Path(name), False, splitter(language))
    return _counted(name, _usable(name, lines_of(file), parse, report), report)


def _counted(source: str | os.PathLike[str], sentences: Iterator[list[str]], report: Report) -> Iterator[list[str]]:
    before = report.sentences
    for sentence in sentences:
        report.sentences += 1
        report.tokens += len(sentence)
        yield sentence
    if report.sentences == before:
        example = f" ({report.bad[0]})" if report.bad else ""
        raise CorpusError(
            f"{source}: no sentence that can be read; {report.lines:,} lines, {report.blank:,} of them blank, "
            f"{report.n_bad:,} bad{example}. Expected {EXPECTED}."
        )


def _file(path: Path, split: Splitter, report: Report) -> Iterator[list[str]]:
    kind = layout_of(path)
    if kind == "conllu":
        raise CorpusError(
            f"{path}: a table of annotated words. Expected text: unpack it if it is packed, convert it to .spacy with "
            f"python -m spacy convert {path} . --converter conllu, and give the file that this writes."
        )
    if kind == "doc":
        yield from _usable(path, docs_in(path), _doc, report)
        return
    with unpacked(path) as file:
        yield from _usable(path, lines_of(file), partial(_line, path, kind == "json", split), report)


def _usable(
    name: Path | str, items: Iterable[Any], parse: Callable[[Any, int], list[list[str]]], report: Report
) -> Iterator[list[str]]:
    for number, item in enumerate(items, 1):
        report.lines += 1
        try:
            sentences = parse(item, number)
        except Unusable as error:
            report.n_bad += 1
            if len(report.bad) < 10:
                report.bad.append(BadLine(str(name), number, str(error)))
            continue
        report.place = (str(name), number)
        yield from filter(None, sentences)
        report.blank += not any(sentences)


def _line(path: Path, is_json: bool, split: Splitter, line: bytes | None, number: int) -> list[list[str]]:
    text = decode_line(line, number)
    if is_json and text.strip():
        record = json_record(text)
        divided = record_sentences(record)
        return [split(record_text(record))] if divided is None else [words for words, _ in divided]
    if number == 1 and not is_json:
        warn_of_fields(path, text)
    return [split(text)]


def _doc(doc: Doc, number: int) -> list[list[str]]:
    return [checked_words([token.text for token in span if token.text]) for span in sentences_of(doc)]


MOST_WORDS = 60_000  # distinct words that are counted, more than most vocabularies have
_UNSPACED = 4.0  # tokens of a blank-separated word, from which on blanks do not separate words: English has 1.2
_SAMPLED = 1_000  # sentences that are tokenised, to know how many tokens a blank-separated word makes


class TextSize(NamedTuple):
    """How large a text is, or the part of it that was counted.

    words, repeated: distinct words, MOST_WORDS at most, and those that occur twice or more often.
    """

    sentences: int
    tokens: int
    complete: bool = True
    words: int = MOST_WORDS
    repeated: int = MOST_WORDS


def heldout_sentences(sentences: int, share: float) -> int:
    """Return how many sentences are held out: a share of them, rounded, but 1 at least and not all."""
    return min(max(1, round(sentences * share)), sentences - 1)


def count_text(
    source: str, language: str | None, enough: int, least: int = 0, report: Report | None = None
) -> TextSize:
    """Count the sentences and tokens of a text until there are `enough` tokens and `least` sentences.

    Words are counted at blanks: spaCy's tokenizer is much slower, and 1,000 sentences tell how many tokens it makes.
    report: its counts are raised, as by `read_sentences`.
    """
    ratio = 1.0 if language is None else _n_words(source, language) / _n_words(source, None)
    sentences = words = 0
    complete, distinct, repeated = True, set[str](), set[str]()

    def add(sentence: list[str]) -> None:
        for word in sentence:
            (repeated if word in distinct else distinct).add(word)

    for sentence in read_sentences(source, report=report):
        if words * ratio >= enough and sentences >= least:
            complete = False
            break
        sentences += 1
        words += len(sentence)
        if ratio < _UNSPACED and len(distinct) < MOST_WORDS:
            add(sentence)
    if ratio >= _UNSPACED:
        for sentence in islice(read_sentences(source, language), sentences):
            add(sentence)
            if len(distinct) >= MOST_WORDS:
                break
    numbers = (min(len(found), MOST_WORDS) for found in (distinct, repeated))
    return TextSize(sentences, round(words * ratio), complete, *numbers)


def _n_words(source: str, language: str | None) -> int:
    return sum(map(len, islice(read_sentences(source, language), _SAMPLED)))
