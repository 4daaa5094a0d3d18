"""The text stream: the items of files, and the documents that are made of them."""

from __future__ import annotations

import json
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import spacy
from spacy.lang.lex_attrs import is_punct
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, DocBin, Span

from ..errors import SOURCE_DAMAGED, CorpusError, PlainTextWarning, StandardInputWarning, shown
from ..formats.paths import EXPECTED, Name
from .files import LONGEST_LINE, STANDARD_INPUT, TextFile, kind_of, lines_of, opened, text_files, unpacked
from .tables import Part, column_words, conllu_blocks, table_rows
from .words import (
    Offsets,
    Tokenize,
    Unusable,
    checked_words,
    decode_line,
    encodable,
    is_missing,
    tokenizer_of,
    without_nul,
)

Kind = Literal["text", "json", "row", "conllu", "words", "doc"]
_KINDS: dict[str, Kind] = dict.fromkeys((".jsonl", ".ndjson", ".jsonlines", ".jl", ".json"), "json")
_KINDS |= dict.fromkeys((".conllx", ".conll03", ".iob", ".iob2", ".bio", ".bioes", ".bilou"), "words")
_KINDS |= {".conllu": "conllu", ".spacy": "doc"}


_TOO_LONG = f"more than {LONGEST_LINE:,} bytes"


class Item(NamedTuple):
    """A part of a file that is read without a look at what it says, so that one process can read for many.

    line: number of its first line, from 1; in a .spacy file that of the doc.
    data: a line; all lines of a sentence in CoNLL-U; or the JSON of a row of a table (see `table_rows`), of a sentence
        in columns (see `column_words`) or of a doc. None: it can't be used, and `problem` says why.
    """

    source: str
    line: int
    kind: Kind
    data: bytes | None
    problem: str = _TOO_LONG

    @property
    def size(self) -> int:
        return len(self.data or b"")


@dataclass
class Document:
    """The words of the sentences of an item, of which none is empty.

    text: None if the file had words only. id: what the file calls it. meta: all other fields of its JSON object.
    offsets: the places of all words in the text, if the file tells them.
    """

    source: str
    line: int
    sentences: list[list[str]]
    text: str | None = None
    id: str | None = None
    meta: str | None = None
    offsets: Offsets | None = None

    @property
    def tokens(self) -> int:
        return sum(map(len, self.sentences))

    def places(self) -> list[Offsets] | None:
        """Return the places of the words of each sentence in the text; None if there is no text that has them."""
        words = [(word, 1) for sentence in self.sentences for word in sentence]
        found = self.offsets or (None if self.text is None else _places(words, self.text, len(words)))
        if found is None:
            return None
        in_order = iter(found)
        return [list(islice(in_order, len(sentence))) for sentence in self.sentences]


class Fields(TypedDict, total=False):
    """Which part of a table or of JSON lines is the text, as in `read_documents`."""

    text_column: str | None
    text_field: str | None


class BadLine(NamedTuple):
    """A line that was left out, by its number from 1; in a .spacy file a doc by its number."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line:,}: {self.reason}"


# Items


def read_items(sources: Iterable[TextFile], text_column: str | None = None) -> Iterator[Item]:
    """Yield the items of files.

    text_column: of tables, which all files of no other kind are then; None: there are none.

    Raises CorpusError if a file that was named can't be read. One that was found in a folder is a bad item.
    """
    for source in sources:
        line = 0
        try:
            for item in _items(source, text_column):
                line = item.line
                yield item
        except CorpusError as error:
            if source.named:
                raise
            yield Item(source.name, line + 1, "text", None, str(error).removeprefix(f"{source.name}: "))


def _items(source: TextFile, text_column: str | None) -> Iterator[Item]:
    path, name = source.path, source.name
    kind = _KINDS.get(kind_of(path), "text" if text_column is None else "row")
    if kind_of(path).endswith("conll"):  # as .v4_gold_conll
        kind = "words"
    if kind == "doc":
        yield from _docs(path)
        return
    with opened(path) as (file, head):
        if kind in ("text", "row") and head.removeprefix(b"\xef\xbb\xbf").startswith(b"#FORMAT=WebAnno TSV"):
            kind = "words"
        lines = lines_of(file)
        parts: Iterable[Part] = ((number, line, _TOO_LONG) for number, line in enumerate(lines, 1))
        if kind == "conllu":
            parts = conllu_blocks(lines)
        elif kind == "words":
            parts = column_words(lines)
        elif kind == "row":
            parts = table_rows(lines, name, kind_of(path), text_column or "")
        elif kind == "text":
            _warn_of_fields(source, head.decode("utf-8-sig", "ignore"))
        yield from (Item(name, number, kind, data, problem) for number, data, problem in parts)


def _docs(path: Path) -> Iterator[Item]:
    for number, doc in enumerate(docs_in(path), 1):
        marked = doc.has_annotation("SENT_START")
        record = {
            "words": [token.text for token in doc],
            "spaces": None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc],
            "ends": [span.end for span in sentences_of(doc)] if marked else None,
        }
        yield Item(str(path), number, "doc", json.dumps(record).encode())


def docs_in(path: Path) -> Iterator[Doc]:
    """Yield the docs of a .spacy file, which may be packed, and is in memory. Raises CorpusError if it is damaged."""
    with unpacked(path) as file:
        data = file.read()
    try:
        # a new vocab, so that its strings are freed afterwards
        yield from DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab)
    except Exception as error:  # a damaged file fails anywhere in zlib, msgpack, numpy or spaCy
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> CorpusError:
    """Return the error that tells that a file is damaged. error: what was raised because of that."""
    reason = error if str(error) else type(error).__name__
    return CorpusError(SOURCE_DAMAGED.format(path=path, reason=reason))


def sentences_of(doc: Doc) -> list[Span]:
    """Return the sentences of a doc. A doc without sentence boundaries is one sentence."""
    return list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]


_COLUMNS = {"id", "label", "sentence", "text"}  # a first line with two of them is that of a table
_TAGGED = re.compile(r"^\S+[\t ](?:.*[\t ])?(?:O|[BIELSU]-\S+)\s*$", re.MULTILINE)  # a word and its tag


def _warn_of_fields(source: TextFile, head: str) -> None:
    """Warn if a plain text looks like JSON lines, a table or annotated words. head: the first lines."""
    first = head.strip("\r\n").splitlines()[0] if head.strip("\r\n") else ""
    if re.match(r'\s*\{\s*"', first):
        told = "its first line is a JSON object. To have the fields read, give a file whose name ends in .jsonl"
    elif kind_of(source.path) in (".csv", ".tsv") or len(_COLUMNS & set(re.split("[,;\t]", first.lower()))) > 1:
        told = "it looks like a table. Name the column of the text with --text-column NAME (text_column)"
    elif len(_TAGGED.findall(head)) > len(head.splitlines()) / 2:
        told = "its lines look like words with tags. To have the words read, give a file whose name ends in .conll"
    else:
        return
    category = StandardInputWarning if source.path == STANDARD_INPUT else PlainTextWarning
    warnings.warn(f"{source.name} is read as text, though {told}.", category, stacklevel=2)


# Documents

_COMMENT = re.compile(r"(?<![^\r\n])#[ \t]*(sent_id|text)[ \t]*=[ \t]*([^\r\n]*)")
_ID = re.compile(r"(\d{1,9})(?:([-.])(\d{1,9}))?")


def conllu_rows(block: str, first: int = 1) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yield the columns of each line of a sentence in CoNLL-U, and before them the number in the first one.

    Comments are left out. first: the number of the first line, for messages.
    """
    # splitlines() would divide a text at other separators, too
    for at, line in enumerate(re.split(r"\r\n|\r|\n", block.rstrip("\r\n")), first):
        if not line.startswith("#"):
            columns = line.split("\t")
            number = _ID.fullmatch(columns[0])
            if number is None or len(columns) < 2:
                raise Unusable(f"line {at} is no line of CoNLL-U, whose first columns are a number and a word")
            yield number, columns


def _read_conllu(document: Document, block: str) -> None:
    """Read a sentence: the syntactic words. French "du" is "de" and "le", both in the place of "du"."""
    comments = {name: value.strip() for name, value in _COMMENT.findall(block)}
    words: list[str] = []
    forms: list[tuple[str, int]] = []  # what stands in the text, and how many words it is
    inside = 0  # number of the last word of a form that is several words
    for number, columns in conllu_rows(block, document.line):
        if number[2] == ".":  # a word that is not in the text
            continue
        if number[2] == "-":
            inside = int(number[3])
            forms.append((columns[1], inside - int(number[1]) + 1))
            continue
        words.append(columns[1])
        if int(number[1]) > inside:
            forms.append((columns[1], 1))
    document.sentences, document.id = [checked_words(words)], comments.get("sent_id")
    document.text = comments.get("text")
    if document.text is not None and len(document.sentences[0]) == len(words):
        document.offsets = _places(forms, document.text, len(words))


def _places(forms: list[tuple[str, int]], text: str, n_words: int) -> Offsets | None:
    """Return the places of words in a text. forms: what stands there in their order, and how many words each is."""
    places: Offsets = []
    end = 0
    for form, n in forms:
        start = text.find(form, end)
        if start < 0 or len(places) + n > n_words:  # a short line may state a range of a billion words
            return None
        end = start + len(form)
        places += [(start, end)] * n
    return places if len(places) == n_words else None


_ENDS = frozenset(Sentencizer.default_punct_chars)


class Parser:
    """Makes documents of items.

    tokenizer: splits text into words; None: words are separated by blanks.
    docs: whether a text is a document of several sentences, which are found by their punctuation; false: a text is one
        sentence. Sentence boundaries in a .spacy file are used in both cases.
    text_field: of JSON lines; None: "tokens" or "text".
    """

    def __init__(self, tokenizer: Tokenize | None, docs: bool = False, text_field: str | None = None) -> None:
        self._split, self._docs, self._text_field = tokenizer or str.split, docs, text_field

    def __call__(self, item: Item) -> Document | None:
        """Return the document of an item; None if it has no word. Raises Unusable if it can't be used."""
        if item.data is None:
            raise Unusable(item.problem)
        text = decode_line(item.data, item.line)
        if not text.strip():
            return None
        # a file's name may have bytes that are not UTF-8, which Python holds as halves of surrogate pairs
        source = item.source.encode("utf8", "surrogateescape").decode("utf8", "backslashreplace")
        document = Document(source, item.line, [])
        if item.kind == "conllu":
            _read_conllu(document, text)
        elif item.kind == "words":
            document.sentences = [checked_words(json.loads(text))]
        elif item.kind == "doc":
            self._read_doc(document, json.loads(text))
        elif item.kind == "json":
            self._read_record(document, _json_record(text, self._text_field))
        elif item.kind == "row":
            value, others = json.loads(text)
            self._read_text(document, value)
            _add_fields(document, others)
        else:
            self._read_text(document, text.rstrip("\r\n"))
        document.sentences = [sentence for sentence in document.sentences if sentence]
        return document if document.sentences else None

    def _read_text(self, document: Document, text: str) -> None:
        document.text = text
        document.sentences = self._sentences(self._split(encodable(text)))

    def _read_record(self, document: Document, record: dict[str, Any]) -> None:
        name = self._text_field or "text"
        read, found = {name}, None if self._text_field else _record_tokens(record)
        if found is not None:
            words, document.offsets, starts = found
            read = {"tokens"}
            if document.offsets is not None:
                document.text = encodable(record["text"])
                read = {"tokens", "text", "sents"}
            document.sentences = self._sentences(words, starts)
        elif not is_missing(text := record.get(name)):
            if not isinstance(text, str):
                raise Unusable(f'"{name}" is no string')
            self._read_text(document, without_nul(text))
        _add_fields(
            document, {key: value for key, value in record.items() if key not in read and not is_missing(value)}
        )

    def _read_doc(self, document: Document, record: dict[str, Any]) -> None:
        words, spaces, ends = record["words"], record["spaces"], record["ends"]
        if spaces is not None:
            document.text = "".join(word + " " * space for word, space in zip(words, spaces))
        kept = [i for i, word in enumerate(words) if word and not word.isspace()]
        starts = None if ends is None else [bisect_left(kept, start) for start in [0, *ends[:-1]]]
        document.sentences = self._sentences(checked_words(words[i] for i in kept), starts)

    def _sentences(self, words: list[str], starts: list[int] | None = None) -> list[list[str]]:
        """Return the sentences of a document. starts: the number of the first word of each, if it is known."""
        if starts is None:
            starts = sentence_starts(words) if self._docs else [0]
        return [words[start:end] for start, end in pairwise([*starts, len(words)])]


def _json_record(line: str, text_field: str | None) -> dict[str, Any]:
    hint = "; a list in square brackets is not JSON lines" if line.lstrip().startswith("[") else ""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON ({getattr(error, 'msg', error)}){hint}") from error
    if not isinstance(record, dict) or not any(name in record for name in ([text_field] if text_field else _FIELDS)):
        expected = shown(text_field) if text_field else '"text" or "tokens"'
        raise Unusable(f"no JSON object with {expected}{hint}")
    return record


_FIELDS = ("text", "tokens")


def _record_tokens(record: dict[str, Any]) -> tuple[list[str], Offsets | None, list[int] | None] | None:
    """Return the words of the "tokens", their places in the "text", and where "sents" begin; None: split the text."""
    tokens, text, sents = (record.get(name) for name in ("tokens", "text", "sents"))
    if is_missing(tokens):
        return None
    if not isinstance(tokens, list):
        raise Unusable('"tokens" is no list of strings or of objects')
    if not is_missing(text) and all(type(token) is int for token in tokens):  # of a tokenizer of pieces
        return None
    pairs = [pair for pair in (_word_and_place(token, text) for token in tokens) if pair[0].strip()]
    words = checked_words(word for word, _ in pairs)
    places = [place for _, place in pairs if place is not None]
    if not places or len(places) < len(words):
        return words, None, None
    objects = [each for each in sents if isinstance(each, dict)] if isinstance(sents, list) else []
    begun = {each["start"] for each in objects if isinstance(each.get("start"), int)}
    starts = [i for i, (start, _) in enumerate(places) if start in begun]
    return words, places, [0, *starts] if starts else None


def _word_and_place(token: Any, text: Any) -> tuple[str, tuple[int, int] | None]:
    """Return a word: a string, or an object as Prodigy and spaCy's `Doc.to_json` write it."""
    word, place = token, None
    if isinstance(token, dict):
        start, end, word = (token.get(name) for name in ("start", "end", "text"))
        if isinstance(text, str) and isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= len(text):
            word = text[start:end] if is_missing(word) else word
            place = (start, end) if text[start:end] == word else None
    if not isinstance(word, str):
        raise Unusable('"tokens" is no list of strings or of objects with "text"')
    return word, place


def _add_fields(document: Document, fields: dict[str, Any]) -> None:
    name = fields.pop("id", None)
    if not is_missing(name):
        document.id = encodable(name) if isinstance(name, str) else _json(name)
    document.meta = _json(fields) if fields else None


def _json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise Unusable("not JSON (a number is NaN, infinite or too large)") from error
    except RecursionError as error:
        raise Unusable("not JSON (nested too deep)") from error


def sentence_starts(words: Sequence[str]) -> list[int]:
    """Return the number of the first word of each sentence, as spaCy's sentencizer finds them.

    spaCy's own needs a Doc, and its Vocab would keep all words.
    """
    starts, ended = [0], False
    for i, word in enumerate(words):
        ends = word in _ENDS
        if ended and not ends and not is_punct(word):
            starts.append(i)
            ended = False
        ended = ended or ends
    return starts


# Reading with a report


@dataclass
class Report:
    """Counts of what was read so far. lines: in .spacy files docs; bad: the first ten that can't be used."""

    lines: int = 0
    sentences: int = 0
    tokens: int = 0
    blank: int = 0
    n_bad: int = 0
    bad: list[BadLine] = field(default_factory=list)


def read_documents(
    inputs: Name | Sequence[Name],
    tokenizer: Tokenize | None = None,
    report: Report | None = None,
    *,
    text_column: str | None = None,
    text_field: str | None = None,
    output: Name | None = None,
) -> Iterator[Document]:
    """Yield the documents of inputs (see `text_files`), while they are read.

    tokenizer, text_field: as of `Parser`. text_column: as of `read_items`. output: as of `find_files`.
    report: its counts are raised. Lines that can't be used are left out, and counted there.

    Raises CorpusError at once if an input has no files; while it yields if a file that was named can't be read; and at
    the end if there was no sentence.
    """
    items = read_items(text_files(inputs, output), text_column)
    parser = Parser(tokenizer, text_field=text_field)
    return _counted(items, parser, report or Report(), inputs)


def _counted(
    items: Iterable[Item], parser: Parser, report: Report, inputs: Name | Sequence[Name]
) -> Iterator[Document]:
    before = report.sentences
    for item in items:
        report.lines += 1
        try:
            document = parser(item)
        except Unusable as error:
            report.n_bad += 1
            if len(report.bad) < 10:
                report.bad.append(BadLine(item.source, item.line, str(error)))
            continue
        if document is None:
            report.blank += 1
            continue
        report.sentences += len(document.sentences)
        report.tokens += document.tokens
        yield document
    if report.sentences == before:
        raise nothing_read(inputs, report.blank, report.n_bad, next(iter(report.bad), None))


def nothing_read(inputs: Name | Sequence[Name], n_blank: int, n_bad: int, first_bad: BadLine | None) -> CorpusError:
    """Return the error for inputs without a sentence."""
    names = [inputs] if isinstance(inputs, str | PathLike) else inputs
    told = ", ".join(TextFile(Path(name), True).name for name in names)
    example = f" ({first_bad})" if first_bad else ""
    return CorpusError(
        f"{told}: no sentence that can be read; {n_blank + n_bad:,} lines, {n_blank:,} of them blank, {n_bad:,} "
        f"bad{example}. Expected {EXPECTED}."
    )


def read_sentences(
    inputs: Name | Sequence[Name],
    language: str | None = None,
    report: Report | None = None,
    *,
    text_column: str | None = None,
    text_field: str | None = None,
    output: Name | None = None,
) -> Iterator[list[str]]:
    """Yield the words of each sentence of inputs (docs/pretraining.md, "The text"), while they are read.

    language: of the spaCy tokenizer that splits text; None: text is split at blanks, as str.split does.
    report and all others: as of `read_documents`. Raises what that raises, and CorpusError if the language is unknown.
    """
    fields: Fields = {"text_column": text_column, "text_field": text_field}
    documents = read_documents(inputs, tokenizer_of(language), report, output=output, **fields)
    return (sentence for document in documents for sentence in document.sentences)
