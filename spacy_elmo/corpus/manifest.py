"""The list of the shards that are finished, so that a stopped command goes on with the others."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CorpusError
from ..formats.atomic import replacing, writing
from ..models.types import is_whole
from ..text.stream import BadLine

MANIFEST, SKIPPED, SHARDS = "manifest.jsonl", "skipped.jsonl", "shards"
VERSION = 1
_ANEW = "begin anew with --no-resume (resume=False), which deletes the shards there"


@dataclass
class ShardFacts:
    """What is known of a shard after it was written.

    size: bytes of its file. digest, real_digest: as in `Shard`; those of version 0.1 have the former alone.
    cut_words, blank: as in `Summary`.
    skipped: file, line and reason of each item that was left out.
    """

    shard: int
    file: str
    size: int
    digest: str
    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    cut_words: int = 0
    blank: int = 0
    skipped: list[tuple[str, int, str]] = field(default_factory=list)
    real_digest: str = ""


class Manifest:
    """The file manifest.jsonl of an output folder: a line with the settings, then a line for each finished shard.

    settings: all that decides what is in the shards. An earlier command must have had the same.
    resume: whether shards of an earlier command are kept; false: they are deleted.
    keep_size: whether the shard_size of an earlier command is kept.

    The attribute `facts` has the finished shards by their numbers.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], resume: bool, keep_size: bool = False) -> None:
        self.folder = folder
        self.facts: dict[int, ShardFacts] = {}
        self._settings, self._path = {"version": VERSION, **settings}, folder / MANIFEST
        with writing(folder, CorpusError):
            folder.mkdir(parents=True, exist_ok=True)
            if resume and self._path.exists():
                self._read(keep_size)
            if not self.facts:  # no setting binds; what a killed command has not listed is of no use
                for path in (folder / SHARDS).glob("part-*"):
                    if re.fullmatch(r"part-\d{6,}\.\w+", path.name):  # others are the user's own
                        path.unlink()
            self._write_all()  # without a line that a killed command has not written to its end
            (folder / SHARDS).mkdir(exist_ok=True)

    @property
    def shard_size(self) -> int:
        """The bytes of text in a shard."""
        return int(self._settings["shard_size"])

    def is_done(self, number: int, digest: str, real_digest: str) -> bool:
        """Return whether a shard is finished. Raises CorpusError if it was made of other text.

        It is the same text if the files have the same names, or the same real paths.
        """
        facts = self.facts.get(number)
        if facts is not None and facts.digest != digest and facts.real_digest != real_digest:
            raise self._changed(number)
        return facts is not None

    def _changed(self, number: int) -> CorpusError:
        return CorpusError(
            f"{self.folder}: the shard {number} was made of other text than the input has now. Expected the same files "
            f"in the same order: give another folder, or {_ANEW}."
        )

    def add(self, facts: ShardFacts) -> None:
        """Add a shard that is finished. Raises CorpusError if the line can't be written, and leaves no part of it."""
        self.facts[facts.shard] = facts
        size = self._path.stat().st_size
        with writing(self._path, CorpusError):
            try:
                with self._path.open("ab") as file:
                    file.write(_line(asdict(facts)))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):  # the first error tells more than a second one
                    os.truncate(self._path, size)
                raise

    def write_skipped(self) -> None:
        """Write skipped.jsonl: an object for each item that was left out."""
        skipped = (row for number in sorted(self.facts) for row in self.facts[number].skipped)
        self._write(self.folder / SKIPPED, (dict(zip(("file", "line", "reason"), row)) for row in skipped))

    def finish(self, n_shards: int) -> None:
        """Write the manifest in the order of the shards. Raises CorpusError if the corpus has fewer now."""
        if len(self.facts) > n_shards:
            raise self._changed(n_shards)
        self._write_all()

    def _read(self, keep_size: bool) -> None:
        # a killed command may not have written the last line to its end
        lines = [line for line in self._path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        try:
            settings = dict(json.loads(lines[0])) if lines else {}
            all_facts = [ShardFacts(**json.loads(line)) for line in lines[1:]]
        except (ValueError, TypeError) as error:
            raise CorpusError(f"{self._path}: damaged ({error}). {_ANEW.capitalize()}.") from error
        finished = {facts.shard: facts for facts in all_facts if facts.sentences and self._has_file(facts)}
        if finished and keep_size and is_whole(settings.get("shard_size")):
            self._settings["shard_size"] = settings["shard_size"]
        for name, expected in self._settings.items() if finished else ():
            got = settings.get(name)
            if got != expected and not (name == "tokenizer" and os.path.realpath(str(got)) == expected):
                raise CorpusError(
                    f"{self.folder}: its shards were made with {name} {got!r}, and now it is {expected!r}. "
                    f"Expected the same: give another folder, or {_ANEW}."
                )
        self.facts = finished

    def _has_file(self, facts: ShardFacts) -> bool:
        path = self.folder / SHARDS / facts.file
        return path.is_file() and path.stat().st_size == facts.size

    def _write_all(self) -> None:
        self._write(self._path, [self._settings, *(asdict(self.facts[number]) for number in sorted(self.facts))])

    def _write(self, path: Path, rows: Iterable[dict[str, Any]]) -> None:
        with replacing(path, CorpusError) as temporary, writing(path, CorpusError), temporary.open("wb") as file:
            file.writelines(map(_line, rows))
            file.flush()
            os.fsync(file.fileno())


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"


@dataclass
class Summary:
    """What was embedded, shards of earlier commands included.

    shards: number of shards, 0 for one file; resumed: those that an earlier command had made.
    cut_words: tokens with more bytes than the biLM reads.
    blank: lines without a word.
    skipped: lines that can't be used; they are listed in skipped.jsonl.
    first_skipped: the first of them, and the reason; None if there is none.
    seconds: that this command took.
    """

    output: Path
    format: str
    shards: int = 0
    resumed: int = 0
    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    cut_words: int = 0
    blank: int = 0
    skipped: int = 0
    first_skipped: BadLine | None = None
    seconds: float = 0.0

    def add(self, facts: ShardFacts) -> None:
        for name in ("documents", "sentences", "tokens", "cut_words", "blank"):
            setattr(self, name, getattr(self, name) + getattr(facts, name))
        self.skipped += len(facts.skipped)
        if facts.skipped and self.first_skipped is None:
            self.first_skipped = BadLine(*facts.skipped[0])
