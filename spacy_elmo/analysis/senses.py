"""Finds the senses of a test set by the nearest sense, and scores them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..corpus.bilm import embed_finite
from ..errors import CorpusError, shown
from ..formats.paths import existing_file
from ..formats.vectors import of_length_1
from ..inference import Embedder
from ..text.files import lines_of, unpacked
from ..text.words import Unusable, decode_line
from .probing import Array

NONE = "-"


class Lemma(NamedTuple):
    """What senses are looked up by, as the corpus writes it."""

    lemma: str
    pos: str


class Instance(NamedTuple):
    """A word of a sentence that has a sense, or several that are an expression, such as "natural gas".

    senses: those that are right, one or more.
    """

    start: int
    end: int
    lemma: Lemma
    senses: tuple[str, ...]


class SenseSentence(NamedTuple):
    """words: of the sentence. instances: those that have senses, in order."""

    words: list[str]
    instances: list[Instance]


def read_senses(path: Path) -> list[SenseSentence]:
    """Read a corpus with senses. Sentences without a sense are left out, because nothing depends on them.

    path: text in UTF-8, perhaps packed as .gz, .xz or .zst. A line is a word (several if it has blanks), its lemma, its
        part of speech and its senses, with tabs between them; several senses have blanks between them, and - stands
        for none. An empty line ends a sentence. Lines that begin with # and have no tab are comments.
    """
    sentences: list[SenseSentence] = []
    current = SenseSentence([], [])
    for number, line in chain(_lines(path), [(0, "")]):
        if line:
            _add(current, line, path, number)
        elif current.words:
            if current.instances:
                sentences.append(current)
            current = SenseSentence([], [])
    if not sentences:
        raise CorpusError(f"{path}: no word with a sense. Expected one or more: give another corpus.")
    return sentences


def read_first_senses(path: Path) -> dict[Lemma, str]:
    """Read the first sense of each lemma, such as WordNet's. A line has lemma, part of speech and sense, with tabs."""
    first: dict[Lemma, str] = {}
    for number, line in _lines(path):
        if not line:
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 3 or not all(columns) or columns[2] == NONE or len(columns[2].split()) > 1:
            expected = "a lemma, a part of speech and the first sense, divided by tabs"
            raise CorpusError(f"{path}, line {number}: {shown(line)}. Expected {expected}.")
        lemma = Lemma(*columns[:2])
        if lemma in first:
            raise CorpusError(f"{path}, line {number}: {lemma[0]} ({lemma[1]}) again. Leave one out.")
        first[lemma] = columns[2]
    if not first:
        raise CorpusError(
            f"{path}: no first senses. Expected lines of a lemma, a part of speech and a sense, divided by tabs; leave "
            "out --first-senses to take those of TRAIN."
        )
    return first


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with unpacked(existing_file(path, "a text with tabs", CorpusError)) as file:
        for number, data in enumerate(lines_of(file), 1):
            try:
                line = decode_line(data, number).rstrip("\r\n")
            except Unusable as error:
                raise CorpusError(f"{path}, line {number}: {error}. Correct or remove the line.") from error
            if not line.startswith("#") or "\t" in line:
                yield number, line if line.strip() else ""


def _add(sentence: SenseSentence, line: str, path: Path, number: int) -> None:
    columns = [column.strip() for column in line.split("\t")]
    words, senses = columns[0].split(), columns[-1].split()
    if len(columns) != 4 or not words or not senses or (NONE in senses and len(senses) > 1):
        raise CorpusError(
            f"{path}, line {number}: {shown(line)}. Expected a word, its lemma, its part of speech and its senses, "
            "divided by tabs, with - for no sense, or an empty line between sentences."
        )
    start = len(sentence.words)
    sentence.words.extend(words)
    if senses == [NONE]:
        return
    lemma = Lemma(*columns[1:3])
    if not all(lemma):
        missing = "a part of speech" if lemma.lemma else "a lemma"
        raise CorpusError(
            f"{path}, line {number}: a sense without {missing}. Add it: senses are looked up by lemma and "
            "part of speech."
        )
    sentence.instances.append(Instance(start, len(sentence.words), lemma, tuple(senses)))


class SenseInventory:
    """The instances of a training corpus. A sum of vectors is kept for each sense, and no other vectors."""

    def __init__(self) -> None:
        self._sums: dict[Lemma, dict[str, Array]] = {}
        self._counts: dict[Lemma, Counter[str]] = {}

    def __contains__(self, lemma: Lemma) -> bool:
        return lemma in self._counts

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def n_senses(self) -> int:
        return sum(map(len, self._counts.values()))

    def add(self, instance: Instance, vectors: Array) -> None:
        """Add an instance to each of its senses. vectors: *Shape:* (rows, width)."""
        sums = self._sums.setdefault(instance.lemma, {})
        self._counts.setdefault(instance.lemma, Counter()).update(instance.senses)
        for sense in instance.senses:
            sums[sense] = sums[sense] + vectors if sense in sums else vectors

    def most_frequent(self, lemma: Lemma) -> str | None:
        """Return the most frequent sense of a lemma, the first one of equals; None if the lemma was not added."""
        return self._counts[lemma].most_common(1)[0][0] if lemma in self else None

    def nearest(self, lemma: Lemma, vectors: Array) -> list[str]:
        """Return for each row of *Shape:* (rows, width) the sense whose mean vector has the largest cosine with it."""
        senses = list(self._sums[lemma])
        means = np.stack([self._sums[lemma][sense] for sense in senses])  # their lengths make no difference
        cosines = (of_length_1(means) * of_length_1(vectors)).sum(-1)  # (senses, rows)
        return [senses[i] for i in cosines.argmax(0)]


class SenseScore(NamedTuple):
    """Counts of instances: those whose answer is one of their senses, those that have an answer, all."""

    right: int = 0
    answered: int = 0
    instances: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.answered if self.answered else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.instances if self.instances else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; the accuracy if all are answered."""
        return 2 * self.right / (self.answered + self.instances) if self.right else 0.0

    def plus(self, answer: str | None, senses: tuple[str, ...]) -> SenseScore:
        """Return the score with one more instance. answer: None if there is none."""
        return SenseScore(self.right + (answer in senses), self.answered + (answer is not None), self.instances + 1)


OnSentences = Callable[[int], object]  # gets a number of sentences that are done
_SENTENCES = 1000  # embedded at a time: no other vectors are in memory


def instance_vectors(
    bilm: Embedder, sentences: Sequence[SenseSentence], progress: OnSentences = lambda sentences: None
) -> Iterator[tuple[Instance, Array]]:
    """Yield each instance, in the order of the text, and its vectors, (layers + 1, width): the last is their mean.

    The vector of an instance of several words is the mean of theirs. progress is told numbers of sentences.
    """
    for start in range(0, len(sentences), _SENTENCES):
        block = sentences[start : start + _SENTENCES]
        found: list[list[tuple[Instance, Array]]] = [[] for _ in block]
        for i, layers in embed_finite(bilm, [sentence.words for sentence in block]):  # in an order of its own
            for instance in block[i].instances:
                vectors = layers[:, instance.start : instance.end].mean(1)
                found[i].append((instance, np.concatenate([vectors, vectors.mean(0, keepdims=True)])))
        yield from chain.from_iterable(found)
        progress(len(block))


class SenseResult(NamedTuple):
    """The scores of a test set: of the first sense, and of the nearest one by each layer and by their mean.

    unseen: number of instances whose lemma the training corpus does not have, so that they get their first sense.
    """

    first_sense: SenseScore
    rows: list[SenseScore]
    unseen: int


def evaluate(
    inventory: SenseInventory, listed: Mapping[Lemma, str], instances: Iterable[tuple[Instance, Array]], rows: int
) -> SenseResult:
    """Score a test set: its instances with their vectors, *Shape:* (rows, width) each.

    The first sense of a lemma is the listed one, such as WordNet's, or the most frequent one of the inventory.
    """
    first_sense, scores, unseen = SenseScore(), [SenseScore()] * rows, 0
    for instance, vectors in instances:
        first = listed.get(instance.lemma) or inventory.most_frequent(instance.lemma)
        known = instance.lemma in inventory
        answers = inventory.nearest(instance.lemma, vectors) if known else [first] * rows
        unseen += not known
        first_sense = first_sense.plus(first, instance.senses)
        scores = [score.plus(answer, instance.senses) for score, answer in zip(scores, answers)]
    return SenseResult(first_sense, scores, unseen)


def all_together(results: list[SenseResult]) -> SenseResult:
    """Return the result of several test sets as one."""
    first_senses, rows, unseen = zip(*results)
    scores = [SenseScore(*map(sum, zip(*group))) for group in [first_senses, *zip(*rows)]]
    return SenseResult(scores[0], scores[1:], sum(unseen))
