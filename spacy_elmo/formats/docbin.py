"""Reads the words and the sentence boundaries of spaCy's DocBins, which may be damaged or hostile."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import spacy
from spacy.attrs import DEP, HEAD, IDS, ORTH, SENT_START
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab
from srsly.msgpack import Unpacker

from ..errors import SOURCE_DAMAGED, CorpusError, shown
from .unpacking import unpacked

_ATTRIBUTES = 1000  # attributes of a token, at most; spaCy has about 90
_VALUES = 10_000_000  # in the user data of a doc, which take less than 1 GB then
UNKNOWN_SPACES = "has_unknown_spaces"


class TooLargeError(ValueError):
    """The data unpack to more bytes than the limit."""


def read_parts(data: bytes, limit: int, user_data: bool) -> dict[str, Any]:
    """Return the parts of a DocBin's message that are needed.

    They are attrs (list of int), strings (sorted list of str), tokens, spaces and lengths (bytes), flags (for each doc
    whether its spaces are unknown), and if wanted user_data (for each doc bytes or None).

    data: what DocBin.to_bytes returned.
    limit: number of bytes that the data may unpack to.
    user_data: whether they are wanted.

    Raises TooLargeError if they are more, and other exceptions if the data are damaged.
    """
    message = _unpacked(data, limit)
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
            parts[name] = [_has_unknown_spaces(unpacker) for _ in range(_n_docs(unpacker, parts, name))]
        elif name == "user_data" and user_data:
            parts[name] = [_bytes_or_none(unpacker.unpack()) for _ in range(_n_docs(unpacker, parts, name))]
        elif name in ("tokens", "spaces", "lengths"):
            parts[name] = _checked(unpacker.unpack(), bytes)
        else:
            unpacker.skip()
    return parts


def read_user_data(packed: bytes) -> dict[Any, Any]:
    """Return the user data of a doc. Raises ValueError or an exception of msgpack if they are damaged.

    packed: one of a DocBin's user_data. Each empty list of them is a byte there, and 56 bytes in memory.
    """
    n = 0

    def count(values: Any) -> Any:
        nonlocal n
        n += 1 + len(values)
        if n > _VALUES:
            raise ValueError(f"user data of more than {_VALUES:,} values")
        return values

    limits = {"max_buffer_size": max(1, len(packed)), "max_array_len": _VALUES}  # a buffer of 0 bytes has no limit
    unpacker = Unpacker(raw=False, use_list=False, strict_map_key=False, list_hook=count, object_hook=count, **limits)
    unpacker.feed(packed)
    return cast(dict[Any, Any], _checked(unpacker.unpack(), dict))


def _unpacked(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj()
    message = stream.decompress(data, limit + 1)
    if len(message) > limit:
        raise TooLargeError
    if not stream.eof or stream.unused_data:
        raise ValueError("cut short, or with other data after its end")
    return message


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


def _n_docs(unpacker: Unpacker, parts: dict[str, Any], name: str) -> int:
    """Return the length of a list that has a value for each doc. spaCy writes the lengths of the docs before it."""
    if "lengths" not in parts:
        raise ValueError(f"no lengths of docs before the {name}")
    n: int = unpacker.read_array_header()
    if n != len(parts["lengths"]) // np.dtype(np.int32).itemsize:
        raise ValueError(f"{n:,} {name}, which are not as many as docs")
    return n


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{type(value).__name__} in place of {kind.__name__}")
    return value


def _bytes_or_none(value: Any) -> bytes | None:
    """Return user data; None for a doc of a DocBin that had none, before it was merged with one that has some."""
    return None if value is None else cast(bytes, _checked(value, bytes))


def _has_unknown_spaces(unpacker: Unpacker) -> bool:
    result = False
    for _ in range(unpacker.read_map_header()):
        if _checked(unpacker.unpack(), str) == UNKNOWN_SPACES:
            result = _checked(unpacker.unpack(), bool)
        else:
            unpacker.skip()
    return result


# The columns that decide about words and sentences.
_COLUMNS = (ORTH, SENT_START, HEAD, DEP)
_ALL_COLUMNS = frozenset(IDS.values())
# A DocBin may unpack to this many bytes, or to this multiple of its file's size if that is more. Docs without
# annotations pack to a twentieth of their size (measured).
_DOCS_BYTES, _DOCS_TIMES = 1 << 28, 64


def docs_in(path: Path, annotated: bool = False) -> Iterator[Doc]:
    """Yield the docs of a .spacy file, which may be packed.

    path: the file. All of it is in memory at once.
    annotated: whether the docs have the annotations of their tokens, and user data; false: they have their words and
        sentence boundaries and nothing else.

    Raises CorpusError if it is damaged, or unpacks to more bytes or values than docs would.
    """
    data, limit = docbin_bytes(path)
    try:
        yield from read_docs(data, limit, annotated)
    except TooLargeError as error:
        raise CorpusError(
            f"{path}: its docs unpack to more than {limit:,} bytes. Docs do not pack that well: the file is "
            "damaged, or made to take memory. If they are real, write them into several files."
        ) from error
    except Exception as error:  # a damaged file fails anywhere in zlib, msgpack, numpy or spaCy
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> CorpusError:
    """Return the error that tells that a file is damaged. error: what was raised because of that."""
    reason = error if str(error) else type(error).__name__
    return CorpusError(SOURCE_DAMAGED.format(path=path, reason=reason))


def docbin_bytes(path: Path) -> tuple[bytes, int]:
    """Return what a .spacy file holds, and the number of bytes that its message may unpack to.

    path: the file, which may be packed.

    Raises CorpusError if it can't be read, or if it holds more than that number of bytes.
    """
    with unpacked(path) as file:
        limit = max(_DOCS_BYTES, _DOCS_TIMES * path.stat().st_size)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise CorpusError(
            f"{path}: its docs unpack to more than {limit:,} bytes. Docs do not pack that well: the file is "
            "damaged, or made to take memory. If they are real, write them into several files."
        )
    return data, limit


def sentences_of(doc: Doc) -> list[Span]:
    """Return the sentences of a doc. A doc without sentence boundaries is one sentence."""
    return list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]


def read_docs(data: bytes, limit: int, annotated: bool = False) -> Iterator[Doc]:
    """Yield the docs of a DocBin, without categories and span groups.

    spaCy's reader unpacks and parses all of the data before it checks anything. Here the message is read part by part,
    and these parts are read: attrs, strings, tokens, spaces, lengths and flags, and user_data if `annotated`.

    data: what DocBin.to_bytes returned.
    limit: number of bytes that the data may unpack to.
    annotated: as in `docs_in`.

    Raises TooLargeError if they are more, and other exceptions, among them some of spaCy, if the data are damaged.
    """
    parts = read_parts(data, limit, user_data=annotated)
    attrs, strings = parts["attrs"], parts["strings"]
    lengths = np.frombuffer(parts["lengths"], np.int32)
    if not attrs or lengths.min(initial=0) < 0:
        raise ValueError("no attributes, or docs of less than 0 words")
    n_words = int(lengths.sum(dtype=np.int64))
    tokens = np.frombuffer(parts["tokens"], np.uint64)
    spaces = np.frombuffer(parts["spaces"], np.uint8) != 0  # as bytes: a damaged bool may be neither true nor false
    if len(tokens) != n_words * len(attrs) or len(spaces) != n_words:
        raise ValueError(f"{len(tokens):,} values and {len(spaces):,} spaces of {n_words:,} words")
    wanted = _ALL_COLUMNS if annotated else _COLUMNS
    columns = {attribute: i for i, attribute in enumerate(attrs) if attribute in wanted}  # two columns of one are equal
    flags = parts.get("flags", [False] * len(lengths))
    if len(flags) != len(lengths):
        raise ValueError(f"flags of {len(flags):,} docs, not of {len(lengths):,}")
    table = tokens.reshape(n_words, len(attrs))[:, list(columns.values())]
    user_data = parts.get("user_data", [])
    return _docs(list(columns), strings, table, spaces, lengths, flags, user_data, annotated)


def _docs(
    attrs: list[int],
    strings: list[str],
    table: npt.NDArray[np.uint64],
    spaces: npt.NDArray[np.bool_],
    lengths: npt.NDArray[np.int32],
    flags: list[bool],
    user_data: list[bytes | None],
    annotated: bool,
) -> Iterator[Doc]:
    """Yield the docs as spaCy makes them.

    attrs: the attributes of the table's columns.
    strings: all words.
    table: *Shape:* (words of all docs, attributes).
    spaces: whether a space follows, *Shape:* (words of all docs,).
    lengths: number of words of each doc.
    flags: for each doc whether its spaces are unknown.
    user_data: packed user data of each doc, which may be None; empty if no doc has any.
    annotated: whether more than words is read.
    """
    borders = np.cumsum(lengths, dtype=np.int64)[:-1]
    docbin: Any = DocBin()
    docbin.attrs, docbin.strings = attrs, set(strings)
    docbin.tokens = np.split(table, borders) if len(lengths) else []
    docbin.spaces = np.split(spaces[:, None], borders) if len(lengths) else []
    docbin.flags = [{UNKNOWN_SPACES: flag} for flag in flags]
    docbin.cats, docbin.span_groups, docbin.user_data = [{}] * len(lengths), [b""] * len(lengths), []
    # A new Vocab, so that its strings are freed afterwards. Words need no language, but Vocab() knows no attributes
    # such as is_title.
    docs = docbin.get_docs(spacy.blank("xx").vocab if annotated else Vocab())
    for doc, packed in zip_longest(docs, user_data):
        if packed is not None:
            doc.user_data.update(read_user_data(packed))
        yield doc
