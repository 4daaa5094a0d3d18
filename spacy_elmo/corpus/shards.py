"""Makes the file of a shard: makes documents of its items, embeds them, and writes their vectors."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy.typing as npt

from ..formats.characters import too_long
from ..inference import Embedder
from ..text.stream import Document, Item, Parser
from ..text.words import Unusable
from .bilm import BiLMChoice, embed_finite
from .manifest import ShardFacts
from .writing import NEEDS, Selection, WriteAll, required, vector_file

Format = Literal["parquet", "hdf5", "spacy", "safetensors", "npy"]
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


def windows(
    items: Iterable[Item], parse: Callable[[Item], Document | None], beside: Executor
) -> Iterator[tuple[list[Document], int]]:
    """Yield what is embedded together: documents, and the bytes of their items. The last window may be empty.

    Items are read in the thread that iterates, because a thread that waits for standard input can't be stopped. The
    executor makes documents of what was read ahead while the caller embeds a window.
    """

    def parse_all(part: list[Item]) -> list[Document]:
        return [document for document in map(parse, part) if document is not None]

    parts = parts_of(items, _READ_BYTES)
    parsed: deque[tuple[int, Future[list[Document]]]] = deque()
    documents: list[Document] = []
    n_bytes = 0
    while True:
        for part in islice(parts, _AHEAD - len(parsed)):
            parsed.append((sum(item.size for item in part), beside.submit(parse_all, part)))
        if not parsed:
            break
        size, future = parsed.popleft()
        documents += future.result()
        n_bytes += size
        if sum(document.tokens for document in documents) >= WINDOW_TOKENS:
            yield documents, n_bytes
            documents, n_bytes = [], 0
    yield documents, n_bytes


@dataclass(frozen=True)
class ShardSettings:
    """All that a process needs to make shards, as in `embed`. lang: None: that of the pipeline."""

    bilm: BiLMChoice
    format: Format
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
        if settings.format in NEEDS:
            required(NEEDS[settings.format])
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
        parse = partial(self._parse, facts=facts, skip=skip)
        with ThreadPoolExecutor(1) as beside:
            written: Future[None] | None = None
            for documents, size in windows(items, parse, beside):
                vectors = self._embed(documents)
                if written:
                    written.result()
                written = beside.submit(write, documents, vectors)
                progress(sum(document.tokens for document in documents), size)
            if written:
                written.result()

    def _parse(self, item: Item, facts: ShardFacts, skip: Callable[[Item, str], None]) -> Document | None:
        try:
            document = self._parser(item)
        except Unusable as error:
            skip(item, str(error))
            return None
        if document is None:
            facts.blank += 1
            return None
        facts.documents += 1
        facts.sentences += len(document.sentences)
        facts.tokens += document.tokens
        facts.cut_words += sum(
            len(too_long(sentence.tokens, self.bilm.options.max_characters)) for sentence in document.sentences
        )
        return document

    def _embed(self, documents: list[Document]) -> list[npt.NDArray[Any]]:
        sentences = [sentence.tokens for document in documents for sentence in document.sentences]
        vectors: list[npt.NDArray[Any]] = [None] * len(sentences)  # type: ignore[list-item]
        for i, layers in embed_finite(self.bilm, sentences):
            vectors[i] = self.settings.selection(layers)
        return vectors
