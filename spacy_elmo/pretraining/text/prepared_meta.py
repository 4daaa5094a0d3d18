"""meta.json of a prepared corpus: the files it was read from, and what was read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import CorpusError, Errors, shown
from ...formats.strict.strict_json import read_json
from ...formats.text.lines import BadLine
from .reading import Report

TEXT, OFFSETS, LENGTHS, META = "sentences.txt", "offsets.npy", "lengths.npy", "meta.json"
VERSION = 1
_MOST_BYTES = 2**28  # of meta.json, which has about 100 for each file of the text


class SourceFile(NamedTuple):
    """A file that a prepared corpus was read from.

    path: as the caller wrote it.
    bytes: its size.
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

    report: counts of what was read.
    sources: the files that were read.
    language: of the spaCy tokenizer; None if words were separated by blanks.
    sha256: of sentences.txt, in hexadecimal. It tells one corpus from another.
    """

    report: Report
    sources: list[SourceFile]
    language: str | None
    sha256: str

    def is_of(self, sources: list[SourceFile], language: str | None) -> bool:
        """Return whether the corpus was prepared from these files with this tokenizer.

        sources: the files as they are now.
        language: of the spaCy tokenizer, or None.
        """
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
        raise CorpusError(Errors.PREPARED_MISSING.format(folder=folder, reason=error)) from error
    except ValueError as error:
        raise CorpusError(Errors.PREPARED_DAMAGED.format(folder=folder, reason=f"{META}: {error}")) from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION:
        raise CorpusError(Errors.PREPARED_VERSION.format(folder=folder, got=shown(version), expected=VERSION))
    try:
        return _meta(record)
    except (KeyError, TypeError, ValueError) as error:
        raise CorpusError(Errors.PREPARED_DAMAGED.format(folder=folder, reason=f"{META}: {error!r}")) from error


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
