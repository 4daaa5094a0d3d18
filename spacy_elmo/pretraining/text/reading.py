"""Reads the sentences of plain and compressed text, of JSON lines and of spaCy's DocBins."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc

from ...errors import CorpusError, Errors
from ...formats.unpacking import LONGEST_LINE, PACKED, lines_of, unpacked
from .docbin import TooLargeError, read_docs
from .sources import EXPECTED, find_files
from .splitting import Splitter, Unusable, splitter

_LISTED = 10  # bad lines of a report
# A DocBin may unpack to this many bytes, or to this multiple of its file's size if that is more. Docs without
# annotations pack to a twentieth of their size (measured).
_DOCS_BYTES, _DOCS_TIMES = 1 << 28, 64


class BadLine(NamedTuple):
    """A line that was left out.

    file: its path.
    line: its number, from 1; in a .spacy file the number of the doc.
    reason: why it can't be used.
    """

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line:,}: {self.reason}"


@dataclass
class Report:
    """Counts of what was read so far.

    lines: lines; in .spacy files docs.
    sentences: sentences that were read.
    tokens: their words.
    blank: lines without a word.
    n_bad: lines that were left out, because they can't be used.
    bad: the first ten of these.
    """

    lines: int = 0
    sentences: int = 0
    tokens: int = 0
    blank: int = 0
    n_bad: int = 0
    bad: list[BadLine] = field(default_factory=list)

    def add_bad(self, file: Path, line: int, reason: str) -> None:
        """Count a line that can't be used.

        file: its path.
        line: its number, from 1.
        reason: why it can't be used.
        """
        self.n_bad += 1
        if len(self.bad) < _LISTED:
            self.bad.append(BadLine(str(file), line, reason))


def read_sentences(
    source: str | os.PathLike[str], language: str | None = None, report: Report | None = None
) -> Iterator[list[str]]:
    """Yield the words of each sentence of a text.

    The end of a file's name tells its format, after .gz, .xz or .zst is removed:

    - .jsonl: an object a line, with "tokens" (a list of strings) or otherwise "text" (a string);
    - .spacy: a DocBin. Its sentences are those of the docs; a doc without sentence boundaries is one sentence;
    - any other: text, one sentence a line. Only newlines end a line.

    Files are read while the sentences are consumed. Only a DocBin is ever completely in memory. It may unpack to
    256 MiB, or to 64 times its size if that is more. Any other packed file may unpack to 1 GiB, or to 200 times its
    size if that is more. A plain file has no limit. Lines of more than 16 MiB are left out.

    source: a file, a folder or a pattern; see `find_files`.
    language: of the spaCy tokenizer that splits text; None: text is split at blanks, as str.split does.
    report: its counts are raised while the text is read. Lines that can't be used are left out, and counted there.

    Raises CorpusError at once if the source has no files or the language is unknown; while it yields if a file is
    damaged; and at the end if there was no sentence.
    """
    return read_files(source, find_files(source), splitter(language), Report() if report is None else report)


def read_files(
    source: str | os.PathLike[str], files: list[Path], split: Splitter, report: Report
) -> Iterator[list[str]]:
    """Yield the words of each sentence of some files, as `read_sentences` does.

    source: what the user wrote, for messages.
    files: the files to read, in this order.
    split: splits a text into words; see `splitter`.
    report: its counts are raised while the text is read.

    Raises CorpusError if a file is damaged, and at the end if there was no sentence.
    """
    before = report.sentences
    for path in files:
        kind = Path(path.stem).suffix if path.suffix in PACKED else path.suffix
        for sentence in _docs(path, report) if kind == ".spacy" else _lines(path, kind == ".jsonl", split, report):
            report.sentences += 1
            report.tokens += len(sentence)
            yield sentence
    if report.sentences == before:
        examples = "".join(f"; {line}" for line in report.bad[:1])
        message = Errors.SOURCE_NO_SENTENCES.format(
            source=source,
            lines=report.lines,
            blank=report.blank,
            bad=report.n_bad,
            examples=f" ({examples.removeprefix('; ')})" if examples else "",
            expected=EXPECTED,
        )
        raise CorpusError(message)


def _lines(path: Path, is_json: bool, split: Splitter, report: Report) -> Iterator[list[str]]:
    with unpacked(path) as file:
        for number, line in enumerate(lines_of(file), 1):
            report.lines += 1
            try:
                text = _text(line)
                if number == 1:
                    text = text.removeprefix("\ufeff")  # a byte order mark
                words = _json_words(text, split) if is_json and text.strip() else split(text)
            except Unusable as error:
                report.add_bad(path, number, str(error))
                continue
            if words:
                yield words
            else:
                report.blank += 1


def _text(line: bytes | None) -> str:
    if line is None:
        raise Unusable(f"more than {LONGEST_LINE:,} bytes")
    try:
        return _usable(line.decode("utf8"))
    except UnicodeDecodeError as error:
        raise Unusable(f"not UTF-8 ({error.reason} at byte {error.start:,})") from error


def _usable(text: str) -> str:
    if "\0" in text:
        raise Unusable("a NUL character")
    return text


def _json_words(line: str, split: Splitter) -> list[str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON ({error})") from error
    if not isinstance(record, dict) or not ("tokens" in record or "text" in record):
        raise Unusable('no JSON object with "text" or "tokens"')
    if "tokens" in record:
        words = record["tokens"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise Unusable('"tokens" is no list of strings')
        return _checked(words)
    text = record["text"]
    if not isinstance(text, str):
        raise Unusable('"text" is no string')
    return split(_encodable(_usable(text)))


def _checked(words: list[str]) -> list[str]:
    """Return words that the file itself lists, checked. Raises Unusable."""
    for word in words:
        if word.split() != [word]:
            raise Unusable("an empty token, or one with blanks")
    _encodable(_usable(" ".join(words)))
    return words


def _encodable(text: str) -> str:
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise Unusable("half a surrogate pair, which is no character") from error
    return text


def _docs(path: Path, report: Report) -> Iterator[list[str]]:
    with unpacked(path) as file:
        limit = max(_DOCS_BYTES, _DOCS_TIMES * path.stat().st_size)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise CorpusError(Errors.SOURCE_DOCS.format(path=path, limit=limit))
    for number, doc in enumerate(_unbinned(path, data, limit), 1):
        report.lines += 1
        spans = doc.sents if doc.has_annotation("SENT_START") else [doc[:]]
        empty = True
        for span in spans:
            words = [token.text for token in span if token.text and not token.text.isspace()]
            try:
                words = _checked(words)
            except Unusable as error:
                empty = False
                report.add_bad(path, number, str(error))
                continue
            if words:
                empty = False
                yield words
        report.blank += empty


def _unbinned(path: Path, data: bytes, limit: int) -> Iterator[Doc]:
    try:
        yield from read_docs(data, limit)
    except TooLargeError as error:
        raise CorpusError(Errors.SOURCE_DOCS.format(path=path, limit=limit)) from error
    except Exception as error:  # a damaged file fails anywhere in zlib, msgpack, numpy or spaCy
        reason = error if str(error) else type(error).__name__
        raise CorpusError(Errors.SOURCE_DAMAGED.format(path=path, reason=reason)) from error
