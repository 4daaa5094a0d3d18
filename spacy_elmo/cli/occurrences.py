"""Finds the occurrences of a word in a text, and their vectors."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..allennlp.embedder import ElmoEmbedder
from ..errors import CommandError
from ..formats.text import Unusable, splitter
from ..modules import BiLM, load_arrays
from ..modules.loading import EMBEDDED, OPTIONS, WEIGHTS, find_bilm
from ..pipeline.saved import is_pipeline, load_pipe

Layers = npt.NDArray[np.float32]
BATCH = 64
_SIDE = 36  # characters shown on each side of the word
_DOTS = "..."
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # parts of words in Persian and Hindi, and of emoji


class Reader(Protocol):
    """Splits lines into words, and embeds them."""

    def words(self, line: str) -> list[str]:
        """Return the words of a line. line: its text."""

    def layers(self, lines: list[str]) -> list[Layers]:
        """Return the vectors of all words, *Shape:* (layers, words, width) for each line. lines: their texts."""


class BiLMReader:
    """Splits lines at blanks or with a spaCy tokenizer, and embeds the words with a biLM.

    bilm: the biLM.
    language: of the tokenizer; None: lines are split at blanks.

    Raises CorpusError if spaCy does not know the language.
    """

    def __init__(self, bilm: BiLM, language: str | None) -> None:
        self.embedder, self.split = ElmoEmbedder.from_bilm(bilm), splitter(language)

    def words(self, line: str) -> list[str]:
        """Return the words of a line. line: its text."""
        return self.split(line)

    def layers(self, lines: list[str]) -> list[Layers]:
        """Return the vectors of all words, *Shape:* (layers, words, width) for each line. lines: their texts."""
        return self.embedder.embed_batch([self.split(line) for line in lines])


class PipelineReader:
    """Splits lines with a pipeline's tokenizer, and embeds the tokens with its elmo pipe. Its other pipes do not run.

    pipeline: folder or package of the pipeline.
    pipe: name of the elmo pipe; None: the pipeline must have only one.

    Raises CommandError as `load_pipe` does.
    """

    def __init__(self, pipeline: str, pipe: str | None) -> None:
        self.nlp, self.pipe = load_pipe(pipeline, pipe)

    def words(self, line: str) -> list[str]:
        """Return the words of a line. line: its text."""
        return [token.text for token in self.nlp.tokenizer(line)]

    def layers(self, lines: list[str]) -> list[Layers]:
        """Return the vectors of all words, *Shape:* (layers, words, width) for each line. lines: their texts."""
        embedded = self.pipe.predict([self.nlp.tokenizer(line) for line in lines])
        return [np.asarray(self.pipe.model.ops.to_numpy(layers), np.float32) for layers in embedded]


def reader_of(model: str, pipe: str | None = None, language: str | None = None) -> Reader:
    """Return what reads and embeds lines with a model.

    model: saved pipeline (folder or package), folder of a biLM or of a pretraining run, or the name of a biLM.
    pipe: name of the elmo pipe if the pipeline has several.
    language: of the spaCy tokenizer that splits lines for a biLM; None: they are split at blanks.

    Raises ElmoError if the model can't be read, or if a biLM is combined with `pipe`, or a pipeline with `language`.
    """
    bilm = find_bilm(model)
    if not is_pipeline(model) and (bilm / OPTIONS).is_file() and (bilm / WEIGHTS).is_file():
        if pipe is not None:
            raise CommandError(f"--pipe is {pipe!r}, but no pipeline was given. Give a pipeline, or leave out --pipe.")
        return BiLMReader(BiLM.from_arrays(*load_arrays(bilm=model)), language)
    folder = Path(model)
    if folder.is_file() or (folder.is_dir() and not (folder / "config.cfg").is_file()):
        raise CommandError(
            f"{folder}: neither a saved pipeline (a folder with config.cfg) nor a biLM (a folder with "
            f"options.json and weights.hdf5). Expected one of these, or the name of a biLM, such as {EMBEDDED}."
        )
    if language is not None and is_pipeline(model):
        raise CommandError(
            f"--lang is {language!r}, and {model} is a saved pipeline, which splits text with its own tokenizer. "
            "Expected --lang only with a biLM: leave it out."
        )
    return PipelineReader(model, pipe)


def marked(words: list[str], place: int) -> str:
    """Return a sentence with one of its words between stars. A long sentence is shortened at both ends.

    words: of the sentence.
    place: index of the word.
    """
    word = words[place]
    before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
    parts = (
        shorten(before[::-1], _SIDE, placeholder=f" {_DOTS}")[::-1],  # reversed, so that the beginning is cut off
        f"*{word if len(word) <= _SIDE else word[:_SIDE] + _DOTS}*",
        shorten(after, _SIDE, placeholder=f" {_DOTS}"),
    )
    text = " ".join(part for part in parts if part)
    # a control character could change how the terminal works
    return "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)


class Occurrence(NamedTuple):
    """A word in its line.

    line: number of the line, from 1.
    words: of the line.
    place: index of the word in the line.
    layers: *Shape:* (layers, width), its vectors.
    """

    line: int
    words: list[str]
    place: int
    layers: Layers

    def marked(self) -> str:
        """Return the sentence with the word between stars. A long sentence is shortened at both ends."""
        return marked(self.words, self.place)

    def to_dict(self) -> dict[str, object]:
        """Return word, line, place and sentence (words separated by blanks) as a dict that can be written as JSON."""
        word, sentence = self.words[self.place], " ".join(self.words)
        return {"word": word, "line": self.line, "place": self.place, "sentence": sentence}


def find_occurrences(
    lines: Iterable[tuple[int, str]], reader: Reader, is_word: Callable[[str], bool], source: str
) -> Iterator[Occurrence]:
    """Yield all occurrences of a word, in order. Only lines that have one are embedded.

    lines: number and text of each line. Empty lines are skipped.
    reader: splits and embeds the lines.
    is_word: whether a word is the one that is searched for.
    source: name of the text in messages.

    Raises CommandError if a line can't be split into words.
    """
    batch: list[tuple[int, str, list[str]]] = []
    for number, line in lines:
        try:
            words = reader.words(line) if line else []
        except Unusable as error:
            raise CommandError(
                f"{source}, line {number}: {error}. Expected text that the tokenizer can split: correct it."
            ) from error
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
    """Yield all occurrences of a word in a batch of lines. batch: number, text and words of each line."""
    for (number, _, words), layers in zip(batch, reader.layers([line for _, line, _ in batch])):
        for place, word in enumerate(words):
            if is_word(word):
                yield Occurrence(number, words, place, layers[:, place].copy())  # a view would hold all words' vectors
