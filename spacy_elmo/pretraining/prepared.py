"""A corpus on disk: its text was read and tokenised once, and is mapped into memory."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import CorpusError, shown
from ..formats import outputs
from ..formats.atomic import is_unfinished, replacing_folder, writing
from ..formats.paths import Name, expanded
from ..text.files import STANDARD_INPUT, text_files
from ..text.stream import BadLine, Fields, Report, read_sentences

TEXT, OFFSETS, LENGTHS, META = FILES = "sentences.txt", "offsets.npy", "lengths.npy", "meta.json"
VERSION = 1


SourceFile = tuple[str, int, int]  # path, bytes and st_mtime_ns


@dataclass(frozen=True)
class Meta:
    """The content of meta.json.

    language: None if words were separated by blanks. sha256: of sentences.txt. text_column, text_field: as of
    `read_documents`.
    """

    report: Report
    sources: list[SourceFile]
    language: str | None
    sha256: str = ""
    text_column: str | None = None
    text_field: str | None = None

    def is_of(self, other: Meta) -> bool:
        """Return whether it was prepared in this way from the same files, of which sizes and times are as before."""
        old, new = ([(os.path.realpath(path), *facts) for path, *facts in meta.sources] for meta in (self, other))
        settings = ("language", "text_column", "text_field")
        return old == new and all(getattr(self, name) == getattr(other, name) for name in settings)


def map_array(path: Path, dtype: npt.DTypeLike, ndim: int = 1) -> npt.NDArray[Any]:
    """Map an .npy file into memory. Raises OSError or ValueError if it has no such array."""
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except EOFError as error:
        raise ValueError(f"{path.name}: {error}") from error
    if array.dtype != dtype or array.ndim != ndim:
        raise ValueError(f"{path.name} has numbers of type {array.dtype} in the shape {array.shape}")
    return array.view(np.ndarray)  # a memmap takes longer to index


def heldout_sentences(sentences: int, share: float) -> int:
    """Return how many sentences are held out: a share of them, rounded, but 1 at least and not all, or CorpusError."""
    if sentences < 2:
        raise CorpusError(
            f"paths.train has {sentences} sentence. Expected at least two, since a part is held out: give more text, "
            "or another one to hold out, paths.heldout (init-pretrain-config: --heldout)."
        )
    return min(max(1, round(sentences * share)), sentences - 1)


class PreparedCorpus:
    """Consecutive sentences of a folder that `prepare` has written, mapped into memory: at first all of them.

    A pickle of it holds the folder and the range. The attribute `meta` describes all sentences of the folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = expanded(folder)
        if not (self.folder / META).exists():
            raise CorpusError(
                f"{folder}: no prepared corpus. Expected the folder that preparing a text has made. A run that has "
                "checkpoints needs a copy of it, or a new start: pretrain --restart."
            )
        try:
            if is_unfinished(self.folder):
                raise ValueError("a process was killed while it replaced the files")
            self.meta = _read_meta(self.folder / META)
            self._offsets = map_array(self.folder / OFFSETS, np.int64)
            self._lengths = map_array(self.folder / LENGTHS, np.int32)
            with (self.folder / TEXT).open("rb") as file:
                self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.start, self.stop = 0, len(self._lengths)
            # an offset that is wrong in the middle shows in the sentence before it
            got = [len(self), self.n_tokens, *self._offsets[[0, -1]].tolist(), len(self._offsets)]
            report = self.meta.report
            if got != [report.sentences, report.tokens, 0, len(self._text), len(self) + 1] or self.lengths.min() < 1:
                raise ValueError("its files do not fit each other")
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            self._damaged(error)

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[list[str]]:
        return (self.sentence(number) for number in range(len(self)))

    @cached_property
    def n_tokens(self) -> int:
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """The number of words of each sentence, *Shape:* (sentences,)."""
        part: npt.NDArray[np.int32] = self._lengths[self.start : self.stop]
        return part

    def sentence(self, number: int) -> list[str]:
        """Return the words of a sentence. Raises CorpusError if its text is damaged."""
        number += self.start
        begin, end = self._offsets[number], self._offsets[number + 1]
        line, words = self._text[begin:end] if 0 <= begin < end else b"", []
        if line.find(b"\n") == len(line) - 1:
            with suppress(UnicodeDecodeError):
                words = line.decode("utf8").split()
                if b"\0" in line:
                    words = [_ESCAPED.sub(lambda match: chr(int(match[1], 16)), word) for word in words]
        if len(words) != self._lengths[number]:
            self._damaged(f"sentence {number} has {len(words)} words, not {self._lengths[number]}")
        return words

    def part(self, start: int, stop: int) -> PreparedCorpus:
        """Return sentences start to stop - 1 as a corpus."""
        part = object.__new__(PreparedCorpus)
        part.__dict__ |= vars(self) | {"start": self.start + start, "stop": self.start + stop}
        part.__dict__.pop("n_tokens", None)
        return part

    def cut(self, share: float) -> tuple[PreparedCorpus, PreparedCorpus]:
        """Return the training part and the held-out part: a share of the sentences, rounded, the last ones."""
        border = len(self) - heldout_sentences(len(self), share)
        return self.part(0, border), self.part(border, len(self))

    def count_repeated(self, others: PreparedCorpus) -> int:
        """Return how many of these sentences another corpus has too, word for word. Only these are in memory."""
        wanted = Counter(map(hash, self._lines()))
        return sum(wanted.pop(hash(line), 0) for line in others._lines())

    def _lines(self) -> Iterator[bytes]:
        with (self.folder / TEXT).open("rb") as file:
            file.seek(int(self._offsets[self.start]))
            yield from islice(file, len(self))

    def verify(self) -> None:
        """Raise CorpusError if the text's SHA-256 is not the one in meta.json."""
        digest = hashlib.sha256(self._text).hexdigest()
        if digest != self.meta.sha256:
            self._damaged(f"the SHA-256 of {TEXT} is {digest}, not {self.meta.sha256}")

    def _damaged(self, reason: object) -> NoReturn:
        raise CorpusError(
            f"{self.folder}: the prepared corpus is damaged ({reason}). Delete the folder and prepare it again. A run "
            "that has checkpoints needs a copy of it, or a new start: pretrain --restart."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.folder, self.meta.sha256, self.start, self.stop)


def _reopened(folder: Path, sha256: str, start: int, stop: int) -> PreparedCorpus:
    corpus = PreparedCorpus(folder)
    if corpus.meta.sha256 != sha256:
        raise CorpusError(f"{folder}: meanwhile another corpus was prepared there. Start again with the new one.")
    return corpus.part(start, stop)


def _read_meta(path: Path) -> Meta:
    record = json.loads(path.read_bytes())
    if record["version"] != VERSION:
        raise ValueError(f"its format has version {shown(record['version'])}, not {VERSION}")
    report = record["report"]
    report["bad"] = [BadLine(*line) for line in report["bad"]]
    sources = [(path, size, time) for path, size, time in record["sources"]]
    columns = (record.get("text_column"), record.get("text_field"))  # earlier versions have neither
    return Meta(Report(**report), sources, record["language"], record["sha256"], *columns)


def prepare(
    source: Name,
    folder: str | os.PathLike[str],
    language: str | None = None,
    output: str | os.PathLike[str] | None = None,
    text_column: str | None = None,
    text_field: str | None = None,
) -> PreparedCorpus:
    """Read a text and write its sentences to a folder. Memory does not grow with the text.

    A corpus of the same files and the same settings is used unchanged, any other one is replaced. Only one process at a
    time may prepare a folder.

    source and all others: see `read_sentences`. output: a folder whose files do not belong to the source.
    """
    folder = expanded(folder)
    report = Report()
    meta = Meta(report, source_files(source, output), language, "", text_column, text_field)
    left_out = output is not None
    with outputs.output(folder, CorpusError, [source], names=FILES, marks=(META,), left_out=left_out):
        with suppress(CorpusError):  # there is none, or it is damaged
            earlier = PreparedCorpus(folder)
            if earlier.meta.is_of(meta):
                return earlier
            del earlier  # Windows replaces no file that is mapped
        with replacing_folder(folder, FILES, CorpusError) as temporary, writing(folder, CorpusError):
            fields: Fields = {"text_column": text_column, "text_field": text_field}
            write_corpus(read_sentences(source, language, report, output=output, **fields), temporary, meta)
            for name in FILES:
                with (temporary / name).open("rb+") as file:
                    os.fsync(file.fileno())
    return PreparedCorpus(folder)


def write_corpus(sentences: Iterable[list[str]], folder: Path, meta: Meta) -> int:
    """Write sentences to an empty folder, and return how many they are. Raises OSError.

    - sentences.txt: UTF-8, a sentence a line, words separated by one blank; a blank inside of a word is NUL, its code
      point in hexadecimal digits, and a semicolon;
    - offsets.npy: int64, *Shape:* (sentences + 1,), the byte at which each sentence begins, and the size of the file;
    - lengths.npy: int32, *Shape:* (sentences,), the number of words of each sentence;
    - meta.json: `meta`, completed.
    """
    digest, position, n_sentences, n_tokens = hashlib.sha256(), 0, 0, 0
    # the arrays are written as plain numbers first, since their lengths are not known before the end
    raw = {name: folder / f"{name}.raw" for name in (OFFSETS, LENGTHS)}
    with (folder / TEXT).open("wb") as text, raw[OFFSETS].open("wb") as offsets, raw[LENGTHS].open("wb") as lengths:
        offsets.write(struct.pack("=q", 0))
        for words in sentences:
            line = _line(words)
            text.write(line)
            digest.update(line)
            position, n_sentences, n_tokens = position + len(line), n_sentences + 1, n_tokens + len(words)
            offsets.write(struct.pack("=q", position))
            lengths.write(struct.pack("=i", len(words)))
    for name, dtype in ((OFFSETS, np.int64), (LENGTHS, np.int32)):
        empty = not raw[name].stat().st_size  # which can't be mapped
        np.save(folder / name, np.empty(0, dtype) if empty else np.memmap(raw[name], dtype, "r"))
        raw[name].unlink()
    record = {"version": VERSION} | asdict(meta) | {"sha256": digest.hexdigest()}
    record["report"] |= {"sentences": n_sentences, "tokens": n_tokens}
    (folder / META).write_text(json.dumps(record, indent=2) + "\n", encoding="utf8")
    return n_sentences


def digest_of(sentences: Iterable[list[str]]) -> str:
    """Return the SHA-256 that a corpus of these sentences has."""
    digest = hashlib.sha256()
    for words in sentences:
        digest.update(_line(words))
    return digest.hexdigest()


# a blank inside of a word; no text has NUL
_BLANK, _ESCAPED = re.compile(r"\s"), re.compile("\0([0-9a-f]{1,5});")


def _line(words: list[str]) -> bytes:
    return (" ".join(_BLANK.sub(lambda match: f"\0{ord(match[0]):x};", word) for word in words) + "\n").encode("utf8")


def source_files(source: Name, output: Name | None = None) -> list[SourceFile]:
    """Return the files of a source as meta.json lists them; of standard input, which has no name, nothing."""
    paths = [each.path for each in text_files(source, output) if each.path != STANDARD_INPUT]
    return [(os.path.realpath(path), status.st_size, status.st_mtime_ns) for path in paths for status in [path.stat()]]
