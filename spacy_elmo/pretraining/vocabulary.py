"""The words that a biLM's softmax predicts, and how often they occur."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FILE_UNREADABLE, CorpusError, shown
from ..formats.atomic import replacing, writing
from ..formats.paths import expanded
from ..text.files import lines_of
from ..text.words import Unusable, decode_line

START, END, UNKNOWN = 0, 1, 2  # ids of the special words
SPECIAL = ("<S>", "</S>", "<UNK>")

Counts = npt.NDArray[np.int64]


def counts_path(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix('.txt')}.counts.npy")


def read_words(path: Path) -> list[str]:
    """Return the words of a vocabulary file: one a line, in UTF-8, each once, `<S>`, `</S>` and `<UNK>` first."""
    words: dict[str, int] = {}
    number = 0
    try:
        with path.open("rb") as file:
            for number, (line, _) in enumerate(zip_longest(lines_of(file), SPECIAL, fillvalue=b""), 1):
                word = decode_line(line, number).removesuffix("\n").removesuffix("\r")
                if number <= len(SPECIAL) and word != SPECIAL[number - 1]:
                    raise Unusable(f"{shown(word)}, not {SPECIAL[number - 1]}")
                if not word or word.strip() != word:
                    raise Unusable(f"{shown(word)} is empty, or begins or ends with a blank")
                if word in words:
                    raise Unusable(f"{shown(word)} comes twice, in line {words[word]} as well")
                words[word] = number
    except OSError as error:
        expected = "a vocabulary, one word a line"
        raise CorpusError(FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
    except Unusable as error:
        raise CorpusError(
            f"{path}: line {number}: {error}. Expected one word a line, in UTF-8, each word once, "
            f"{', '.join(SPECIAL)} first."
        ) from error
    return list(words)


def _fits_a_line(word: str) -> bool:
    return word.strip() == word and not {"\n", "\r", "\0"}.intersection(word)


def _read_counts(path: Path, n_words: int) -> Counts | None:
    file = counts_path(path)
    if not file.exists():
        return None
    try:
        counts: Counts = np.load(file, allow_pickle=False)
        if counts.dtype != np.int64 or counts.shape != (n_words,) or (counts < 0).any():
            raise ValueError(f"{counts.dtype} of shape {counts.shape}, the smallest {counts.min(initial=0)}")
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(
            f"{file}: not the counts of these words ({error}). Expected {n_words:,} numbers of int64, none below "
            "0: build the vocabulary again, or delete the counts."
        ) from error
    return counts


class WordCounts(NamedTuple):
    """How often words occur in a text, in the order of first occurrence, and its number of sentences."""

    words: Counter[str]
    n_sentences: int


def count_words(sentences: Iterable[Sequence[str]]) -> WordCounts:
    words: Counter[str] = Counter()
    n_sentences = 0
    for sentence in sentences:
        words.update(sentence)
        n_sentences += 1
    return WordCounts(words, n_sentences)


def least_count(counted: WordCounts, size: int) -> int:
    """Return how often a word must occur so that `<UNK>` is learned: 1 if not all words fit into `size`.

    Otherwise it is 2, if words that occur twice or more often are at least half of the text.
    """
    if len(counted.words) > size - len(SPECIAL):
        return 1
    repeated = sum(n for n in counted.words.values() if n > 1)
    return 2 if 2 * repeated >= counted.words.total() else 1


class Vocabulary:
    """The words of a softmax, in the order of their ids, with their counts.

    After `<S>`, `</S>` and `<UNK>` they must be sorted by falling frequency in the training text: the sampled softmax
    draws the word of id i with a probability of about 1 / (i + 1).

    counts: *Shape:* (words,), occurrences in the training text, of `<S>` and `</S>` the number of sentences; or None.
    """

    def __init__(self, words: Sequence[str], counts: Counts | None = None) -> None:
        self.words, self.counts = list(words), counts
        # A word of the text that is spelled like a special word is an unknown word.
        self._ids = {word: number for number, word in enumerate(self.words) if number >= len(SPECIAL)}

    @classmethod
    def from_counts(cls, counted: WordCounts, size: int | None = None, min_count: int = 1) -> Vocabulary:
        """Return the vocabulary of the most frequent words, of equally frequent ones the earlier first.

        size: largest number of words, with `<S>`, `</S>` and `<UNK>`. Raises CorpusError if none occurs `min_count`
        times.
        """
        frequent = {
            word: n
            for word, n in counted.words.items()
            if n >= min_count and word not in SPECIAL and _fits_a_line(word)
        }
        if not frequent:
            raise CorpusError(
                f"no word of the text occurs {min_count:,} times. Lower vocabulary.min_count (vocab: --min-count), or "
                "give more text."
            )
        # the sort is stable, so equal counts stay in the order of first occurrence
        words = sorted(frequent, key=frequent.__getitem__, reverse=True)
        words = words if size is None else words[: size - len(SPECIAL)]
        numbers = [frequent[word] for word in words]
        unknown = counted.words.total() - sum(numbers)
        return cls([*SPECIAL, *words], np.array([counted.n_sentences] * 2 + [unknown, *numbers], np.int64))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read a vocabulary, and vocabulary.counts.npy, if it is there, for vocabulary.txt."""
        path = expanded(path)
        words = read_words(path)
        return cls(words, _read_counts(path, len(words)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write what `read` reads. After a kill it may have no counts; it never has those of another vocabulary."""
        counts_file = counts_path(expanded(path))
        with replacing(path, CorpusError) as temporary, writing(path, CorpusError):
            temporary.write_text("".join(f"{word}\n" for word in self.words), encoding="utf8", newline="\n")
            counts_file.unlink(missing_ok=True)
        if self.counts is not None:
            content = io.BytesIO()
            np.save(content, self.counts, allow_pickle=False)
            with replacing(counts_file, CorpusError) as temporary, writing(counts_file, CorpusError):
                temporary.write_bytes(content.getvalue())

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> npt.NDArray[np.int32]:
        """Return the id of each word, *Shape:* (words,); that of `<UNK>` for unknown and for special words."""
        get = self._ids.get
        return np.array([get(word, UNKNOWN) for word in words], np.int32)

    @property
    def coverage(self) -> float | None:
        """The share of the training text's tokens that are in the vocabulary."""
        if self.counts is None:
            return None
        known = int(self.counts[len(SPECIAL) :].sum())
        return known / max(1, known + int(self.counts[UNKNOWN]))

    def log_unigram(self) -> npt.NDArray[np.float64] | None:
        """Return the natural logarithm of each word's probability in the training text; None if there are no counts.

        One is added to the count of each word but `<S>` and `</S>`. Each direction predicts one of these two, so the
        probabilities of all words but one of them sum to 1.
        """
        if self.counts is None:
            return None
        counts = self.counts.astype(np.float64) + 1
        counts[[START, END]] = np.maximum(self.counts[[START, END]], 1)  # a text has at least one sentence
        result: npt.NDArray[np.float64] = np.log(counts / (counts.sum() - counts[START]))
        return result
