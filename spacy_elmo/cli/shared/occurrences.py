"""The occurrences of a word in a text, and their vectors."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...allennlp.embedder import ElmoEmbedder
from ...errors import CommandError, Errors
from ...modules import BiLM, load_bilm
from ...modules.loading import EMBEDDED
from .inputs import load_pipe

Layers = npt.NDArray[np.float32]
BATCH = 64
_SIDE = 36  # characters shown on each side of the word
_DOTS = "..."


class Reader(Protocol):
    """Splits lines into words, and embeds them."""

    def words(self, line: str) -> list[str]:
        """The words of a line."""

    def layers(self, lines: list[str]) -> list[Layers]:
        """*Shape:* (layers, tokens, width) for each line."""


class BiLMReader:
    """Words separated by blanks, embedded by a biLM."""

    def __init__(self, bilm: BiLM) -> None:
        self.embedder = ElmoEmbedder.from_bilm(bilm)

    def words(self, line: str) -> list[str]:
        """The words of a line."""
        return line.split()

    def layers(self, lines: list[str]) -> list[Layers]:
        """*Shape:* (layers, tokens, width) for each line."""
        return self.embedder.embed_batch([line.split() for line in lines])


class PipelineReader:
    """A pipeline's tokenizer and its elmo pipe; its other pipes do not run."""

    def __init__(self, pipeline: str, pipe: str | None) -> None:
        self.nlp, self.pipe = load_pipe(pipeline, pipe)

    def words(self, line: str) -> list[str]:
        """The words of a line."""
        return [token.text for token in self.nlp.tokenizer(line)]

    def layers(self, lines: list[str]) -> list[Layers]:
        """*Shape:* (layers, tokens, width) for each line."""
        embedded = self.pipe.predict([self.nlp.tokenizer(line) for line in lines])
        return [np.asarray(self.pipe.model.ops.to_numpy(layers), np.float32) for layers in embedded]


def reader_of(model: str, pipe: str | None = None) -> Reader:
    """The reader of a saved pipeline, of a folder with the official files, or of the embedded biLM. Raises ElmoError.

    pipe: which elmo pipe, where the pipeline has several.
    """
    folder = Path(model)
    files = folder / "options.json", folder / "weights.hdf5"
    is_bilm = model == EMBEDDED or (all(path.is_file() for path in files) and not (folder / "config.cfg").is_file())
    if is_bilm:
        if pipe is not None:
            raise CommandError(Errors.PIPE_ALONE.format(got=pipe))
        return BiLMReader(load_bilm() if model == EMBEDDED else load_bilm(*files))
    if folder.is_file() or (folder.is_dir() and not (folder / "config.cfg").is_file()):
        raise CommandError(Errors.SIMILAR_MODEL.format(path=folder, embedded=EMBEDDED))
    return PipelineReader(model, pipe)


class Occurrence(NamedTuple):
    """A word in its line. line: from 1 on; place: of the word, from 0 on; layers: *Shape:* (layers, width)."""

    line: int
    words: list[str]
    place: int
    layers: Layers

    def marked(self) -> str:
        """The sentence with the word between stars, a long one shortened around it."""
        word = self.words[self.place]
        before, after = " ".join(self.words[: self.place]), " ".join(self.words[self.place + 1 :])
        parts = (
            shorten(before[::-1], _SIDE, placeholder=f" {_DOTS}")[::-1],  # the words next to the marked one stay
            f"*{word if len(word) <= _SIDE else word[:_SIDE] + _DOTS}*",
            shorten(after, _SIDE, placeholder=f" {_DOTS}"),
        )
        text = " ".join(part for part in parts if part)
        return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)  # no codes for the terminal


def find_occurrences(
    lines: Iterable[tuple[int, str]], reader: Reader, is_word: Callable[[str], bool]
) -> Iterator[Occurrence]:
    """All occurrences in order; only lines that have one are embedded.

    lines: numbers and texts; empty ones are passed over.
    """
    batch: list[tuple[int, str, list[str]]] = []
    for number, line in lines:
        words = reader.words(line) if line else []
        if any(map(is_word, words)):
            batch.append((number, line, words))
        if len(batch) == BATCH:
            yield from _embed(batch, reader, is_word)
            batch = []
    if batch:
        yield from _embed(batch, reader, is_word)


def _embed(
    batch: list[tuple[int, str, list[str]]], reader: Reader, is_word: Callable[[str], bool]
) -> Iterator[Occurrence]:
    for (number, _, words), layers in zip(batch, reader.layers([line for _, line, _ in batch])):
        for place, word in enumerate(words):
            if is_word(word):
                yield Occurrence(number, words, place, layers[:, place].copy())  # a view would keep the whole line
