"""Makes the file of a shard: makes documents of its items, embeds them, and writes their vectors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy.typing as npt

from ..errors import VectorsError
from ..formats.atomic import writing
from ..formats.text import Unusable
from .bilm import BiLMChoice, EmbeddingBiLM
from .manifest import ShardFacts
from .reading import Document, Item, Parser, Shard, size_of
from .writing import WRITERS, Selection, Shape, VectorFile, required, vector_file

_READ_BYTES = 1 << 16  # of items that are read at once while a window is waited for
_MOST_BYTES = 1 << 22  # of items that are read ahead; more than a window of 32,768 tokens needs


class Window(NamedTuple):
    """What is embedded together: documents, and the bytes of the items that were read for them."""

    documents: list[Document]
    bytes: int


class Windows:
    """Makes windows of items.

    The items are read in the thread that iterates: a thread that waits for standard input can't be stopped. An executor
    makes documents of them. What the next window probably needs is read before a window is yielded, so that the
    executor makes its documents while the caller embeds.

    items: in their order.
    parse: makes the document of an item; None: the item has none. It may raise.
    tokens: that a window has before it ends, after a whole document.
    beside: an executor with one thread.
    """

    def __init__(
        self, items: Iterable[Item], parse: Callable[[Item], Document | None], tokens: int, beside: Executor
    ) -> None:
        self._items, self._parse, self._tokens, self._beside = iter(items), parse, tokens, beside
        self._waiting: deque[Item] = deque()  # that were read, and have no documents yet
        self._ended = False
        self._begin()

    def __iter__(self) -> Iterator[Window]:
        """Yield the windows. The last one, which may be empty, has the bytes of all items after the last document."""
        complete = self._read(_READ_BYTES)
        while True:
            while not complete.result() and not self._ended:
                complete = self._read(_READ_BYTES)
            window = Window(self._documents, self._size)
            if not complete.result():
                yield window
                return
            self._begin()
            complete = self._read(min(_MOST_BYTES, window.bytes + window.bytes // 8))
            yield window

    def _begin(self) -> None:
        self._documents: list[Document] = []
        self._n_tokens = self._size = 0

    def _read(self, n_bytes: int) -> Future[bool]:
        size = sum(map(size_of, self._waiting))
        while size < n_bytes and len(self._waiting) < self._tokens:
            try:
                item = next(self._items, None)
            except Exception:
                self._beside.submit(self._make_documents).result()  # the error of an earlier item comes first
                raise
            if item is None:
                self._ended = True
                break
            self._waiting.append(item)
            size += size_of(item)
        return self._beside.submit(self._make_documents)

    def _make_documents(self) -> bool:
        while self._waiting and self._n_tokens < self._tokens:
            item = self._waiting.popleft()
            self._size += size_of(item)
            document = self._parse(item)
            if document is not None:
                self._documents.append(document)
                self._n_tokens += document.tokens
        return self._n_tokens >= self._tokens


Format = Literal["parquet", "hdf5", "spacy", "safetensors", "npy"]
OnProgress = Callable[[int, int], None]  # tokens and bytes of text since the call before
WINDOW_TOKENS = 32_768  # that are sorted by length together, as soon as they are read; of whole documents
Embedded = list[tuple[Document, list[npt.NDArray[Any]]]]


def no_progress(tokens: int, size: int) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class ShardSettings:
    """All that a process needs to make shards. lang: None: that of the pipeline. The rest is as in `embed`."""

    bilm: BiLMChoice
    format: Format
    selection: Selection
    lang: str | None
    tokenized: bool
    docs: bool
    code: str | Path | None = None


class ShardWriter:
    """Makes files of vectors. A thread parses and writes beside the engine.

    bilm: its biLM, if it is loaded; None: it is loaded here.

    Raises ElmoError if the biLM, the language or the mix can't be used, or if a package that the format needs is
    missing.
    """

    def __init__(self, settings: ShardSettings, bilm: EmbeddingBiLM | None = None) -> None:
        self.settings = settings
        if needs := WRITERS[settings.format].needs:
            required(*needs)
        self.bilm = settings.bilm.load() if bilm is None else bilm
        settings.selection.check(self.bilm.options.layers)
        self._parser = Parser(None if settings.tokenized else settings.bilm.tokenizer(settings.lang), settings.docs)

    def write_shard(self, shard: Shard, folder: Path, progress: OnProgress = no_progress) -> ShardFacts:
        """Write the file of a shard without its bad items. It has the same bytes whatever was embedded before.

        Raises VectorsError if it can't be written.
        """
        name = f"part-{shard.number:06d}.{self.settings.format}"
        facts = ShardFacts(shard.number, name, 0, shard.digest())

        def skip(item: Item, reason: str) -> None:
            facts.skipped.append((item.source, item.line, reason))

        self.write_file(shard.items, folder / name, facts, skip, progress)
        facts.size = (folder / name).stat().st_size
        return facts

    def write_file(
        self,
        items: Iterable[Item],
        path: Path,
        facts: ShardFacts,
        skip: Callable[[Item, str], None],
        progress: OnProgress = no_progress,
        complete: Callable[[], None] = lambda: None,
    ) -> None:
        """Write the vectors of items to a file, which appears when it is complete.

        facts: its counts are raised.
        skip: is called with each item that can't be used, and the reason. It may raise.
        complete: is called before the file appears. It may raise.

        Raises VectorsError if it can't be written.
        """
        self.bilm.forget_words()
        shape = Shape(self.settings.selection, self.bilm.options.layers, self.bilm.options.width)
        with vector_file(self.settings.format, path, shape) as file, ThreadPoolExecutor(1) as beside:
            written = beside.submit(_write, file, [])
            parse = partial(self._parse, facts=facts, skip=skip)
            for window in Windows(items, parse, WINDOW_TOKENS, beside):
                embedded = self._embed(window.documents)
                written.result()
                written = beside.submit(_write, file, embedded)
                progress(sum(document.tokens for document in window.documents), window.bytes)
            written.result()
            complete()

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
        facts.cut_words += sum(self.bilm.cut_words(sentence.tokens) for sentence in document.sentences)
        return document

    def _embed(self, documents: list[Document]) -> Embedded:
        sentences = [sentence.tokens for document in documents for sentence in document.sentences]
        vectors: list[npt.NDArray[Any]] = [None] * len(sentences)  # type: ignore[list-item]
        for i, layers in self.bilm.embed(sentences):
            vectors[i] = self.settings.selection(layers)
        in_order = iter(vectors)
        return [(document, [next(in_order) for _ in document.sentences]) for document in documents]


def _write(file: VectorFile, embedded: Embedded) -> None:
    with writing(file.path, VectorsError):
        for document, vectors in embedded:
            file.add(document, vectors)
