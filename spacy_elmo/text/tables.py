"""Tables and annotated words: CSV, TSV, and the columns of CoNLL, IOB and WebAnno."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, pairwise

from ..errors import CorpusError, shown
from .files import LONGEST_LINE
from .words import Unusable, decode_line

Part = tuple[int, bytes | None, str]  # the number of its first line, what it says, and why it can't be used


def table_rows(lines: Iterable[bytes | None], name: str, suffix: str, column: str) -> Iterator[Part]:
    """Yield the rows of a table with named columns, as the JSON of a text and of an object with all other columns.

    .csv is read as RFC 4180 says: quotations may have separators and line breaks. Its separator is a comma, or a
    semicolon or a tab if only that gives the column. .tsv has no quotations and no other separator than the tab.

    suffix: the end of the file's name; what is neither .csv nor .tsv is .tsv if the column stands between tabs.
    Raises CorpusError if there is no such column, or more than one.
    """
    lines = iter(lines)
    start = next(lines, b"")
    is_tsv, separator = suffix in (".tsv", ".tab"), ","
    try:
        first = decode_line(start, 1)
        is_tsv = is_tsv or (suffix != ".csv" and column in first.rstrip("\r\n").split("\t"))
        separator = max(",;\t", key=first.count)
        separator = next((each for each in ",;\t" if column in _fields(first, each, _no_more)), separator)
    except Unusable:  # a line that ends within a quotation
        pass
    records = _records(chain([start], lines), "\t" if is_tsv else separator, quotes=not is_tsv)
    _, header = next(records)
    if isinstance(header, Unusable) or header.count(column) != 1:
        problem = f"its first line has {header}"
        if not isinstance(header, Unusable):
            problem = f"its columns are {', '.join(header) or 'none'}"
        raise CorpusError(
            f"{name}: {problem}. Expected {shown(column)} among its columns, once: name another one with --text-column "
            "(text_column)."
        )
    n_before = Counter[str]()
    names = []
    for each in header:  # as pandas names columns that are there twice
        names.append(f"{each}.{n_before[each]}" if n_before[each] else each)
        n_before[each] += 1
    for number, fields in records:
        if isinstance(fields, Unusable):
            yield number, None, str(fields)
        elif len(fields) == 1 and not fields[0].strip():
            yield number, b"", ""
        elif len(fields) != len(names):
            yield number, None, f"{len(fields)} fields. Expected {len(names)}, as in the first line"
        else:
            values = dict(zip(names, fields))
            yield number, json.dumps([values.pop(column), values]).encode(), ""


def _no_more() -> str:
    raise Unusable("a quotation mark that is never closed")


def _records(lines: Iterator[bytes | None], separator: str, quotes: bool) -> Iterator[tuple[int, list[str] | Unusable]]:
    """Yield the number of the first line of each record, and its fields. After a bad one the next line is read."""
    numbered, again = enumerate(lines, 1), deque[tuple[int, bytes | None]]()
    used: list[tuple[int, bytes | None]] = []
    n_bytes = 0

    def more() -> str:
        nonlocal n_bytes
        line = again.popleft() if again else next(numbered, None)
        if line is None:
            return _no_more()
        used.append(line)
        n_bytes += len(line[1] or b"")
        if n_bytes > LONGEST_LINE:
            raise Unusable(f"a quotation of more than {LONGEST_LINE:,} bytes")
        return decode_line(line[1], line[0])

    while (line := again.popleft() if again else next(numbered, None)) is not None:
        used, n_bytes = [line], len(line[1] or b"")
        try:
            text = decode_line(line[1], line[0])
            yield line[0], _fields(text, separator, more) if quotes else text.rstrip("\r\n").split(separator)
        except Unusable as error:
            again.extendleft(reversed(used[1:]))
            yield line[0], error


def _fields(line: str, separator: str, more: Callable[[], str]) -> list[str]:
    """Return the fields of a record. more: returns the next line, for a quotation that goes on. Raises Unusable."""
    fields: list[str] = []
    at = 0
    while True:
        if line.startswith('"', at):
            parts, at = list[str](), at + 1
            while True:
                close = line.find('"', at)
                if close < 0:
                    parts.append(line[at:])
                    line, at = more(), 0
                    continue
                parts.append(line[at:close])
                at = close + 1
                if not line.startswith('"', at):
                    break
                parts.append('"')
                at += 1
            fields.append("".join(parts))
            if line[at : at + 1] in ("", "\r", "\n"):
                return fields
            if line[at] != separator:
                raise Unusable(f"text after a closing quotation mark: {shown(line[at : at + 20])}")
            at += 1
        else:
            end = line.find(separator, at)
            if end < 0:
                return [*fields, line[at:].rstrip("\r\n")]
            fields.append(line[at:end])
            at = end + 1


def blocks_of(lines: Iterable[bytes | None]) -> Iterator[tuple[int, list[bytes | None]]]:
    """Yield the number of the first line and the lines of each sentence: blank lines are between them."""
    block: list[bytes | None] = []
    number = 0
    for number, line in enumerate(chain(lines, [b""]), 1):
        if line is None or line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


_HEAD_LINES = 200  # which tell where the words stand
_DOCSTART = "-DOCSTART-"


def column_words(lines: Iterable[bytes | None]) -> Iterator[Part]:
    """Yield the words of each sentence of a file with a word a line, and its annotations in other columns, as JSON.

    The words are in the first column; in the second if the first one counts them (CoNLL-X); in the third of WebAnno's
    TSV; in the fourth after "#begin document" (CoNLL-2012). Or a line is a sentence, whose words have tags after "|".
    """
    lines = iter(lines)
    head = list(islice(lines, _HEAD_LINES))
    texts = [(line or b"").decode("utf-8-sig", "replace").strip() for line in head]
    rows = [_columns(line) for line in texts if line and not line.startswith((_DOCSTART, "#begin ", "#end "))]
    usual = Counter(map(len, rows)).most_common(1)[0][0] if rows else 1
    tokens = [row for row in rows if len(row) == usual or not row[0].startswith("#")]
    if tokens and all("|" in piece for row in tokens for piece in " ".join(row).split()):
        yield from _piped(chain(head, lines))
        return
    place, numbered = 0, False
    if texts and texts[0].startswith("#FORMAT=WebAnno"):
        place, numbered = 2, True  # 1-1 and so on; 1-1.1 is a part of a word
    elif any(line.startswith("#begin document") for line in texts):
        place = 3
    elif tokens and usual > 1:
        counts = [int(row[0]) for row in tokens if row[0].isdecimal()]
        # 1, 2, 3 ... in each sentence; a sentence of one word, whose word is "1", is not enough
        steps = [(a, b) for a, b in pairwise(counts) if b != 1]
        numbered = len(counts) > 1 and all(b == a + 1 for a, b in steps) and counts[0] == 1 and bool(steps)
        numbered = numbered and all(re.fullmatch(r"\d+([-.]\d+)?", row[0]) for row in tokens)
        place = int(numbered)
    for first, block in blocks_of(chain(head, lines)):
        words: list[str] = []
        try:
            for number, data in enumerate(block, first):
                line = decode_line(data, number).strip("\r\n")
                row = _columns(line)
                is_comment = line.startswith("#") and (numbered or place > 0 or len(row) != usual)
                if is_comment or line.startswith(_DOCSTART) or (numbered and not re.fullmatch(r"\d+(-\d+)?", row[0])):
                    continue
                if len(row) <= place:
                    raise Unusable(f"line {number} has {len(row)} columns. Expected the word in column {place + 1}")
                words.append(row[place])
        except Unusable as error:
            yield first, None, str(error)
        else:
            yield first, json.dumps(words).encode(), ""


def _columns(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def _piped(lines: Iterable[bytes | None]) -> Iterator[Part]:
    for number, data in enumerate(lines, 1):
        try:
            words = [piece.partition("|")[0] or "|" for piece in decode_line(data, number).split()]
            yield number, json.dumps(words).encode(), ""
        except Unusable as error:
            yield number, None, str(error)
