"""Reads a text and keeps it as a prepared corpus."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from ...errors import CorpusError, Errors
from ...formats.atomic import writing
from ...formats.streamed_array import StreamedArray
from .prepared import PreparedCorpus
from .prepared_meta import LENGTHS, META, OFFSETS, TEXT, Meta, SourceFile, write_meta
from .reading import Report, read_files
from .sources import find_files, refuse_inside
from .splitting import splitter


def prepare(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    language: str | None = None,
    output: str | os.PathLike[str] | None = None,
) -> PreparedCorpus:
    """Read a source (see read_sentences) and keep its sentences in a folder; memory does not grow with the text.

    The folder has sentences.txt (UTF-8, words separated by one blank), offsets.npy (sentences + 1,), int64 bytes at
    which each begins, lengths.npy (sentences,), int32 words of each, and meta.json. A folder that was prepared before
    is used as it is where the sources' names, sizes and times of change and the language are the same; else it is
    replaced, at once and as a whole: what a killed call leaves is a hidden folder beside, never half a corpus.
    output: a folder, such as a run's, whose files are no part of the source. One call at a time may prepare a folder.
    Raises CorpusError.
    """
    target = Path(os.path.realpath(folder))  # a link stays one
    refuse_inside(source, target, output)
    files = find_files(source, output)
    sources = _sources(files)
    _refuse_foreign(target)
    try:
        kept = PreparedCorpus.open(target)
    except CorpusError:  # none, or a damaged one
        pass
    else:
        if kept.meta.is_of(sources, language):
            return kept
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
    with (
        (folder / TEXT).open("wb") as text,
        StreamedArray(folder / OFFSETS, "q") as offsets,
        StreamedArray(folder / LENGTHS, "i") as lengths,
    ):
        offsets.append(0)
        for words in sentences:
            line = (" ".join(words) + "\n").encode("utf8")
            text.write(line)
            digest.update(line)
            position += len(line)
            offsets.append(position)
            lengths.append(len(words))
    write_meta(folder, Meta(report, sources, language, digest.hexdigest()))
    for name in (TEXT, OFFSETS, LENGTHS, META):
        with (folder / name).open("rb+") as file:
            os.fsync(file.fileno())


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


def _sources(files: list[Path]) -> list[SourceFile]:
    found = []
    for path in files:
        try:
            status = path.stat()
        except OSError as error:
            raise CorpusError(Errors.SOURCE_DAMAGED.format(path=path, reason=error)) from error
        found.append(SourceFile(str(path), status.st_size, status.st_mtime_ns))
    return found


def _refuse_foreign(folder: Path) -> None:
    """Raise CorpusError where replacing a folder would delete what is not ours."""
    with writing(folder, CorpusError):
        present = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in present if name not in (TEXT, OFFSETS, LENGTHS, META)]
    if foreign:
        raise CorpusError(Errors.PREPARED_FOREIGN.format(folder=folder, got=", ".join(foreign[:3])))
