"""Reads a text once, and writes it as a prepared corpus."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from ...errors import CorpusError, Errors
from ...formats.atomic import writing
from ...formats.streamed.numbers import StreamedArray
from ...formats.text.sources import find_files, refuse_inside
from ...formats.text.splitting import splitter
from .prepared import PreparedCorpus
from .prepared_meta import LENGTHS, META, OFFSETS, TEXT, Meta, SourceFile, write_meta
from .reading import Report, read_files


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
    with (
        (folder / TEXT).open("wb") as text,
        StreamedArray(folder / OFFSETS, "q") as offsets,
        StreamedArray(folder / LENGTHS, "i") as lengths,
    ):
        offsets.append(0)
        for words in sentences:
            line = _line(words)
            text.write(line)
            digest.update(line)
            position += len(line)
            offsets.append(position)
            lengths.append(len(words))
    write_meta(folder, Meta(report, sources, language, digest.hexdigest()))
    for name in (TEXT, OFFSETS, LENGTHS, META):
        with (folder / name).open("rb+") as file:
            os.fsync(file.fileno())


def digest_of(sentences: Iterable[list[str]]) -> str:
    """Return the SHA-256 that a corpus of these sentences has in its meta.json. sentences: lists of words."""
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
            raise CorpusError(Errors.SOURCE_DAMAGED.format(path=path, reason=error)) from error
        sources.append(SourceFile(str(path), status.st_size, status.st_mtime_ns))
    return sources


def _refuse_foreign(folder: Path) -> None:
    """Raise CorpusError if the folder holds files that are not of a prepared corpus, and would be deleted."""
    with writing(folder, CorpusError):
        present = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in present if name not in (TEXT, OFFSETS, LENGTHS, META)]
    if foreign:
        raise CorpusError(Errors.PREPARED_FOREIGN.format(folder=folder, got=", ".join(foreign[:3])))
