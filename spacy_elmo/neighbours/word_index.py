"""An index of all words of a corpus, and the nearest of them to a word in a sentence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..allennlp.embedder import ElmoEmbedder
from ..errors import CorpusError, Errors, SettingsError, shown
from ..formats.atomic_folder import is_unfinished
from ..formats.strict.npy import read_npy
from ..formats.text.sources import find_files
from ..pretraining.text.prepared import PreparedCorpus
from ..pretraining.text.preparing import digest_of, source_files
from ..pretraining.text.reading import read_sentences
from .header import VECTORS, Header, read_header
from .query import find_word
from .search import best_first, cosines_with
from .unit_vectors import fingerprint, unit_vectors

_LARGEST = 1.01  # a cosine is at most 1, and here rounded


class Neighbour(NamedTuple):
    """A word of the corpus.

    cosine: of its vector with that of the query.
    sentence: number of its sentence, from 1.
    words: of the sentence.
    place: index of the word in them.
    """

    cosine: float
    sentence: int
    words: list[str]
    place: int


class WordIndex:
    """All words of a corpus with their vectors, as `build_index` wrote them. The vectors stay on disk.

    folder: as `build_index` wrote it.
    embedder: with the biLM that made the vectors.

    Raises CorpusError if the folder holds no index, or a damaged one, or one that another biLM made, and SettingsError
    if the embedder is stateful.
    """

    def __init__(self, folder: str | os.PathLike[str], embedder: ElmoEmbedder) -> None:
        self.folder, self.embedder = Path(folder), embedder
        self.header: Header = read_header(self.folder)
        if is_unfinished(self.folder):
            raise self._damaged("a process was killed while it replaced the files")
        got, expected = fingerprint(embedder), self.header.bilm
        if got != expected:
            model = shown(self.header.model or "unknown")
            raise CorpusError(Errors.INDEX_BILM.format(folder=folder, expected=expected, model=model, got=got))
        try:
            self.corpus = PreparedCorpus.open(self.folder)
            self.vectors = read_npy(self.folder / VECTORS, np.float16, self.header.width)
        except (CorpusError, OSError, ValueError) as error:
            raise self._damaged(error) from error
        if self.corpus.meta.sha256 != self.header.text:
            raise self._damaged("its text is another than that of its vectors")
        if len(self.vectors) != self.corpus.n_tokens:
            raise self._damaged(f"{len(self.vectors):,} vectors of {self.corpus.n_tokens:,} words")
        if self.header.width != embedder.options.width or self.header.layer not in (
            *range(embedder.options.layers),
            "mix",
        ):
            raise self._damaged("its biLM has no such layer")
        self._ends = np.cumsum(self.corpus.lengths, dtype=np.int64)

    def __len__(self) -> int:
        """The number of words."""
        return len(self.vectors)

    def is_of(self, source: str | os.PathLike[str], lang: str | None) -> bool:
        """Return whether the index was made of this text with this tokenizer.

        Files of the same names, sizes and times of change are the same text. Others are read and compared.

        source: a file, a folder or a pattern.
        lang: of the spaCy tokenizer, or None.

        Raises CorpusError if the source has no files, or if it must be read and can't be.
        """
        meta = self.corpus.meta
        if lang != meta.language:
            return False
        same_files = meta.is_of(source_files(find_files(source)), lang)
        return same_files or digest_of(read_sentences(source, lang)) == meta.sha256

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
        and CorpusError if the index turns out
        to be damaged.
        """
        for name, number in (("n", n), ("occurrence", occurrence)):
            if not isinstance(number, int | np.integer) or isinstance(number, bool):
                raise SettingsError(Errors.INDEX_NUMBER.format(name=name, got=shown(number)))
        words, place = find_word(sentence, word, occurrence, self.corpus.meta.language)
        layers = self.embedder.embed_sentence(words)
        query = unit_vectors(layers[:, place : place + 1], self.header.layer)[0]
        cosines = cosines_with(self.vectors, query)
        if not (np.abs(cosines) <= _LARGEST).all():
            raise self._damaged("vectors that are not of length 1")
        results: list[Neighbour] = []
        seen: set[tuple[str, ...]] = set()
        for row in best_first(cosines) if n > 0 else ():
            other = self._neighbour(row, float(cosines[row]))
            if (other.words, other.place) == (words, place):
                continue
            if other_words and other.words[other.place].lower() == word.lower():
                continue
            if one_per_sentence and tuple(other.words) in seen:
                continue
            seen.add(tuple(other.words))
            results.append(other)
            if len(results) == n:
                break
        return results

    def _neighbour(self, row: int, cosine: float) -> Neighbour:
        number = int(np.searchsorted(self._ends, row, side="right"))
        try:
            words = self.corpus.sentence(number)
        except CorpusError as error:
            raise self._damaged(error) from error
        return Neighbour(min(1.0, max(-1.0, cosine)), number + 1, words, row - int(self._ends[number]) + len(words))

    def _damaged(self, reason: object) -> CorpusError:
        return CorpusError(Errors.INDEX_DAMAGED.format(folder=self.folder, reason=reason))
