"""A corpus on disk: its text was read and tokenised once, and is mapped into memory."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import SOURCE_DAMAGED, CorpusError, SettingsError, shown
from ..formats.atomic import writing
from ..formats.strict_json import read_json
from ..formats.text import BadLine, find_files, refuse_inside, splitter
from .text import Report, heldout_sentences, read_files

_PREPARED_DAMAGED = (
    "{folder}: the prepared corpus is damaged ({reason}). Delete the folder and prepare it again. A run "
    "that has checkpoints needs a copy of it, or a new start: pretrain --restart."
)

TEXT, OFFSETS, LENGTHS, META = "sentences.txt", "offsets.npy", "lengths.npy", "meta.json"
VERSION = 1
_MOST_BYTES = 2**28  # of meta.json, which has about 100 for each file of the text


class SourceFile(NamedTuple):
    """A file that a prepared corpus was read from.

    mtime_ns: time of its last change, in nanoseconds since 1970.
    """

    path: str
    bytes: int
    mtime_ns: int

    @property
    def key(self) -> tuple[str, int, int]:
        """Name, size and time: if they are equal, it counts as the same file, even if its folder was moved."""
        return Path(self.path).name, self.bytes, self.mtime_ns


@dataclass(frozen=True)
class Meta:
    """The content of meta.json.

    language: of the spaCy tokenizer; None if words were separated by blanks.
    sha256: of sentences.txt, in hexadecimal. It tells one corpus from another.
    """

    report: Report
    sources: list[SourceFile]
    language: str | None
    sha256: str

    def is_of(self, sources: list[SourceFile], language: str | None) -> bool:
        """Return whether the corpus was prepared from these files, as they are now, with this tokenizer."""
        return [file.key for file in self.sources] == [file.key for file in sources] and self.language == language


def write_meta(folder: Path, meta: Meta) -> None:
    """Write meta.json into a folder. Raises OSError."""
    text = json.dumps({"version": VERSION} | asdict(meta), indent=2)
    (folder / META).write_text(text + "\n", encoding="utf8")


def read_meta(folder: Path) -> Meta:
    """Read meta.json of a folder. Raises CorpusError if it is missing, damaged or of another version."""
    try:
        record = read_json(folder / META, _MOST_BYTES)
    except OSError as error:
        raise CorpusError(
            f"{folder}: no prepared corpus ({error}). Expected the folder that preparing a text has made. A run "
            "that has checkpoints needs a copy of it, or a new start: pretrain --restart."
        ) from error
    except ValueError as error:
        raise CorpusError(_PREPARED_DAMAGED.format(folder=folder, reason=f"{META}: {error}")) from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION:
        raise CorpusError(
            f"{folder}: a prepared corpus in version {shown(version)} of its format. Expected version {VERSION}: "
            "prepare it again."
        )
    try:
        return _meta(record)
    except (KeyError, TypeError, ValueError) as error:
        raise CorpusError(_PREPARED_DAMAGED.format(folder=folder, reason=f"{META}: {error!r}")) from error


def _meta(record: dict[str, Any]) -> Meta:
    counts = {name: _int(record["report"][name]) for name in ("lines", "sentences", "tokens", "blank", "n_bad")}
    bad = [BadLine(str(file), _int(line), str(reason)) for file, line, reason in record["report"]["bad"]]
    sources = [SourceFile(str(path), _int(size), _int(mtime)) for path, size, mtime in record["sources"]]
    language, sha256 = record["language"], record["sha256"]
    if not isinstance(language, str | None) or not isinstance(sha256, str):
        raise TypeError("language or sha256")
    return Meta(Report(**counts, bad=bad), sources, language, sha256)


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{shown(value)} is no whole number")
    return value


Lengths = npt.NDArray[np.int32]


def map_array(path: Path, dtype: npt.DTypeLike, ndim: int = 1) -> npt.NDArray[Any]:
    """Map an .npy file into memory, read-only. Raises OSError or ValueError if it has no such array."""
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except EOFError as error:
        raise ValueError(f"{path.name}: {error}") from error
    if array.dtype != dtype or array.ndim != ndim:
        raise ValueError(f"{path.name} has numbers of type {array.dtype} in the shape {array.shape}")
    return array


class PreparedCorpus:
    """Consecutive sentences of a folder that `prepare` has written, mapped into memory.

    A pickle of it holds the folder and the range, not the sentences. Unpickling opens the folder again.

    meta: describes all sentences of the folder, even if this corpus is a part of them.
    start, stop: number of the first sentence, from 0, and that after the last one.

    Raises CorpusError if a file is missing, or does not fit to `meta`.
    """

    def __init__(self, folder: Path, meta: Meta, start: int, stop: int) -> None:
        self.folder, self.meta, self.start, self.stop = folder, meta, start, stop
        try:
            self._offsets = map_array(folder / OFFSETS, np.int64)
            self._lengths = map_array(folder / LENGTHS, np.int32)
            with (folder / TEXT).open("rb") as file:
                self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except CorpusError:
            raise
        except (OSError, ValueError) as error:
            raise CorpusError(_PREPARED_DAMAGED.format(folder=folder, reason=error)) from error
        n = meta.report.sentences
        if len(self._offsets) != n + 1:
            self._damaged(f"{OFFSETS} has {len(self._offsets):,} numbers, not {n + 1:,}")
        if len(self._lengths) != n:
            self._damaged(f"{LENGTHS} has {len(self._lengths):,} numbers, not {n:,}")
        if self._offsets[0] != 0:  # a wrong one in the middle shows in the sentence before it
            self._damaged(f"{OFFSETS} begins with {self._offsets[0]:,}, not 0")
        if self._offsets[-1] != len(self._text):
            self._damaged(f"{TEXT} has {len(self._text):,} bytes, not {self._offsets[-1]:,}")

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> PreparedCorpus:
        """Return all sentences of a folder. Sizes and numbers of words are checked, the words are not (see `verify`).

        Raises CorpusError if the folder holds no prepared corpus, or a damaged one.
        """
        meta = read_meta(Path(folder))
        corpus = cls(Path(folder), meta, 0, meta.report.sentences)
        if corpus.lengths.min(initial=1) < 1:
            corpus._damaged(f"{LENGTHS} has {corpus.lengths.min()}, but each sentence has a word")
        if corpus.n_tokens != meta.report.tokens:
            corpus._damaged(f"{LENGTHS} sums to {corpus.n_tokens:,} words, not {meta.report.tokens:,}")
        return corpus

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[list[str]]:
        return (self.sentence(number) for number in range(len(self)))

    @property
    def n_sentences(self) -> int:
        return len(self)

    @cached_property
    def n_tokens(self) -> int:
        """The number of words, sentence boundaries not counted."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def lengths(self) -> Lengths:
        """The number of words of each sentence, *Shape:* (sentences,), mapped into memory."""
        part: Lengths = self._lengths[self.start : self.stop]
        return part

    def sentence(self, number: int) -> list[str]:
        """Return the words of a sentence. number: from 0.

        Raises IndexError if there is no such sentence, CorpusError if its text is damaged.
        """
        if not 0 <= number < len(self):
            raise IndexError(number)
        number += self.start
        begin, end = self._offsets[number], self._offsets[number + 1]
        line = self._text[begin:end] if 0 <= begin < end else b""
        if line.find(b"\n") != len(line) - 1:
            self._damaged(f"sentence {number} is not one line")
        try:
            words = line.decode("utf8").split()
        except UnicodeDecodeError as error:
            self._damaged(f"sentence {number} is no text: {error}")
        if len(words) != self._lengths[number]:
            self._damaged(f"sentence {number} has {len(words)} words, not {self._lengths[number]}")
        return words

    def part(self, start: int, stop: int) -> PreparedCorpus:
        """Return sentences start to stop - 1 as a corpus. Nothing is copied. Raises CorpusError if there are none."""
        if not 0 <= start <= stop <= len(self):
            raise CorpusError(
                f"the part from sentence {start} to {stop} was asked for. Expected a part of {len(self)} sentences."
            )
        return PreparedCorpus(self.folder, self.meta, self.start + start, self.start + stop)

    def cut(self, share: float) -> tuple[PreparedCorpus, PreparedCorpus]:
        """Return the training part and the held-out part, each with at least one sentence.

        share: share of the sentences, the last ones, that is held out, between 0 and 1. Their number is rounded.

        Raises SettingsError if `share` is out of range, CorpusError if there are fewer than two sentences.
        """
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise SettingsError(f"the held-out share is {shown(share)}. Expected a number above 0 and below 1.")
        if len(self) < 2:
            raise CorpusError(
                f"{self.folder}: {len(self)} sentence. Expected at least two, to hold one out: give more text."
            )
        border = len(self) - heldout_sentences(len(self), share)
        return self.part(0, border), self.part(border, len(self))

    def verify(self) -> None:
        """Read all of the text. Raises CorpusError if its SHA-256 is not the one in meta.json."""
        digest = hashlib.sha256(self._text).hexdigest()
        if digest != self.meta.sha256:
            self._damaged(f"the SHA-256 of {TEXT} is {digest}, not {self.meta.sha256}")

    def _damaged(self, reason: str) -> NoReturn:
        raise CorpusError(_PREPARED_DAMAGED.format(folder=self.folder, reason=reason))

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.folder, self.meta.sha256, self.start, self.stop)


def _reopened(folder: Path, sha256: str, start: int, stop: int) -> PreparedCorpus:
    corpus = PreparedCorpus.open(folder)
    if corpus.meta.sha256 != sha256:
        raise CorpusError(f"{folder}: meanwhile another corpus was prepared there. Start again with the new one.")
    return corpus.part(start, stop)


def prepare(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    language: str | None = None,
    output: str | os.PathLike[str] | None = None,
) -> PreparedCorpus:
    """Read a text and write its sentences to a folder. Memory does not grow with the text.

    The folder holds:

    - sentences.txt: UTF-8, a sentence a line, words separated by one blank;
    - offsets.npy: int64, *Shape:* (sentences + 1,), the byte at which each sentence begins, and the size of the file;
    - lengths.npy: int32, *Shape:* (sentences,), the number of words of each sentence;
    - meta.json: see `Meta`.

    If the folder holds a corpus of the same files (same names, sizes and times of change) and the same language, it is
    used unchanged. Any other prepared corpus is replaced, in one step: if the process is killed, the earlier one stays,
    and a hidden folder is left beside it. Only one process at a time may prepare a folder.

    source: a file, a folder or a pattern; see `read_sentences`.
    folder: where the corpus is written. If it is a symbolic link, the link's target is replaced.
    language: of the spaCy tokenizer that splits the text; None: words are separated by blanks.
    output: a folder, such as that of a run, whose files do not belong to the source.

    Raises CorpusError if the source can't be read, if `folder` is inside the source or holds other files, or if it
    can't be written.
    """
    target = Path(os.path.realpath(folder))  # so that a symbolic link is not replaced itself
    refuse_inside(source, target, output)
    files = find_files(source, output)
    sources = source_files(files)
    _refuse_foreign(target)
    try:
        earlier = PreparedCorpus.open(target)
    except CorpusError:  # there is none, or it is damaged
        pass
    else:
        if earlier.meta.is_of(sources, language):
            return earlier
        del earlier  # Windows renames no folder whose files are mapped
    with writing(target, CorpusError):
        target.parent.mkdir(parents=True, exist_ok=True)
    temporary, report = target.parent / f".{target.name}.{uuid.uuid4().hex}.tmp", Report()
    try:
        with writing(target, CorpusError):
            _write(read_files(source, files, splitter(language), report), report, sources, language, temporary)
            _put_in_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return PreparedCorpus.open(target)


def _write(
    sentences: Iterable[list[str]], report: Report, sources: list[SourceFile], language: str | None, folder: Path
) -> None:
    digest, position = hashlib.sha256(), 0
    folder.mkdir()
    # the arrays are written as plain numbers first, since their lengths are not known before the end
    raw = {name: folder / f"{name}.raw" for name in (OFFSETS, LENGTHS)}
    with (folder / TEXT).open("wb") as text, raw[OFFSETS].open("wb") as offsets, raw[LENGTHS].open("wb") as lengths:
        offsets.write(struct.pack("=q", 0))
        for words in sentences:
            line = _line(words)
            text.write(line)
            digest.update(line)
            position += len(line)
            offsets.write(struct.pack("=q", position))
            lengths.write(struct.pack("=i", len(words)))
    for name, dtype in ((OFFSETS, np.int64), (LENGTHS, np.int32)):
        empty = not raw[name].stat().st_size  # which can't be mapped
        np.save(folder / name, np.empty(0, dtype) if empty else np.memmap(raw[name], dtype, "r"))
        raw[name].unlink()
    write_meta(folder, Meta(report, sources, language, digest.hexdigest()))
    for name in (TEXT, OFFSETS, LENGTHS, META):
        with (folder / name).open("rb+") as file:
            os.fsync(file.fileno())


def digest_of(sentences: Iterable[list[str]]) -> str:
    """Return the SHA-256 that a corpus of these sentences has in its meta.json."""
    digest = hashlib.sha256()
    for words in sentences:
        digest.update(_line(words))
    return digest.hexdigest()


def _line(words: list[str]) -> bytes:
    return (" ".join(words) + "\n").encode("utf8")


def _put_in_place(temporary: Path, target: Path) -> None:
    if not target.exists():
        temporary.rename(target)
        return
    old = temporary.with_suffix(".old")
    target.rename(old)
    try:
        temporary.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def source_files(files: list[Path]) -> list[SourceFile]:
    """Return names, sizes and times of files. Raises CorpusError if one is missing."""
    sources = []
    for path in files:
        try:
            status = path.stat()
        except OSError as error:
            raise CorpusError(SOURCE_DAMAGED.format(path=path, reason=error)) from error
        sources.append(SourceFile(str(path), status.st_size, status.st_mtime_ns))
    return sources


def _refuse_foreign(folder: Path) -> None:
    with writing(folder, CorpusError):
        present = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in present if name not in (TEXT, OFFSETS, LENGTHS, META)]
    if foreign:
        raise CorpusError(
            f"{folder}: holds {', '.join(foreign[:3])}, which is not part of a prepared corpus. Expected a new "
            "folder, or that of a prepared corpus, which is replaced: give another one."
        )
