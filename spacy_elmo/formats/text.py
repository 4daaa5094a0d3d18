"""Text files: how they are found, unpacked, read line by line and split into words."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import json
import lzma
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Literal, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from ..errors import SOURCE_DAMAGED, CommandError, CorpusError, PlainTextWarning, listed, shown
from .paths import expanded
from .vectors import key_problem

EXPECTED = "text, one sentence a line (plain, .gz, .xz or .zst), .jsonl or .spacy files: one, a folder or a pattern"
PACKED = (".gz", ".xz", ".zst")


def find_files(
    source: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, expected: str = EXPECTED
) -> list[Path]:
    """Return the files of a source, sorted: a file, a folder (all in it and in its folders), or a pattern.

    A name that exists is no pattern. In folders and patterns, names that begin with a dot are left out, links to
    folders, and the folder `output`. expected: what messages say that a source is.
    """
    path = expanded(source)
    problem = "no such file or folder, and no pattern that matches a file"
    if not os.fspath(source):  # Path("") is the current folder
        raise CorpusError(f'"": {problem}. Expected {expected}.')
    with _usable(source, expected):
        if path.is_file():
            return [path]
        if path.is_dir():
            problem = "a folder without files that can be read"
            files = [Path(folder, name) for folder, _, names in os.walk(path, onerror=_raise) for name in names]
        elif path.exists():
            raise CorpusError(f"{path}: neither a file nor a folder. Expected {expected}.")
        elif glob.has_magic(str(path)):  # glob.glob would follow links to folders, even in circles
            files = list(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
        else:
            files = []
        hidden = _n_hidden(path)  # dots that the user wrote
        visible = sorted(file for file in files if _n_hidden(file) == hidden and file.is_file())
        if output is not None:
            excluded = expanded(output).resolve()
            visible = [file for file in visible if not file.resolve().is_relative_to(excluded)]
    if not visible:
        raise CorpusError(f"{path}: {problem}. Expected {expected}.")
    return visible


@contextmanager
def _usable(source: str | os.PathLike[str], expected: str) -> Iterator[None]:
    try:
        yield
    except CorpusError:
        raise
    except (OSError, ValueError) as error:  # too long, with NUL or half a surrogate pair, or such as a**
        path = shown(os.fspath(source))
        raise CorpusError(f"{path}: not a pattern or a name of files ({error}). Expected {expected}.") from error


def _raise(error: OSError) -> None:
    raise CorpusError(SOURCE_DAMAGED.format(path=error.filename, reason=error)) from error


def _n_hidden(path: Path) -> int:
    return sum(part.startswith(".") for part in path.parts)


def refuse_inside(
    source: str | os.PathLike[str], target: str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> None:
    """Raise CorpusError if the file or folder to be written, `target`, would belong to a source (see `find_files`)."""
    with _usable(source, EXPECTED):
        root, resolved = (
            Path(os.path.realpath(expanded(path))) for path in (source, target)
        )  # resolve() fails if links loop
    inside = resolved.is_relative_to(root)
    if not inside and glob.has_magic(str(source)):
        inside = any(file.resolve().is_relative_to(resolved) for file in find_files(source, output))
    if inside:
        raise CorpusError(
            f"{target}: the output is inside {source}, which is the input. Expected a place outside: give "
            "another path. Otherwise the output would be read as text the next time."
        )


def kind_of(path: Path) -> str:
    """Return the end of a file's name that tells its format, after .gz, .xz or .zst is removed, such as ".jsonl"."""
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


Kind = Literal["text", "json", "row", "conllu", "doc"]
_KINDS: dict[str, Kind] = dict.fromkeys((".jsonl", ".ndjson", ".jsonlines", ".jl", ".json"), "json")
_KINDS |= {".conllu": "conllu", ".spacy": "doc"}
_SEPARATORS = ",;\t"
_COLUMNS = {"id", "label", "sentence", "text"}  # a first line with two of them is that of a table


def layout_of(path: Path, text_column: str | None = None) -> Kind:
    """Return how a file is read. text_column: a column of tables, which all files of no other kind are then."""
    return _KINDS.get(kind_of(path), "text" if text_column is None else "row")


def warn_of_fields(path: Path, first: str, category: type[PlainTextWarning] = PlainTextWarning) -> None:
    """Warn if a plain text looks like JSON lines or a table. first: its first line."""
    name = "standard input" if str(path) == "-" else str(path)
    if re.match(r'\ufeff?\s*\{\s*"', first):
        told = "its first line is a JSON object. To have the fields read, give a file whose name ends in .jsonl"
    elif (
        kind_of(path) in (".csv", ".tsv")
        or len(_COLUMNS & set(re.split(f"[{_SEPARATORS}]", first.strip().lower()))) > 1
    ):
        told = (
            "it looks like a table. embed reads a column of a file with --text-column NAME; for other commands, "
            "write the column to a file with one text a line"
        )
    else:
        return
    warnings.warn(f"{name} is read as text, though {told}.", category, stacklevel=2)


def rows_of(file: IO[bytes], path: Path, column: str) -> Iterator[tuple[int, bytes]]:
    """Yield the first line of each row of a table with named columns, and as JSON its text and all other columns."""
    lines = ((line or b"\n").decode("utf8", "surrogateescape") for line in lines_of(file))
    first = next(lines, "").removeprefix("\ufeff")
    rows = csv.reader(chain([first], lines), delimiter=max(_SEPARATORS, key=first.count), strict=True)
    try:
        header = next(rows, [])
        if column not in header:
            raise CorpusError(
                f"{path}: its columns are {', '.join(header) or 'none'}. Expected {shown(column)} among them: name "
                "another one with --text-column (text_column)."
            )
        number = rows.line_num + 1
        for row in rows:
            values = dict(zip(header, row))
            yield number, json.dumps([values.pop(column, None), values]).encode() if row else b""
            number = rows.line_num + 1
    except csv.Error as error:
        raise damaged(path, error) from error


def name_of(source: str) -> str:
    """Return the last part of a path, which tells nothing about the machine."""
    return Path(source).name or Path(source).resolve().name


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed if its name ends in .gz, .xz or .zst."""
    damage: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, lzma.LZMAError)
    if path.suffix == ".zst":
        try:
            import zstandard
        except ImportError as error:
            raise CorpusError(
                f"{path}: packed with zstd, but zstandard is missing. Get it with pip install zstandard."
            ) from error
        damage += (zstandard.ZstdError,)
    try:
        with path.open("rb") as file:
            if path.suffix == ".zst":
                yield io.BufferedReader(_Zstd(file, zstandard), 1 << 16)
            elif path.suffix in PACKED:
                with gzip.open(file) if path.suffix == ".gz" else lzma.open(file) as zipped:
                    yield zipped  # type: ignore[misc]
            else:
                yield file
    except damage as error:
        raise CorpusError(SOURCE_DAMAGED.format(path=path, reason=error)) from error


class _Zstd(io.RawIOBase):
    """The decompressed bytes of a .zst file. zstandard's own stream reader does not notice if it was cut short."""

    def __init__(self, file: IO[bytes], zstandard: ModuleType) -> None:
        self._file, self._zstandard = file, zstandard
        self._frame: Any = None
        self._packed, self._unpacked = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._unpacked:
            data = self._packed or self._file.read(1 << 10)  # they unpack to at most 32 MiB
            if not data:
                if self._frame is not None:
                    raise EOFError("the file ends within a frame")
                return 0
            if self._frame is None:
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            self._unpacked, self._packed = memoryview(self._frame.decompress(data)), b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        n = min(len(buffer), len(self._unpacked))
        buffer[:n], self._unpacked = self._unpacked[:n], self._unpacked[n:]
        return n


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


Offsets = list[tuple[int, int]]


class Unusable(Exception):
    """Raised for a line that can't be used, with the reason."""


class BadLine(NamedTuple):
    """A line that was left out, by its number from 1; in a .spacy file a doc by its number."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line:,}: {self.reason}"


LONGEST_LINE = 1 << 24  # bytes


def lines_of(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of an open file, which b"\\n" ends; None for one of more than LONGEST_LINE bytes."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (skipped := file.readline(LONGEST_LINE)) and not skipped.endswith(b"\n"):
            pass
        yield None


def decode_line(line: bytes | None, number: int) -> str:
    """Return the text of a line that `lines_of` yields, without a byte order mark in the first. Raises Unusable."""
    if line is None:
        raise Unusable(f"more than {LONGEST_LINE:,} bytes")
    try:
        text = line.decode("utf8")
    except UnicodeDecodeError as error:
        raise Unusable(f"not UTF-8 ({error.reason} at byte {error.start:,})") from error
    return _without_nul(text.removeprefix("\ufeff") if number == 1 else text)


def json_record(line: str, text_field: str | None = None) -> dict[str, Any]:
    """Return the object of a line of JSON. Raises Unusable if it has no text_field (None: no tokens or text)."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON ({error})") from error
    if not isinstance(record, dict) or not any(name in record for name in ([text_field] if text_field else _FIELDS)):
        expected = shown(text_field) if text_field else '"text" or "tokens"'
        raise Unusable(f"no JSON object with {expected}")
    return record


_FIELDS = ("text", "tokens")


def record_sentences(record: dict[str, Any]) -> list[tuple[list[str], Offsets | None]] | None:
    """Return the words of each sentence of the "tokens" of an object, and their places in its "text" if they are told.

    Tokens are strings, or objects as Prodigy and spaCy's `Doc.to_json` write them. None: there are none, or numbers
    beside a text, as of a tokenizer of pieces: the text is to be split. Raises Unusable if they are no words.
    """
    tokens, text, sents = (record.get(name) for name in ("tokens", "text", "sents"))
    if "tokens" not in record:
        return None
    if not isinstance(tokens, list):
        raise Unusable('"tokens" is no list of strings or of objects')
    if text is not None and tokens and all(type(token) is int for token in tokens):
        return None
    pairs = [_word_and_place(token, text) for token in tokens]
    checked_words([word for word, _ in pairs])
    known = all(place is not None for _, place in pairs) and bool(pairs)
    starts = {each.get("start") for each in sents if isinstance(each, dict)} if isinstance(sents, list) else set()
    sentences: list[tuple[list[str], Offsets | None]] = [([], [] if known else None)]
    for word, place in pairs:
        if place is not None and place[0] in starts:
            sentences.append(([], [] if known else None))
        if not word.isspace():
            words, places = sentences[-1]
            words.append(word)
            if places is not None and place is not None:
                places.append(place)
    return sentences


def _word_and_place(token: Any, text: Any) -> tuple[str, tuple[int, int] | None]:
    word, place = token, None
    if isinstance(token, dict):
        start, end, word = (token.get(name) for name in ("start", "end", "text"))
        if isinstance(text, str) and isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text):
            word = text[start:end] if word is None else word
            place = (start, end) if text[start:end] == word else None
    if not isinstance(word, str):
        raise Unusable('"tokens" is no list of strings or of objects with "text"')
    return word, place


def record_text(record: dict[str, Any], text_field: str | None = None) -> str:
    """Return the text of an object. Raises Unusable if it is no text that can be encoded."""
    text = record[text_field or "text"]
    if not isinstance(text, str):
        raise Unusable(f'"{text_field or "text"}" is no string')
    return encodable(_without_nul(text))


def checked_words(words: list[str]) -> list[str]:
    """Return the words that a file lists, without blank ones. Raises Unusable if one is empty, or can't be a word."""
    if not all(words):
        raise Unusable("an empty token")
    encodable(_without_nul(" ".join(words)))
    return [word for word in words if not word.isspace()]


def line_of(words: Iterable[str]) -> str:
    """Return words separated by blanks. Blanks inside of a word are written as U+2423, so that it stays one word."""
    return " ".join("\u2423".join(word.split()) for word in words)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise Unusable("a NUL character")
    return text


def encodable(text: str) -> str:
    """Return a text. Raises Unusable if it can't be written as UTF-8."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise Unusable("half a surrogate pair, which is no character") from error
    return text


Splitter = Callable[[str], list[str]]

RENEWED_AFTER = 20_000_000  # characters after which the tokenizer is replaced by a new one
_LONGEST = 1_000_000  # characters: nlp.max_length, which the tokenizer by itself does not check


@lru_cache(maxsize=1)  # English's tokenizer takes 75 ms to make
def splitter(language: str | None) -> Splitter:
    """Return a function that splits a text into words: spaCy's tokenizer of a language, or str.split."""
    return str.split if language is None else Tokenize(partial(blank, language))


class Tokenize:
    """Splits text with the tokenizer of a pipeline that `load` makes, without whitespace tokens."""

    def __init__(self, load: Callable[[], Language]) -> None:
        self._load = load
        self._nlp, self._read = load(), 0

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text. Raises Unusable if it can't be tokenised."""
        return [token.text for token in self._tokens(text) if not token.is_space]

    def words_and_offsets(self, text: str) -> tuple[list[str], Offsets]:
        """Return the words of a text, and the places of each in it: of its first character, and after its last one."""
        tokens = [token for token in self._tokens(text) if not token.is_space]
        return [token.text for token in tokens], [(token.idx, token.idx + len(token)) for token in tokens]

    def _tokens(self, text: str) -> Doc:
        if len(text) > _LONGEST:
            raise Unusable(f"more than {_LONGEST:,} characters to be tokenised")
        self._read += len(text)
        if self._read > RENEWED_AFTER:
            self._nlp, self._read = self._load(), len(text)
        # spaCy refuses subclasses of str, such as those that numpy has
        return self._nlp.tokenizer(str(encodable(text)))


def blank(language: str) -> Language:
    """Return an empty pipeline of a language. Raises CorpusError if spaCy does not know it, or its tokenizer fails."""
    try:
        return spacy.blank(language)
    except (ImportError, ValueError, AttributeError) as error:  # AttributeError: of other modules in spacy.lang
        if isinstance(error, ImportError) and "E048" not in str(error):  # E048: no such language
            raise CorpusError(
                f"spaCy's tokenizer for the language {shown(language)} needs a package that is not installed "
                f"({error}). Install it, or leave the language out and separate the words by blanks."
            ) from error
        raise CorpusError(
            f"the language is {shown(language)}, which can't be used ({error}). Expected the code of a language that "
            "spaCy knows, like en or xx; or none if the words are separated by blanks already."
        ) from error


def read_sentences(file: IO[str], source: str, *, keys: bool = False) -> list[str]:
    """Return all lines of an open text, stripped. keys: whether each must do as the name of an HDF5 dataset, once."""
    lines: list[str] = []
    try:
        for line in file:
            if not isinstance(line, str):
                raise CommandError(f"{source}: opened as bytes. Expected text: open it without the b in its mode.")
            lines.append(line.strip())
    except UnicodeDecodeError as error:
        # Python decodes text in blocks. The bad block starts in the line after the one that was read last.
        before = error.object[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        encoding = error.encoding.upper()
        raise CommandError(
            f"{source}: line {len(lines) + 1 + before} is not {encoding} ({error.reason}). Expected text in {encoding} "
            "throughout: convert the file, for example with iconv, or correct that line."
        ) from error
    except OSError as error:
        raise CommandError(f"{source}: can't be read ({error}). Expected text, one sentence a line.") from error
    empty = [number for number, line in enumerate(lines, 1) if not line]
    if empty:
        raise CommandError(
            f"{source}: these lines are empty: {listed(empty)}. Expected a sentence in every line: remove the empty "
            "ones. Or let python -m spacy elmo embed leave them out: give --lang CODE, whose tokenizer then splits the "
            "text, or write another file than HDF5, such as a .spacy file."
        )
    seen: dict[str, int] = {}
    for number, line in enumerate(lines if keys else (), 1):
        if problem := key_problem(line):
            raise CommandError(
                f"{source}: line {number} can't be the key of its vectors: {problem}. Leave out "
                "--use-sentence-keys (use_sentence_keys), or change the line."
            )
        if (first := seen.setdefault(line, number)) != number:
            raise CommandError(
                f"{source}: the lines {first} and {number} are the same sentence. Expected each key once: leave out "
                "--use-sentence-keys (use_sentence_keys), or remove one of the lines."
            )
    return lines
