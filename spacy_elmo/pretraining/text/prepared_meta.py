"""What a prepared corpus says of itself: meta.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import CorpusError, Errors, shown
from .reading import BadLine, Report

TEXT, OFFSETS, LENGTHS, META = "sentences.txt", "offsets.npy", "lengths.npy", "meta.json"
VERSION = 1


class SourceFile(NamedTuple):
    """path: as it was given; bytes, mtime_ns: its size and the time of its last change."""

    path: str
    bytes: int
    mtime_ns: int

    @property
    def key(self) -> tuple[str, int, int]:
        """What has to be the same for the file to be taken for the same one, also where its folder was moved."""
        return Path(self.path).name, self.bytes, self.mtime_ns


@dataclass(frozen=True)
class Meta:
    """report: what was read of the sources. language: None, or the spaCy tokenizer's. sha256: of sentences.txt."""

    report: Report
    sources: list[SourceFile]
    language: str | None
    sha256: str

    def is_of(self, sources: list[SourceFile], language: str | None) -> bool:
        """Whether it was prepared from these files, as they are now, in this language."""
        return [file.key for file in self.sources] == [file.key for file in sources] and self.language == language


def write_meta(folder: Path, meta: Meta) -> None:
    """Write meta.json. Raises OSError."""
    text = json.dumps({"version": VERSION} | asdict(meta), indent=2)
    (folder / META).write_text(text + "\n", encoding="utf8")


def read_meta(folder: Path) -> Meta:
    """Read meta.json. Raises CorpusError where there is none, and for what can't be one."""
    try:
        record = json.loads((folder / META).read_bytes())
    except OSError as error:
        raise CorpusError(Errors.PREPARED_MISSING.format(folder=folder, reason=error)) from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(Errors.PREPARED_DAMAGED.format(folder=folder, reason=f"{META}: {error}")) from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION:
        raise CorpusError(Errors.PREPARED_VERSION.format(folder=folder, got=shown(version), expected=VERSION))
    try:
        return _meta(record)
    except (KeyError, TypeError, ValueError) as error:
        raise CorpusError(Errors.PREPARED_DAMAGED.format(folder=folder, reason=f"{META}: {error!r}")) from error


def _meta(record: dict[str, Any]) -> Meta:
    counts = {name: _whole(record["report"][name]) for name in ("lines", "sentences", "tokens", "blank", "n_bad")}
    bad = [BadLine(str(file), _whole(line), str(reason)) for file, line, reason in record["report"]["bad"]]
    sources = [SourceFile(str(path), _whole(size), _whole(mtime)) for path, size, mtime in record["sources"]]
    language, sha256 = record["language"], record["sha256"]
    if not isinstance(language, str | None) or not isinstance(sha256, str):
        raise TypeError("language or sha256")
    return Meta(Report(**counts, bad=bad), sources, language, sha256)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{shown(value)} is no whole number")
    return value
