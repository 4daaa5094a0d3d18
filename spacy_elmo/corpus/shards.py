"""Makes the file of a shard: parses its items, embeds them, and writes their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from ..errors import VectorsError
from ..formats.atomic import writing
from ..formats.text.lines import Unusable
from .bilm import BiLMChoice, EmbeddingBiLM
from .documents import Document, Item, Shard
from .manifest import ShardFacts
from .parsing import Parser
from .selection import Selection
from .windows import Windows
from .writers.kinds import WRITERS
from .writers.writer import Shape, VectorFile

Format = Literal["parquet", "hdf5", "spacy", "safetensors", "npy"]
OnProgress = Callable[[int, int], None]  # tokens and bytes of text since the call before
WINDOW_TOKENS = 32_768  # that are sorted by length together, as soon as they are read; of whole documents
Embedded = list[tuple[Document, list[npt.NDArray[Any]]]]


def no_progress(tokens: int, size: int) -> None:
    """Show nothing."""


def no_check() -> None:
    """Check nothing."""


@dataclass(frozen=True)
class ShardSettings:
    """All that a process needs to make shards.

    bilm: the biLM.
    format: of the files.
    selection: what is written of the layers.
    lang: language of the tokenizer; None: that of the pipeline.
    tokenized: whether the words of texts are separated by blanks.
    docs: whether a text is a document of several sentences.
    code: Python file that other processes import first.
    """

    bilm: BiLMChoice
    format: Format
    selection: Selection
    lang: str | None
    tokenized: bool
    docs: bool
    code: str | Path | None = None

    def parser(self) -> Parser:
        """Return what makes documents of items. Raises CorpusError if spaCy does not know the language."""
        return Parser(None if self.tokenized else self.bilm.tokenizer(self.lang), self.docs)


class ShardWriter:
    """Makes files of vectors. A thread parses and writes beside the engine.

    settings: of the files.
    bilm: its biLM, if it is loaded; None: it is loaded here.

    Raises ElmoError if the biLM, the language or the mix can't be used, or if a package that the format needs is
    missing.
    """

    def __init__(self, settings: ShardSettings, bilm: EmbeddingBiLM | None = None) -> None:
        self.settings = settings
        WRITERS[settings.format].check_packages()
        self.bilm = settings.bilm.load() if bilm is None else bilm
        settings.selection.check(self.bilm.options.layers)
        self._parser = settings.parser()

    def write_shard(self, shard: Shard, folder: Path, progress: OnProgress = no_progress) -> ShardFacts:
        """Write the file of a shard. It has the same bytes whatever was embedded before.

        shard: its items. Bad ones are left out.
        folder: of the files of shards.
        progress: is called with what was done.

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
        complete: Callable[[], None] = no_check,
    ) -> None:
        """Write the vectors of items to a file.

        items: in their order.
        path: the file, which appears when it is complete.
        facts: its counts are raised.
        skip: is called with each item that can't be used, and the reason. It may raise.
        progress: is called with what was done.
        complete: is called before the file appears. It may raise.

        Raises VectorsError if it can't be written.
        """
        self.bilm.forget_words()
        shape = Shape(self.settings.selection, self.bilm.options.layers, self.bilm.options.width)
        with WRITERS[self.settings.format](path, shape) as file, ThreadPoolExecutor(1) as beside:
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
