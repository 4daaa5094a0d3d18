"""Reads the items of a corpus, file by file, without a look at what they say."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise, starmap
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from spacy.lang.lex_attrs import is_punct
from spacy.pipeline import Sentencizer

from ..errors import SOURCE_DAMAGED, CorpusError, PlainTextWarning, SettingsError, StandardInputWarning, shown
from ..formats.text import (
    PACKED,
    Kind,
    Offsets,
    Tokenize,
    Unusable,
    checked_words,
    decode_line,
    docs_in,
    encodable,
    find_files,
    json_record,
    kind_of,
    layout_of,
    lines_of,
    record_sentences,
    record_text,
    rows_of,
    sentences_of,
    unpacked,
    warn_of_fields,
)


class Item(NamedTuple):
    """A part of a file that is read without a look at what it says, so that one process can read for many.

    line: number of its first line, from 1; in a .spacy file that of the doc.
    data: a line, all lines of a sentence in CoNLL-U, or the JSON of a row of a table (see `rows_of`) or of a doc in a
        .spacy file. None: a line was too long.
    """

    source: str
    line: int
    kind: Kind
    data: bytes | None

    @property
    def size(self) -> int:
        return len(self.data or b"")


@dataclass
class Sentence:
    """What the biLM reads at once. offsets: the places of its words in its document's text; None without a text."""

    tokens: list[str]
    offsets: Offsets | None = None


@dataclass
class Document:
    """The sentences of an item, of which none is empty.

    text: None if the file had words only. id: what the file calls it. meta: all other fields of its JSON object.
    """

    source: str
    line: int
    sentences: list[Sentence]
    text: str | None = None
    id: str | None = None
    meta: str | None = None

    @property
    def tokens(self) -> int:
        return sum(len(sentence.tokens) for sentence in self.sentences)


class Shard(NamedTuple):
    """Consecutive items of a corpus, whose vectors are in one file. number: from 0."""

    number: int
    items: list[Item]

    @property
    def bytes(self) -> int:
        return sum(item.size for item in self.items)

    def digest(self) -> str:
        """Return a SHA-256 of where the items come from and of what they say."""
        digest = hashlib.sha256()
        for item in self.items:
            digest.update(f"{item.source}\0{item.line}\0{item.kind}\0{item.size}\0".encode("utf8", "surrogateescape"))
            digest.update(item.data or b"")
        return digest.hexdigest()


_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s*(.*)")
_ID = re.compile(r"(\d{1,9})(?:([-.])(\d{1,9}))?")


def conllu_sentence(block: str) -> tuple[list[Sentence], str | None, str | None]:
    """Return the sentence of a block of CoNLL-U, its text, and its sent_id; None for what the file does not have.

    The words are the syntactic words: French "du" is "de" and "le", both in the place of "du".
    """
    comments: dict[str, str] = {}
    words: list[str] = []
    forms: list[tuple[str, int]] = []  # what stands in the text, and how many words it is
    inside = 0  # number of the last word of a form that is several words
    for line in block.rstrip("\r\n").split("\n"):  # splitlines() would divide a text at other separators, too
        if line.startswith("#"):
            if match := _COMMENT.fullmatch(line.strip()):
                comments[match[1]] = match[2]
            continue
        columns = line.rstrip("\r").split("\t")
        number = _ID.fullmatch(columns[0])
        if number is None or len(columns) < 2:
            raise Unusable("no line of CoNLL-U, whose first columns are a number and a word")
        if number[2] == ".":  # a word that is not in the text
            continue
        if number[2] == "-":
            inside = int(number[3])
            forms.append((columns[1], inside - int(number[1]) + 1))
            continue
        words.append(columns[1])
        if int(number[1]) > inside:
            forms.append((columns[1], 1))
    text = comments.get("text")
    offsets = None if text is None else _offsets(forms, text, len(words))
    return [Sentence(checked_words(words), offsets)], text, comments.get("sent_id")


def _offsets(forms: list[tuple[str, int]], text: str, n_words: int) -> Offsets | None:
    offsets: Offsets = []
    place = 0
    for form, n in forms:
        start = text.find(form, place)
        if start < 0 or len(offsets) + n > n_words:  # a short line may state a range of a billion words
            return None
        place = start + len(form)
        offsets += [(start, place)] * n
    return offsets if len(offsets) == n_words else None


_ENDS = frozenset(Sentencizer.default_punct_chars)
_WORD = re.compile(r"\S+")


def _words_at_blanks(text: str) -> tuple[list[str], Offsets]:
    matches = list(_WORD.finditer(text))
    return [match[0] for match in matches], [match.span() for match in matches]


class Parser:
    """Makes documents of items.

    tokenizer: splits text into words; None: words are separated by blanks.
    docs: whether a text is a document of several sentences, which are found by their punctuation; false: a text is one
        sentence. Sentence boundaries in a .spacy file are used in both cases.
    text_field: of JSON lines; None: "tokens" or "text".
    """

    def __init__(self, tokenizer: Tokenize | None, docs: bool, text_field: str | None = None) -> None:
        self._split: Callable[[str], tuple[list[str], Offsets]]
        self._split = _words_at_blanks if tokenizer is None else tokenizer.words_and_offsets
        self._docs, self._text_field = docs, text_field

    def __call__(self, item: Item) -> Document | None:
        """Return the document of an item; None if it has no word. Raises Unusable if it can't be used."""
        text = decode_line(item.data, item.line)
        if not text.strip():
            return None
        # a file's name may have bytes that are not UTF-8, which Python holds as halves of surrogate pairs
        source = item.source.encode("utf8", "surrogateescape").decode("utf8", "backslashreplace")
        document = Document(source, item.line, [])
        if item.kind == "conllu":
            document.sentences, document.text, document.id = conllu_sentence(text)
        elif item.kind == "doc":
            self._read_doc(document, json.loads(text))
        elif item.kind == "json":
            self._read_record(document, json_record(text, self._text_field))
        elif item.kind == "row":
            value, others = json.loads(text)
            self._read_text(document, record_text({"text": value}))
            _add_fields(document, others)
        else:
            self._read_text(document, text.rstrip("\r\n"))
        document.sentences = [sentence for sentence in document.sentences if sentence.tokens]
        return document if document.sentences else None

    def documents(self, items: Iterable[Item]) -> Iterator[Document]:
        for item in items:
            try:
                document = self(item)
            except Unusable as error:
                refuse(item, str(error))
            if document is not None:
                yield document

    def _read_text(self, document: Document, text: str) -> None:
        document.text = text
        document.sentences = self._sentences(*self._split(text))

    def _read_record(self, document: Document, record: dict[str, Any]) -> None:
        sentences = None if self._text_field else record_sentences(record)
        read = {self._text_field or "text"}
        if sentences is None:
            self._read_text(document, record_text(record, self._text_field))
        else:
            read = {"tokens"}
            if sentences[0][1] is not None:  # their places in the text are known
                document.text = record_text(record)
                read = {"tokens", "text", "sents"}
            whole = len(sentences) == 1
            for words, places in sentences:
                document.sentences += self._sentences(words, places) if whole else [Sentence(words, places)]
        _add_fields(document, {name: value for name, value in record.items() if name not in read})

    def _read_doc(self, document: Document, record: dict[str, Any]) -> None:
        words, spaces, ends = record["words"], record["spaces"], record["ends"]
        offsets: Offsets | None = None
        if spaces is not None:
            document.text = "".join(word + " " * space for word, space in zip(words, spaces))
            starts = [0, *accumulate(len(word) + space for word, space in zip(words, spaces))]
            offsets = [(start, start + len(word)) for start, word in zip(starts, words)]
        kept = [i for i, word in enumerate(words) if word and not word.isspace()]
        checked_words([words[i] for i in kept])
        at = 0
        for end in ends or [len(words)]:
            stop = bisect_left(kept, end, at)
            places = None if offsets is None else [offsets[i] for i in kept[at:stop]]
            inside = [words[i] for i in kept[at:stop]]
            document.sentences += self._sentences(inside, places) if ends is None else [Sentence(inside, places)]
            at = stop

    def _sentences(self, words: list[str], offsets: Offsets | None) -> list[Sentence]:
        if not self._docs or not words:
            return [Sentence(words, offsets)]
        starts = [*sentence_starts(words), len(words)]
        return [
            Sentence(words[start:end], None if offsets is None else offsets[start:end])
            for start, end in pairwise(starts)
        ]


def _add_fields(document: Document, fields: dict[str, Any]) -> None:
    name = fields.pop("id", None)
    if name is not None:
        document.id = encodable(name) if isinstance(name, str) else _json(name)
    document.meta = _json(fields) if fields else None


def _json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise Unusable("not JSON (a number is NaN, infinite or too large)") from error


def check_tokenizer(lang: str | None, tokenized: bool | None) -> None:
    """Raise SettingsError if there is a language for a tokenizer, but words are separated by blanks."""
    if lang is not None and tokenized:
        raise SettingsError(
            f"lang is {shown(lang)}, but tokenized says that the words are separated by blanks, which needs no "
            "language. Expected one of the two: leave out --lang (lang), or leave out --tokenized (tokenized)."
        )


def refuse(item: Item, reason: str) -> NoReturn:
    raise CorpusError(
        f"{item.source}, line {item.line}: {reason}. Correct or remove the line; or give a folder as the output, "
        "for which bad lines are left out and listed."
    )


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


STANDARD_INPUT_NAME = "-"
EXPECTED = (
    "text, .jsonl, .conllu or .spacy files (plain, .gz, .xz or .zst): one or several, folders or patterns; or - for "
    "standard input, which is text"
)
_PACKED_RATIO = 3  # text packs to about a third


def sources_of(inputs: Sequence[str | Path], output: str | Path | None = None) -> list[Path]:
    """Return the files of some inputs, in order: files, folders and patterns (see `find_files`), or "-"."""
    if [str(name) for name in inputs].count(STANDARD_INPUT_NAME) > 1:
        raise CorpusError("- is given twice as input. Expected it once: standard input can be read once only.")
    found: list[Path] = []
    for name in inputs:
        found += [Path(name)] if str(name) == STANDARD_INPUT_NAME else find_files(name, output, EXPECTED)
    return found


def total_bytes(files: Iterable[Path]) -> int | None:
    """Return the bytes of text in files, an estimate if one is packed; None if one is a DocBin or no regular file."""
    total = 0
    for path in files:
        if not path.is_file() or kind_of(path) == ".spacy":
            return None
        total += path.stat().st_size * (_PACKED_RATIO if path.suffix in PACKED else 1)
    return total


def read_items(files: Iterable[Path], text_column: str | None = None) -> Iterator[Item]:
    """Yield the items of files. Raises CorpusError if one can't be read.

    text_column: of tables; None: there are none.
    """
    for path in files:
        standard = str(path) == STANDARD_INPUT_NAME
        name = "standard input" if standard else str(path)
        kind = layout_of(path, text_column)
        if kind == "doc":
            yield from _docs(path)
            continue
        with nullcontext(standard_input()) if standard else unpacked(path) as file:
            if kind == "conllu":
                yield from _sentences(file, name)
            elif kind == "row":
                yield from (Item(name, line, "row", data) for line, data in rows_of(file, path, text_column or ""))
            else:
                for item in _lines(file, name, kind):
                    if item.line == 1 and item.data is not None and kind == "text":
                        first = item.data[:200].decode("utf-8-sig", "ignore")
                        warn_of_fields(path, first, StandardInputWarning if standard else PlainTextWarning)
                    yield item


def standard_input() -> IO[bytes]:
    """Return standard input. Raises CorpusError if it is closed or no stream of bytes."""
    if not hasattr(sys.stdin, "buffer"):  # a program may have put a StringIO there
        reason = "it is closed" if sys.stdin is None else "it has text, not bytes"
        raise CorpusError(SOURCE_DAMAGED.format(path="standard input", reason=reason))
    return sys.stdin.buffer


def parts_of(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Divide items into parts: each is complete as soon as it has that many bytes."""
    held, n = [], 0
    for item in items:
        held.append(item)
        n += item.size
        if n >= size:
            yield held
            held, n = [], 0
    if held:
        yield held


def cut(items: Iterable[Item], size: int) -> Iterator[Shard]:
    """Divide items into shards, as `parts_of` does."""
    return starmap(Shard, enumerate(parts_of(items, size)))


def _lines(file: IO[bytes], source: str, kind: Kind) -> Iterator[Item]:
    for number, line in enumerate(lines_of(file), 1):
        yield Item(source, number, kind, line)


def _sentences(file: IO[bytes], source: str) -> Iterator[Item]:
    block: list[bytes | None] = []
    for number, line in enumerate(chain(lines_of(file), [b"\n"]), 1):
        if line is None or line.strip():
            block.append(line)
        elif block:
            complete = [each for each in block if each is not None]
            data = b"".join(complete) if len(complete) == len(block) else None  # a line was too long
            yield Item(source, number - len(block), "conllu", data)
            block = []


def _docs(path: Path) -> Iterator[Item]:
    for number, doc in enumerate(docs_in(path), 1):
        marked = doc.has_annotation("SENT_START")
        record = {
            "words": [token.text for token in doc],
            "spaces": None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc],
            "ends": [span.end for span in sentences_of(doc)] if marked else None,
        }
        yield Item(str(path), number, "doc", json.dumps(record).encode())
