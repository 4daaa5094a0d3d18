"""Tables and annotated words: CSV, TSV, and the columns of CoNLL, IOB and WebAnno."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
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
    numbered = enumerate(lines, 1)
    number, start = next(((n, line) for n, line in numbered if line is None or line.strip()), (1, b""))
    first = (start or b"").decode("utf-8-sig", "replace")
    is_tsv = suffix in (".tsv", ".tab") or (suffix != ".csv" and column in first.rstrip("\r\n").split("\t"))
    separator = "\t" if is_tsv else max(",;\t", key=first.count)
    for each in "\t;," if not is_tsv else "":  # the comma comes first
        with suppress(csv.Error):  # with another separator there is text after a quotation
            separator = each if column in next(csv.reader([first], delimiter=each, strict=True), []) else separator
    records = _records(chain([(number, start)], numbered), separator, quotes=not is_tsv)
    _, header = next(records)
    if isinstance(header, Unusable) or header.count(column) != 1:
        problem = f"its first line has {header}"
        if not isinstance(header, Unusable):
            problem = f"its columns are {', '.join(header) or 'none'}"
        raise CorpusError(
            f"{name}: {problem}. Expected {shown(column)} among its columns, once: name another one with --text-column "
            "(text_column)."
        )
    names: list[str] = []
    for each in header:  # as pandas names columns that are there twice
        others = (f"{each}.{k}" for k in range(1, len(header) + 1))
        names.append(
            next(name for name in others if name not in names and name not in header) if each in names else each
        )
    for number, fields in records:
        if isinstance(fields, Unusable):
            yield number, None, str(fields)
        elif len(fields) <= 1 and not "".join(fields).strip():
            yield number, b"", ""
        elif len(fields) != len(names):
            yield number, None, f"{len(fields)} fields. Expected {len(names)}, as in the first line"
        else:
            values = dict(zip(names, fields))
            yield number, json.dumps([values.pop(column), values]).encode(), ""


def _records(
    numbered: Iterator[tuple[int, bytes | None]], separator: str, quotes: bool
) -> Iterator[tuple[int, list[str] | Unusable]]:
    """Yield the number of the first line of each record, and its fields.

    After a quotation mark that opens nothing the next line is read; after any other bad record what follows it.
    """
    again = deque[tuple[int, bytes | None]]()
    used: list[tuple[int, bytes | None]] = []

    def texts() -> Iterator[str]:
        n_bytes = 0
        while (line := again.popleft() if again else next(numbered, None)) is not None:
            used.append(line)
            n_bytes += len(line[1] or b"")
            if len(used) > 1 and n_bytes > LONGEST_LINE:
                raise csv.Error(f"a quotation of more than {LONGEST_LINE:,} bytes")
            yield (line[1] or b"").decode("utf8", "surrogateescape").removeprefix("\ufeff" if line[0] == 1 else "")

    # of the whole process, as the module has it; a lower limit that another library has set would stop the reading
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    while True:
        used.clear()
        lines, fields = texts(), None
        problem = ""
        try:
            if quotes:
                fields = next(csv.reader(lines, delimiter=separator, strict=True), None)
            else:
                fields = next((line.rstrip("\r\n").split(separator) for line in lines), None)
        except csv.Error as error:
            problem = str(error)
            if "expected after" in problem:
                problem = "text after a closing quotation mark"
                before = (used[-1][1] or b"").replace(b'""', b"").partition(b'"')[0].decode("utf8", "surrogateescape")
                if before and not before.endswith(separator):  # else the quotation is that of another record
                    del used[1:]
            elif problem.startswith("unexpected end"):
                problem = "a quotation mark that is never closed"
            again.extendleft(reversed(used[1:]))
            del used[1:]
        if not used:
            return
        problem = problem_of([data for _, data in used], used[0][0]) or problem
        yield used[0][0], Unusable(problem) if problem or fields is None else fields


def problem_of(lines: Sequence[bytes | None], first: int) -> str:
    """Return why one of some lines can't be decoded, with its number if it is not the first; "" if all can."""
    for number, line in enumerate(lines, first):
        try:
            decode_line(line, number)
        except Unusable as error:
            return f"line {number:,}: {error}" if number > first else str(error)
    return ""


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


def conllu_blocks(lines: Iterable[bytes | None]) -> Iterator[Part]:
    """Yield all lines of each sentence of a file in CoNLL-U."""
    for number, block in blocks_of(lines):
        problem = problem_of(block, number)
        yield number, None if problem else b"".join(map(bytes, filter(None, block))), problem


_HEAD_LINES = 200  # which tell where the words stand
_DOCSTART = "-DOCSTART-"


def column_words(lines: Iterable[bytes | None]) -> Iterator[Part]:
    """Yield the words of each sentence of a file with a word a line, and its annotations in other columns, as JSON.

    The words are in the first column; in the second if the first one counts them (CoNLL-X); in the third of WebAnno's
    TSV; in the fourth after "#begin document" (CoNLL-2012). Or a line is a sentence, whose words have tags after "|".
    """
    lines = iter(lines)
    head = list(islice(lines, _HEAD_LINES))
    texts = [(line or b"").decode("utf-8-sig", "replace").strip("\r\n") for line in head]
    heads = [line for line in texts if line.strip() and not line.startswith((_DOCSTART, "#begin ", "#end "))]
    plain = [line for line in heads if not line.startswith("#")]
    tabs = 2 * sum("\t" in line for line in plain) > len(plain)
    # a no-break space is in a word
    columns = partial(str.split, sep="\t") if tabs else lambda line: re.split(" +", line.strip(" "))
    usual = Counter(len(columns(line)) for line in heads).most_common(1)[0][0] if heads else 1

    def is_comment(line: str) -> bool:
        named = re.match(r"#\s*(id\s|\w+\s*=)", line)  # such as "# text = ..."
        return line.startswith("#") and bool(named or place > 0 or len(columns(line)) != usual)

    place, number_of, left_out = 0, "", ""  # the patterns of what counts words, and of what is none
    tokens = [columns(line) for line in heads if not is_comment(line)]
    if tokens and all("|" in piece for row in tokens for piece in " ".join(row).split()):
        yield from _piped(chain(head, lines))
        return
    if texts and texts[0].startswith("#FORMAT=WebAnno"):
        place, number_of, left_out = 2, r"\d+-\d+", r"\d+-\d+\.\d+"  # 1-1.1 is a part of a word
    elif any(line.startswith("#begin document") for line in texts):
        place = 3
    elif tokens and usual > 1:
        counts = [int(row[0]) for row in tokens if re.fullmatch(r"\d{1,9}", row[0])]  # int refuses very long ones
        # 1, 2, 3 ... in each sentence, or from 0; a sentence of one word, whose word is "1", is not enough
        steps = [(a, b) for a, b in pairwise(counts) if b not in (counts[0], a + 1)]
        numbered = bool(counts) and counts[0] in (0, 1) and not steps and len(set(counts)) > 1
        if numbered and all(re.fullmatch(r"\d+([-.]\d+)?", row[0]) for row in tokens):
            place, number_of, left_out = 1, r"\d+", r"\d+[-.]\d+"  # 1-2: a form that is two words
    for first, block in blocks_of(chain(head, lines)):
        words: list[str] = []
        problem = problem_of(block, first)
        for number, data in enumerate(block if not problem else (), first):
            line = decode_line(data, number).strip("\r\n")
            row = columns(line)
            if is_comment(line) or line.startswith(_DOCSTART) or (left_out and re.fullmatch(left_out, row[0])):
                continue
            if len(row) <= place or not re.fullmatch(number_of or ".*", row[0]):
                problem = f"line {number:,} has no word in column {place + 1}" + " after its number" * bool(number_of)
                break
            words.append(row[place])
        if words or problem:  # no heading, such as -DOCSTART-
            yield first, None if problem else json.dumps(words).encode(), problem


def _piped(lines: Iterable[bytes | None]) -> Iterator[Part]:
    for number, data in enumerate(lines, 1):
        problem = problem_of([data], number)
        pieces = [] if problem else re.split("[ \t]+", decode_line(data, number).strip(" \t\r\n"))
        words = [piece.partition("|")[0] or "|" for piece in pieces if piece]
        yield number, None if problem else json.dumps(words).encode(), problem
