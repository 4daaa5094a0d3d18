"""The shards of a corpus: how they are cut, how a file is made of each, and the list of those that are finished."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import CorpusError
from ..formats.atomic import replacing, writing
from ..formats.characters import too_long
from ..inference import Embedder
from ..models.types import is_whole
from ..text.stream import BadLine, Document, Item, Parser
from ..text.words import Unusable
from .bilm import BiLMChoice
from .writing import FORMATS, Selection, WriteAll, required, vector_file

MANIFEST, SKIPPED, SHARDS = "manifest.jsonl", "skipped.jsonl", "shards"
VERSION = 1
_ANEW = "begin anew with --no-resume (resume=False), which deletes the shards there"
OnProgress = Callable[[int, int], None]  # tokens and bytes of text since the call before
WINDOW_TOKENS = 32_768  # that are sorted by length together, as soon as they are read
_READ_BYTES = 1 << 14  # of items that are parsed together
_AHEAD = 16  # such parts are read ahead: more than a window needs


class Shard(NamedTuple):
    """Consecutive items of a corpus, whose vectors are in one file.

    number: from 0. digest, real_digest: see `digest_of`; the latter takes the real paths of files.
    """

    number: int
    items: list[Item]
    digest: str = ""
    real_digest: str = ""

    @property
    def bytes(self) -> int:
        return sum(item.size for item in self.items)


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


def cut(items: Iterable[Item], size: int) -> Iterator[Shard]:
    """Divide items into shards: each is complete as soon as it has that many bytes."""
    real: dict[str, str] = {}
    for number, part in enumerate(parts_of(items, size)):
        for name in {item.source for item in part} - real.keys():
            real[name] = os.path.realpath(name) if os.path.exists(name) else name  # standard input has no path
        yield Shard(number, part, digest_of(part, {}), digest_of(part, real))


def digest_of(items: Iterable[Item], paths: Mapping[str, str]) -> str:
    """Return a SHA-256 of where items come from and of what they say. paths: by the names of files."""
    digest = hashlib.sha256()
    for item in items:
        place = f"{paths.get(item.source, item.source)}\0{item.line}\0{item.kind}\0{item.size}\0"
        digest.update(place.encode("utf8", "surrogateescape"))
        digest.update(item.data or b"")
    return digest.hexdigest()


def parts_of(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Divide items into parts: each is complete as soon as it has that many bytes."""
    held, n = [], 0
    for item in items:
        held.append(item)
        n += item.size
        if n >= size:
            yield held
            held, n = [], 0
    if held:
        yield held


@dataclass(frozen=True)
class ShardSettings:
    """All that a process needs to make shards, as in `embed`. lang: None: that of the pipeline."""

    bilm: BiLMChoice
    format: str
    selection: Selection
    lang: str | None
    tokenized: bool
    docs: bool
    code: str | Path | None = None
    text_field: str | None = None


class ShardWriter:
    """Makes files of vectors. A thread parses and writes beside the engine.

    Raises ElmoError if the biLM, which is loaded if it is not given, the language, the mix or the format can't be used.
    """

    def __init__(self, settings: ShardSettings, bilm: Embedder | None = None) -> None:
        self.settings = settings
        if needs := FORMATS[settings.format].needs:
            required(needs)
        self.bilm = settings.bilm.load() if bilm is None else bilm
        settings.selection.check(self.bilm.options.layers)
        tokenizer = None if settings.tokenized else settings.bilm.tokenizer(settings.lang)
        self._parser = Parser(tokenizer, settings.docs, settings.text_field)

    def write_shard(self, shard: Shard, folder: Path, progress: OnProgress) -> ShardFacts:
        """Write the file of a shard without its bad items. It has the same bytes whatever was embedded before."""
        name = f"part-{shard.number:06d}.{self.settings.format}"
        facts = ShardFacts(shard.number, name, 0, shard.digest, real_digest=shard.real_digest)

        def skip(item: Item, reason: str) -> None:
            facts.skipped.append((item.source, item.line, reason))

        with self.file(folder / name) as write:
            self.write(write, shard.items, facts, skip, progress)
        facts.size = (folder / name).stat().st_size
        return facts

    def file(self, path: Path) -> AbstractContextManager[WriteAll]:
        """Return a file for `write`, which appears at `path` when its block succeeds. Raises VectorsError."""
        sizes = self.bilm.options
        return vector_file(self.settings.format, path, self.settings.selection, sizes.layers, sizes.width)

    def write(
        self,
        write: WriteAll,
        items: Iterable[Item],
        facts: ShardFacts,
        skip: Callable[[Item, str], None],
        progress: OnProgress,
    ) -> None:
        """Write the vectors of items.

        facts: its counts are raised.
        skip: is called with each item that can't be used, and the reason. It may raise.
        """
        self.bilm.engine.words.clear()  # so that a shard has the same bits, whatever was embedded before
        with ThreadPoolExecutor(1) as beside:
            written: Future[None] | None = None
            for documents, size in self._windows(items, facts, skip, beside):
                sentences = [sentence for document in documents for sentence in document.sentences]
                vectors = self.settings.selection.embed(self.bilm, sentences)
                if written:
                    written.result()
                written = beside.submit(write, documents, vectors)
                progress(sum(document.tokens for document in documents), size)
            if written:
                written.result()

    def _windows(
        self, items: Iterable[Item], facts: ShardFacts, skip: Callable[[Item, str], None], beside: Executor
    ) -> Iterator[tuple[list[Document], int]]:
        """Yield what is embedded together: documents, and the bytes of their items. The last window may be empty."""
        # Items are read in the thread that iterates, because a thread that waits for standard input can't be stopped.
        # The executor makes documents of what was read ahead while the caller embeds a window.
        parts = parts_of(items, _READ_BYTES)
        parsed: deque[tuple[int, Future[list[Document]]]] = deque()
        documents: list[Document] = []
        n_bytes = 0
        while True:
            for part in islice(parts, _AHEAD - len(parsed)):
                parsed.append((sum(item.size for item in part), beside.submit(self._parse, part, facts, skip)))
            if not parsed:
                break
            size, future = parsed.popleft()
            documents += future.result()
            n_bytes += size
            if sum(document.tokens for document in documents) >= WINDOW_TOKENS:
                yield documents, n_bytes
                documents, n_bytes = [], 0
        yield documents, n_bytes

    def _parse(self, items: list[Item], facts: ShardFacts, skip: Callable[[Item, str], None]) -> list[Document]:
        documents = []
        for item in items:
            try:
                document = self._parser(item)
            except Unusable as error:
                skip(item, str(error))
                continue
            if document is None:
                facts.blank += 1
                continue
            facts.documents += 1
            facts.sentences += len(document.sentences)
            facts.tokens += document.tokens
            most = self.bilm.options.max_characters
            facts.cut_words += sum(len(too_long(sentence, most)) for sentence in document.sentences)
            documents.append(document)
        return documents


# The list of the shards that are finished, so that a stopped command goes on with the others


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
                (folder / SKIPPED).unlink(missing_ok=True)  # what it lists is of another run
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
        """Add a shard that is finished. Raises CorpusError if the line can't be written; then nothing more may be."""
        self.facts[facts.shard] = facts
        with writing(self._path, CorpusError), self._path.open("ab") as file:
            self._write_lines(file, [asdict(facts)])

    def finish(self, n_shards: int) -> None:
        """Write the manifest in the order of the shards, and skipped.jsonl: an object for each item that was left out.

        Raises CorpusError if the corpus has fewer shards now.
        """
        if len(self.facts) > n_shards:
            raise self._changed(n_shards)
        self._write_all()
        skipped = (row for number in sorted(self.facts) for row in self.facts[number].skipped)
        self._write(self.folder / SKIPPED, (dict(zip(("file", "line", "reason"), row)) for row in skipped))

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
            self._write_lines(file, rows)

    def _write_lines(self, file: IO[bytes], rows: Iterable[dict[str, Any]]) -> None:
        file.writelines(json.dumps(row).encode() + b"\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())


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
