"""An index of all words or sentences of a corpus, and the nearest of them to a word in a sentence, or to a sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from dataclasses import replace as changed
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..allennlp.embedder import BarSetting, ElmoEmbedder, bar_of, split_texts
from ..errors import CorpusError, ElmoError, SettingsError, check_whole, shown
from ..formats.atomic import is_unfinished, real, replacing_folder, writing
from ..formats.outputs import output
from ..formats.paths import Name, expanded
from ..formats.strict_json import read_json
from ..formats.vectors import of_length_1
from ..inference.embedder import fingerprint_of
from ..pretraining.prepared import (
    LENGTHS,
    META,
    OFFSETS,
    TEXT,
    PreparedCorpus,
    digest_of,
    map_array,
    prepare,
    source_files,
)
from ..text.stream import read_sentences

HEADER, VECTORS = "index.json", "vectors.npy"
FILES = (TEXT, OFFSETS, LENGTHS, META, VECTORS, HEADER)
VERSION = 1
MIX: Literal["mix"] = "mix"
Layer = int | Literal["mix"]
Floats = npt.NDArray[np.float32]
_MOST_BYTES = 2**16
_BLOCK = 2**24  # bytes of the float32 vectors that are in memory at once
_LARGEST = 1.01  # a cosine is at most 1, and here rounded


@dataclass(frozen=True)
class Header:
    """The content of index.json.

    bilm: fingerprint of the biLM that made the vectors; model: what its user called it, for messages.
    text: SHA-256 of the sentences.txt that the vectors belong to.
    of: what has a vector, "words" or "sentences".
    """

    bilm: str
    model: str
    layer: Layer
    width: int
    text: str
    of: str = "words"


def is_index(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder, which may be missing, has an index.json."""
    return (Path(folder) / HEADER).is_file()


def _damaged(folder: Path, reason: object) -> CorpusError:
    return CorpusError(f"{folder}: the index is damaged ({reason}). Delete the folder, and make the index again.")


def read_header(folder: Path) -> Header:
    """Read index.json of a folder, whose values `_Index` compares. Raises CorpusError if it is none."""
    try:
        record = dict(read_json(folder / HEADER, _MOST_BYTES))
        version = record.pop("version")
        if version == VERSION:
            return Header(**record)
    except OSError as error:
        raise CorpusError(
            f"{folder}: no index ({error}). Give the folder that elmo neighbours --index wrote."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, f"{HEADER}: {error!r}") from error
    raise CorpusError(
        f"{folder}: an index in version {shown(version)} of its format. Expected version {VERSION}: make it again."
    )


def find_word(sentence: str | Sequence[str], word: str, occurrence: int, lang: str | None) -> tuple[list[str], int]:
    """Return the words of a sentence, split for `lang` or (None) at blanks, and the index of a word's occurrence."""
    words = split_texts([sentence], lang)[0]
    places = [place for place, other in enumerate(words) if other == word]
    if not places:
        how = "at blanks" if lang is None else f"by spaCy's tokenizer for {lang}"
        remedy = " With a language (lang or --lang), punctuation is split off." if lang is None else ""
        raise ElmoError(
            f"the word {shown(word)} does not occur in the query, which was split {how}, as the corpus is: "
            f"{shown(' '.join(words))}. Expected one of these words, exactly as it is written there.{remedy}"
        )
    if not 1 <= occurrence <= len(places):
        raise SettingsError(
            f"the occurrence is {occurrence}, but the query has {shown(word)} {len(places)} times. Give a "
            f"number from 1 to {len(places)}."
        )
    return words, places[occurrence - 1]


def _best_first(scores: Floats) -> Iterator[int]:
    """Yield the places of numbers from the largest to the smallest, equal ones in their order."""
    return map(int, np.argsort(-scores, kind="stable"))


def unit_vectors(layers: Floats, layer: Layer) -> Floats:
    """Return the vectors of a layer, *Shape:* (words, width), each divided by its length if that is not 0."""
    return of_length_1(layers.mean(0) if layer == MIX else layers[layer])


def _sentence_vector(layers: Floats, layer: Layer) -> Floats:
    vector: Floats = (layers if layer == MIX else layers[[layer]]).mean((0, 1), dtype=np.float64).astype(np.float32)
    return vector


def _fingerprint(embedder: ElmoEmbedder) -> str:
    if embedder.stateful:
        raise SettingsError(
            "the embedder is stateful: vectors would depend on the sentences before. Expected stateful=False."
        )
    return fingerprint_of(embedder.options, embedder.to_arrays())


def build_index(
    source: Name,
    folder: str | os.PathLike[str],
    embedder: ElmoEmbedder,
    *,
    lang: str | None = "auto",
    text_column: str | None = None,
    text_field: str | None = None,
    layer: Layer | None = None,
    model: str = "",
    replace: bool = False,
    progress: BarSetting = False,
    sentences: bool = False,
) -> None:
    """Embed all words of a corpus, and write their vectors and the sentences to a folder.

    The folder appears when it is complete. It holds the sentences as `prepare` writes them, vectors.npy (float16,
    *Shape:* (words, width), each of length 1) and index.json. Memory does not grow with the corpus.
    Of sentences, vectors.npy has the means over their words (float32, *Shape:* (sentences, width), of any length).

    source: a text: a file, a folder, a pattern, or "-", which is standard input (see `read_sentences`).
    folder: a new or empty folder, or an index if `replace` is true.
    lang: of the spaCy tokenizer that splits the text; "auto": `embedder.language`; None: words are separated by blanks.
    text_column, text_field: as of `read_documents`.
    layer: number of the layer; "mix": the mean of all layers; None: the last layer, of sentences the mean.
    model: what the user calls the biLM, for messages.
    progress: as show_progress_bar of ElmoEmbedder.encode.
    sentences: whether to write an index of sentences, for `SentenceIndex`; false: of words, for `WordIndex`.

    Raises ElmoError if the source, the folder or a setting can't be used.
    """
    last = embedder.options.layers - 1
    if layer is None:
        layer = MIX if sentences else last
    elif layer != MIX and (isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer <= last):
        raise SettingsError(f"the layer is {shown(layer)}. Expected 0 to {last}, or {MIX!r}, the mean of all.")
    bilm, kind = _fingerprint(embedder), SentenceIndex if sentences else WordIndex
    target = real(folder)
    with (
        output(folder, CorpusError, [source], names=FILES, marks=(HEADER,), force=replace),
        replacing_folder(target, FILES, CorpusError) as temporary,
    ):
        lang = embedder.language if lang == "auto" else lang
        corpus = prepare(source, temporary, lang, text_column=text_column, text_field=text_field)
        header = Header(bilm, model, layer, embedder.options.width, corpus.meta.sha256, kind.of)
        with (
            writing(target, CorpusError),
            (temporary / VECTORS).open("wb") as file,
            bar_of(progress, total=len(corpus), unit=" sentences") as bar,
        ):
            shape = (len(corpus) if sentences else int(corpus.n_tokens), header.width)
            described = {"descr": kind.dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, described)
            for layers in embedder.embed_sentences(corpus):
                vectors = _sentence_vector(layers, layer) if sentences else unit_vectors(layers, layer)
                file.write(vectors.astype(kind.dtype).tobytes())
                bar.update()
            file.flush()
            os.fsync(file.fileno())
        del corpus  # Windows renames no folder whose files are mapped
        with writing(target, CorpusError):
            (temporary / HEADER).write_text(json.dumps({"version": VERSION} | asdict(header), indent=2) + "\n")


class Neighbour(NamedTuple):
    """A word of the corpus.

    cosine: of its vector with that of the query.
    sentence: number of its sentence, from 1.
    words, place: of the sentence, and the index of the word in them.
    """

    cosine: float
    sentence: int
    words: list[str]
    place: int


class SentenceNeighbour(NamedTuple):
    """A sentence of the corpus.

    score: the cosine of its vector with that of the query; without `normalize` the dot product.
    sentence: its number, from 1.
    """

    score: float
    sentence: int
    words: list[str]


class _Index:
    """The vectors of a corpus and its sentences, as `build_index` wrote them. The vectors stay on disk."""

    of = "words"
    dtype: np.dtype[Any] = np.dtype(np.float16)

    def __init__(self, folder: str | os.PathLike[str], embedder: ElmoEmbedder) -> None:
        self.folder, self.embedder = expanded(folder), embedder
        self.header: Header = read_header(self.folder)
        if self.header.of != self.of:
            raise CorpusError(
                f"{folder}: an index of {self.header.of}. Expected one of {self.of}: make it in another folder, or ask "
                f"this one for {self.header.of} (--sentences asks for sentences)."
            )
        got, expected = _fingerprint(embedder), self.header.bilm
        if got != expected:
            model = shown(self.header.model or "unknown")
            raise CorpusError(
                f"{folder}: another biLM made this index. Its name was {model} and its fingerprint is {expected}, that "
                f"of the biLM here is {got}. Give the biLM that made it (--model), or make an index in another folder."
            )
        try:
            self.corpus = PreparedCorpus(self.folder)
            self.vectors = map_array(self.folder / VECTORS, self.dtype, 2)
        except (CorpusError, OSError, ValueError) as error:
            raise _damaged(self.folder, error) from error
        shape = (self.corpus.n_tokens if self.of == "words" else len(self.corpus), embedder.options.width)
        problem = None
        if is_unfinished(self.folder):
            problem = "a process was killed while it replaced the files"
        elif self.corpus.meta.sha256 != self.header.text:
            problem = "its text is another than that of its vectors"
        elif self.vectors.shape != shape:
            problem = f"vectors of shape {self.vectors.shape} for {shape[0]:,} {self.of}"
        elif self.header.width != shape[1] or self.header.layer not in [*range(embedder.options.layers), MIX]:
            problem = "its biLM has no such layer"
        if problem is not None:
            raise _damaged(self.folder, problem)

    def __len__(self) -> int:
        """The number of vectors."""
        return len(self.vectors)

    def is_of(
        self,
        source: Name,
        lang: str | None = "auto",
        text_column: str | None = None,
        text_field: str | None = None,
    ) -> bool:
        """Return whether the index was made of this text with this tokenizer. lang: "auto": any.

        The same files, with the same sizes and times of change, are the same text. Others are read and compared.
        """
        meta = self.corpus.meta
        lang = meta.language if lang == "auto" else lang
        if lang != meta.language:
            return False
        here = changed(meta, sources=source_files(source), text_column=text_column, text_field=text_field)
        if here.sources and meta.is_of(here):
            return True
        sentences = read_sentences(source, lang, text_column=text_column, text_field=text_field)
        return digest_of(sentences) == meta.sha256

    def _sentence(self, number: int) -> list[str]:
        try:
            return self.corpus.sentence(number)
        except CorpusError as error:
            raise _damaged(self.folder, error) from error

    def _blocks(self) -> Iterator[Floats]:
        rows = max(1, _BLOCK // (4 * self.header.width))
        for start in range(0, len(self.vectors), rows):
            yield self.vectors[start : start + rows].astype(np.float32)

    def _scores(self, score: Callable[[Floats], Floats]) -> Floats:
        return np.concatenate([np.empty(0, np.float32), *(score(block) for block in self._blocks())])


class WordIndex(_Index):
    """All words of a corpus with their vectors, as `build_index` wrote them. The vectors stay on disk.

    embedder: with the biLM that made the vectors.

    Raises CorpusError if it has another one, or if the folder holds no index or a damaged one, and SettingsError if it
    is stateful.
    """

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self.corpus.lengths, dtype=np.int64)

    def neighbours(
        self,
        sentence: str | Sequence[str],
        word: str,
        n: int = 10,
        *,
        occurrence: int = 1,
        other_words: bool = False,
        one_per_sentence: bool = False,
    ) -> list[Neighbour]:
        """Return the words of the corpus whose vectors have the largest cosines with that of a word in a sentence.

        All words are compared. Of equal cosines, the word that comes first in the corpus is first. If the sentence
        itself is in the corpus, that word in it is left out.

        sentence: a text, which is split as the corpus was, or a list of words.
        word: exactly as it is in the sentence.
        n: number of results, at most.
        occurrence: which one if the word occurs several times in the sentence, from 1.
        other_words: whether the same word is left out, in upper or lower case.
        one_per_sentence: whether only the first result of each sentence is kept. Equal sentences count as one.

        Raises SettingsError if a number is not whole, ElmoError if the word does not occur in the sentence that often,
        and CorpusError if the index turns out to be damaged.
        """
        check_whole(0, n=n, occurrence=occurrence)
        words, place = find_word(sentence, word, occurrence, self.corpus.meta.language)
        layers = self.embedder.embed_sentence(words)
        query = unit_vectors(layers[:, place : place + 1], self.header.layer)[0]
        cosines = self._scores(lambda block: block @ query)
        if not (np.abs(cosines) <= _LARGEST).all():
            raise _damaged(self.folder, "vectors that are not of length 1")
        results: list[Neighbour] = []
        seen: set[tuple[str, ...]] = set()
        for row in _best_first(cosines) if n else ():
            number = int(np.searchsorted(self._ends, row, side="right"))
            other = self._sentence(number)
            at = row - int(self._ends[number]) + len(other)
            if (
                (other, at) == (words, place)
                or (other_words and other[at].lower() == word.lower())
                or (one_per_sentence and tuple(other) in seen)
            ):
                continue
            seen.add(tuple(other))
            results.append(Neighbour(float(cosines[row].clip(-1, 1)), number + 1, other, at))
            if len(results) == n:
                break
        return results


class SentenceIndex(_Index):
    """All sentences of a corpus with their vectors, as `build_index` wrote them. As `WordIndex` otherwise."""

    of = "sentences"
    dtype = np.dtype(np.float32)

    def neighbours(
        self, sentence: str | Sequence[str], n: int = 10, *, normalize: bool = True, center: bool = True
    ) -> list[SentenceNeighbour]:
        """Return the sentences of the corpus whose vectors are nearest to that of a sentence.

        All are compared. Of equal ones, the sentence that comes first in the corpus is first. The sentence itself is
        left out.

        sentence: a text, which is split as the corpus was, or a list of words.
        n: number of results, at most.
        normalize: whether vectors are divided by their lengths, so that scores are cosines; false: dot products.
        center: whether the mean of the corpus is subtracted from all vectors first. Without it, most cosines are high.

        Raises SettingsError if n is no whole number, ElmoError if the sentence has no words, and CorpusError if the
        index turns out to be damaged.
        """
        check_whole(0, n=n)
        words = split_texts([sentence], self.corpus.meta.language)[0]
        if not words:
            raise ElmoError(f"the query is {shown(sentence)}, which has no words. Expected a sentence.")
        query = _sentence_vector(self.embedder.embed_sentence(words), self.header.layer)
        mean = self._mean if center else np.zeros_like(query)
        change = of_length_1 if normalize else np.asarray
        query = change(query - mean)
        scores = self._scores(lambda block: change(block - mean) @ query)
        found = (SentenceNeighbour(float(scores[row]), row + 1, self._sentence(row)) for row in _best_first(scores))
        return list(islice((each for each in found if each.words != words), n))

    def _blocks(self) -> Iterator[Floats]:
        for block in super()._blocks():
            if not np.isfinite(block).all():
                raise _damaged(self.folder, "vectors that are not finite")
            yield block

    @cached_property
    def _mean(self) -> Floats:
        total = sum(block.sum(0, dtype=np.float64) for block in self._blocks())
        mean: Floats = np.divide(total, len(self.vectors)).astype(np.float32)
        return mean
