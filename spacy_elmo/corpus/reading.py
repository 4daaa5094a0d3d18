"""Reads the items of a corpus, file by file, without a look at what they say."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from ..errors import CorpusError, Errors, StandardInputWarning
from ..formats.text.docbin import docs_in, sentences_of
from ..formats.text.sources import find_files, kind_of
from ..formats.unpacking import PACKED, lines_of, unpacked, unpacked_size
from .documents import Item, Kind, Shard, size_of

STANDARD_INPUT_NAME = "-"
EXPECTED = (
    "text, .jsonl, .conllu or .spacy files (plain, .gz, .xz or .zst): one or several, folders or patterns; or - for "
    "standard input, which is text"
)
_KINDS: dict[str, Kind] = {".jsonl": "json", ".conllu": "conllu", ".spacy": "doc"}
_SAMPLED = 8  # packed files by which the size of all is estimated: each is unpacked a little
_LONGEST_SENTENCE = 1 << 24  # bytes of CoNLL-U without an empty line


def sources_of(inputs: Sequence[str | Path], output: str | Path | None = None) -> list[Path]:
    """Return the files of some inputs, in order.

    inputs: files, folders and patterns (see `find_files`), or "-", which is standard input.
    output: a folder whose files are left out of folders and patterns.

    Raises CorpusError if an input has no file, or if standard input comes twice.
    """
    if [str(name) for name in inputs].count(STANDARD_INPUT_NAME) > 1:
        raise CorpusError(Errors.CORPUS_STDIN_TWICE)
    found: list[Path] = []
    for name in inputs:
        found += [Path(name)] if str(name) == STANDARD_INPUT_NAME else find_files(name, output, EXPECTED)
    return found


def total_bytes(files: Iterable[Path]) -> int | None:
    """Return the number of bytes of files, an estimate if one is packed.

    None if one is a DocBin, no regular file (such as standard input or a pipe), or damaged: `read_items` says so.
    """
    total, packed = 0, []
    for path in files:
        if not path.is_file() or kind_of(path) == ".spacy":
            return None
        if path.suffix in PACKED:
            packed.append(path)
        else:
            total += path.stat().st_size
    sample = packed[:_SAMPLED]
    try:
        unpacked_bytes = sum(map(unpacked_size, sample))
    except CorpusError:
        return None
    sizes = [path.stat().st_size for path in packed]
    return total + unpacked_bytes * sum(sizes) // max(1, sum(sizes[:_SAMPLED]))


def read_items(files: Iterable[Path]) -> Iterator[Item]:
    """Yield the items of files, which are read while the items are consumed.

    files: each is text, .jsonl, .conllu or .spacy, perhaps packed as .gz, .xz or .zst; "-" is standard input, text.

    Warns if standard input looks like JSON lines.
    Raises CorpusError if a file is damaged or can't be read.
    """
    for path in files:
        if str(path) == STANDARD_INPUT_NAME:
            for item in _lines(standard_input(), "standard input", "text"):
                if item.line == 1 and item.data is not None:
                    warn_of_json(item.data[:8].decode("utf-8-sig", "ignore"))
                yield item
            continue
        kind = _KINDS.get(kind_of(path), "text")
        if kind == "doc":
            yield from _docs(path)
            continue
        with unpacked(path) as file:
            yield from _sentences(file, str(path)) if kind == "conllu" else _lines(file, str(path), kind)


def standard_input() -> IO[bytes]:
    """Return standard input.

    Raises CorpusError if it is closed, as it may be for a program in the background, or if it is no stream of bytes.
    """
    if sys.stdin is None:
        raise CorpusError(Errors.SOURCE_DAMAGED.format(path="standard input", reason="it is closed"))
    if not hasattr(sys.stdin, "buffer"):  # a program may have put a StringIO there
        raise CorpusError(Errors.SOURCE_DAMAGED.format(path="standard input", reason="it has text, not bytes"))
    return sys.stdin.buffer


def warn_of_json(text: str) -> None:
    """Warn if standard input looks like JSON lines. text: its beginning."""
    if text.startswith('{"'):
        warnings.warn(Errors.CORPUS_STDIN_JSON.format(), StandardInputWarning, stacklevel=2)


def cut(items: Iterable[Item], size: int) -> Iterator[Shard]:
    """Divide items into shards: each is complete as soon as it has that many bytes.

    items: of a corpus.
    size: bytes of a shard.
    """
    number, held, n = 0, [], 0
    for item in items:
        held.append(item)
        n += size_of(item)
        if n >= size:
            yield Shard(number, held)
            number, held, n = number + 1, [], 0
    if held:
        yield Shard(number, held)


def _lines(file: IO[bytes], source: str, kind: Kind) -> Iterator[Item]:
    for number, line in enumerate(lines_of(file), 1):
        yield Item(source, number, kind, line)


def _sentences(file: IO[bytes], source: str) -> Iterator[Item]:
    """Yield the sentences of CoNLL-U, which empty lines separate."""
    block, start, too_long = io.BytesIO(), 1, False
    for number, line in enumerate(lines_of(file), 1):
        if line is not None and not line.strip():
            if block.tell() or too_long:
                yield Item(source, start, "conllu", None if too_long else block.getvalue())
            block, start, too_long = io.BytesIO(), number + 1, False
        elif line is None or block.tell() + len(line) > _LONGEST_SENTENCE:
            too_long = True
        else:
            block.write(line)
    if block.tell() or too_long:
        yield Item(source, start, "conllu", None if too_long else block.getvalue())


def _docs(path: Path) -> Iterator[Item]:
    for number, doc in enumerate(docs_in(path), 1):
        marked = doc.has_annotation("SENT_START")
        record = {
            "words": [token.text for token in doc],
            "spaces": None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc],
            "ends": [span.end for span in sentences_of(doc)] if marked else None,
        }
        yield Item(str(path), number, "doc", json.dumps(record).encode())
