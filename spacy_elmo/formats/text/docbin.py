"""Reads the words and the sentence boundaries of spaCy's DocBins, which may be damaged or hostile."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.attrs import DEP, HEAD, ORTH, SENT_START
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab
from srsly.msgpack import Unpacker

from ...errors import CorpusError, Errors, shown
from ..unpacking import unpacked

# The columns that decide about words and sentences.
_COLUMNS = (ORTH, SENT_START, HEAD, DEP)
_ATTRIBUTES = 1000  # attributes of a token, at most; spaCy has about 90
_UNKNOWN_SPACES = "has_unknown_spaces"
# A DocBin may unpack to this many bytes, or to this multiple of its file's size if that is more. Docs without
# annotations pack to a twentieth of their size (measured).
_DOCS_BYTES, _DOCS_TIMES = 1 << 28, 64
_PACKED_BYTES = 1 << 14  # that are unpacked at a time to find the size: to 16 MiB at most


def docs_in(path: Path) -> Iterator[Doc]:
    """Yield the docs of a .spacy file, which may be packed, with their words and sentence boundaries and nothing else.

    path: the file. All of it is in memory at once.

    Raises CorpusError if it is damaged, or unpacks to more bytes than docs would.
    """
    data, limit = docbin_bytes(path)
    try:
        yield from read_docs(data, limit)
    except TooLargeError as error:
        raise CorpusError(Errors.SOURCE_DOCS.format(path=path, limit=limit)) from error
    except Exception as error:  # a damaged file fails anywhere in zlib, msgpack, numpy or spaCy
        reason = error if str(error) else type(error).__name__
        raise CorpusError(Errors.SOURCE_DAMAGED.format(path=path, reason=reason)) from error


def docbin_bytes(path: Path) -> tuple[bytes, int]:
    """Return what a .spacy file holds, and the number of bytes that its message may unpack to.

    path: the file, which may be packed.

    Raises CorpusError if it can't be read, or if it holds more than that number of bytes.
    """
    with unpacked(path) as file:
        limit = max(_DOCS_BYTES, _DOCS_TIMES * path.stat().st_size)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise CorpusError(Errors.SOURCE_DOCS.format(path=path, limit=limit))
    return data, limit


def check_docs_size(data: bytes, limit: int) -> None:
    """Raise TooLargeError if a DocBin unpacks to more bytes than a limit. It is unpacked part by part to see that.

    data: what DocBin.to_bytes returned.
    """
    stream, size = zlib.decompressobj(), 0
    for start in range(0, len(data), _PACKED_BYTES):
        size += len(stream.decompress(data[start : start + _PACKED_BYTES]))
        if size > limit:
            raise TooLargeError
        if stream.eof:
            return


def sentences_of(doc: Doc) -> list[Span]:
    """Return the sentences of a doc. A doc without sentence boundaries is one sentence."""
    return list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]


def read_docs(data: bytes, limit: int) -> Iterator[Doc]:
    """Yield the docs of a DocBin, with their words and sentence boundaries and nothing else.

    spaCy's reader unpacks and parses all of the data before it checks anything. Here the message is read part by part,
    and only these parts are read: attrs, strings, tokens, spaces, lengths and flags.

    data: what DocBin.to_bytes returned.
    limit: number of bytes that the data may unpack to.

    Raises TooLargeError if they are more, and other exceptions, among them some of spaCy, if the data are damaged.
    """
    parts = _parts(_unpacked(data, limit))
    attrs, strings = parts["attrs"], parts["strings"]
    lengths = np.frombuffer(parts["lengths"], np.int32)
    if not attrs or lengths.min(initial=0) < 0:
        raise ValueError("no attributes, or docs of less than 0 words")
    n_words = int(lengths.sum(dtype=np.int64))
    tokens = np.frombuffer(parts["tokens"], np.uint64)
    spaces = np.frombuffer(parts["spaces"], np.uint8) != 0  # as bytes: a damaged bool may be neither true nor false
    if len(tokens) != n_words * len(attrs) or len(spaces) != n_words:
        raise ValueError(f"{len(tokens):,} values and {len(spaces):,} spaces of {n_words:,} words")
    columns = [i for i, attribute in enumerate(attrs) if attribute in _COLUMNS]
    if len({attrs[i] for i in columns}) < len(columns):
        raise ValueError("an attribute comes twice")
    flags = parts.get("flags", [False] * len(lengths))
    if len(flags) != len(lengths):
        raise ValueError(f"flags of {len(flags):,} docs, not of {len(lengths):,}")
    table = tokens.reshape(n_words, len(attrs))[:, columns]
    return _docs([attrs[i] for i in columns], strings, table, spaces, lengths, flags)


class TooLargeError(ValueError):
    """The data unpack to more bytes than the limit."""


def _docs(
    attrs: list[int],
    strings: list[str],
    table: npt.NDArray[np.uint64],
    spaces: npt.NDArray[np.bool_],
    lengths: npt.NDArray[np.int32],
    flags: list[bool],
) -> Iterator[Doc]:
    """Yield the docs as spaCy makes them.

    attrs: the attributes of the table's columns.
    strings: all words.
    table: *Shape:* (words of all docs, attributes).
    spaces: whether a space follows, *Shape:* (words of all docs,).
    lengths: number of words of each doc.
    flags: for each doc whether its spaces are unknown.
    """
    borders = np.cumsum(lengths, dtype=np.int64)[:-1]
    docbin: Any = DocBin()
    docbin.attrs, docbin.strings = attrs, set(strings)
    docbin.tokens = np.split(table, borders) if len(lengths) else []
    docbin.spaces = np.split(spaces[:, None], borders) if len(lengths) else []
    docbin.flags = [{_UNKNOWN_SPACES: flag} for flag in flags]
    docbin.cats, docbin.span_groups, docbin.user_data = [{}] * len(lengths), [b""] * len(lengths), []
    # A new Vocab, so that its strings are freed afterwards. It needs no language, since only words are read.
    yield from docbin.get_docs(Vocab())


def _unpacked(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj()
    message = stream.decompress(data, limit + 1)
    if len(message) > limit:
        raise TooLargeError
    if not stream.eof or stream.unused_data:
        raise ValueError("cut short, or with other data after its end")
    return message


def _parts(message: bytes) -> dict[str, Any]:
    """Return the parts of a DocBin's message that are needed. Raises ValueError if it is damaged."""
    unpacker = Unpacker(raw=False, max_buffer_size=len(message), max_ext_len=0)
    unpacker.feed(message)
    parts: dict[str, Any] = {}
    for _ in range(unpacker.read_map_header()):
        name = unpacker.unpack()
        if name in parts:
            raise ValueError(f"{name} comes twice")
        if name == "attrs":
            parts[name] = _values(unpacker, int, _ATTRIBUTES)
        elif name == "strings":
            parts[name] = _words(unpacker)
        elif name == "flags":
            parts[name] = _flags(unpacker, parts)
        elif name in ("tokens", "spaces", "lengths"):
            parts[name] = _checked(unpacker.unpack(), bytes)
        else:
            unpacker.skip()
    return parts


def _values(unpacker: Unpacker, kind: type, limit: int) -> list[Any]:
    n = unpacker.read_array_header()
    if n > limit:
        raise ValueError(f"a list of {n:,}")
    return [_checked(unpacker.unpack(), kind) for _ in range(n)]


def _words(unpacker: Unpacker) -> list[str]:
    """Return the strings. spaCy writes each once; else a small file might have hundreds of millions."""
    words: set[str] = set()
    for _ in range(unpacker.read_array_header()):
        word = _checked(unpacker.unpack(), str)
        if word in words:
            raise ValueError(f"the string {shown(word)} comes twice")
        words.add(word)
    return sorted(words)


def _flags(unpacker: Unpacker, parts: dict[str, Any]) -> list[bool]:
    """Return for each doc whether its spaces are unknown. spaCy writes the lengths of the docs before the flags."""
    n = unpacker.read_array_header()
    if n != len(parts.get("lengths", b"")) // np.dtype(np.int32).itemsize:
        raise ValueError(f"{n:,} flags, which are not as many as docs")
    return [_has_unknown_spaces(unpacker) for _ in range(n)]


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{type(value).__name__} in place of {kind.__name__}")
    return value


def _has_unknown_spaces(unpacker: Unpacker) -> bool:
    result = False
    for _ in range(unpacker.read_map_header()):
        if _checked(unpacker.unpack(), str) == _UNKNOWN_SPACES:
            result = _checked(unpacker.unpack(), bool)
        else:
            unpacker.skip()
    return result
