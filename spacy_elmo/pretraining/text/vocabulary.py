"""The words that a biLM's softmax predicts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError, Errors, SettingsError, shown
from .vocabulary_file import END, SPECIAL, START, UNKNOWN, Counts, check_counts, read_counts, read_words, write_files

Ids = npt.NDArray[np.int32]


class WordCounts(NamedTuple):
    """words: how often each occurs, in the order of its first occurrence; n_sentences: those counted."""

    words: Counter[str]
    n_sentences: int


def count_words(sentences: Iterable[Sequence[str]]) -> WordCounts:
    """Count the words of a corpus; memory grows with the distinct ones alone."""
    words: Counter[str] = Counter()
    n_sentences = 0
    for sentence in sentences:
        words.update(sentence)
        n_sentences += 1
    return WordCounts(words, n_sentences)


class Vocabulary:
    """words: `<S>`, `</S>`, `<UNK>`, then the others by falling frequency in the training text.

    The order matters: the log-uniform sampler of the sampled softmax draws word i with a probability of about
    1 / (i + 1), which is right for words sorted so, as they are in the originals' files.

    counts: (words,) in the training text: of `<S>` and `</S>` the sentences, of `<UNK>` the tokens that are none of
    the words; None where they are not known.
    """

    def __init__(self, words: Sequence[str], counts: Counts | None = None) -> None:
        """Raises CorpusError for counts that are not of these words."""
        self.words, self.counts = list(words), counts
        if counts is not None:
            check_counts("counts", counts, len(self.words))
        # the special three are no words of the text
        self._ids = {word: number for number, word in enumerate(self.words) if number >= len(SPECIAL)}

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], size: int | None = None, min_count: int = 1) -> Vocabulary:
        """The vocabulary of a text, for example of a PreparedCorpus; see from_counts."""
        return cls.from_counts(count_words(sentences), size, min_count)

    @classmethod
    def from_counts(cls, counted: WordCounts, size: int | None = None, min_count: int = 1) -> Vocabulary:
        """The most frequent words; of two that are as frequent, the one that occurred first.

        size: at most so many, the special three included; None: all. min_count: how often each must occur.
        Words spelled `<S>`, `</S>` or `<UNK>` in the text are taken for unknown ones.
        Raises SettingsError for numbers that can't be used, CorpusError where no word occurs often enough.
        """
        if size is not None and not _is_whole(size, len(SPECIAL)):
            raise SettingsError(Errors.VOCABULARY_SIZE.format(got=shown(size), expected=len(SPECIAL)))
        if not _is_whole(min_count, 1):
            raise SettingsError(Errors.VOCABULARY_MIN_COUNT.format(got=shown(min_count)))
        frequent = [(w, n) for w, n in counted.words.items() if n >= min_count and w not in SPECIAL]
        if not frequent:
            raise CorpusError(Errors.VOCABULARY_EMPTY.format(min_count=min_count))
        frequent.sort(key=lambda pair: -pair[1])  # stable: equal ones stay in the order of first occurrence
        kept = frequent if size is None else frequent[: size - len(SPECIAL)]
        numbers = [n for _, n in kept]
        unknown = counted.words.total() - sum(numbers)
        counts = np.array([counted.n_sentences, counted.n_sentences, unknown, *numbers], np.int64)
        return cls([*SPECIAL, *(word for word, _ in kept)], counts)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read one word a line, and the counts beside it (vocabulary.txt: vocabulary.counts.npy) if they are there.

        Raises CorpusError, which names the line, for what is not in UTF-8, words that come twice, empty lines, words
        with blanks, and where the special three do not come first; and for counts of other words.
        """
        words = read_words(Path(path))
        return cls(words, read_counts(Path(path), len(words)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write one word a line, and the counts beside it if they are known; each whole or not at all.

        Counts of an earlier vocabulary there are deleted first. Raises CorpusError.
        """
        write_files(Path(path), self.words, self.counts)

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> Ids:
        """*Shape:* (words,): the number of each; of unknown words, and those spelled as the special three, 2."""
        get = self._ids.get
        return np.array([get(word, UNKNOWN) for word in words], np.int32)

    @property
    def coverage(self) -> float | None:
        """The share of the training text's tokens that are words of the vocabulary; None without counts."""
        if self.counts is None:
            return None
        known = int(self.counts[len(SPECIAL) :].sum())
        return known / max(1, known + int(self.counts[UNKNOWN]))

    def log_unigram(self) -> npt.NDArray[np.float64] | None:
        """*Shape:* (words,): log p of each word in the training text, one added to each count; None without counts.

        `<S>` and `</S>` each count once a sentence. Sums to 1 for one direction's targets: `<S>` shares `</S>`'s
        probability, since each direction predicts one of them.
        """
        if self.counts is None:
            return None
        counts = self.counts.astype(np.float64) + 1
        counts[[START, END]] = np.maximum(self.counts[[START, END]], 1)  # a text has a sentence at least
        result: npt.NDArray[np.float64] = np.log(counts / (counts.sum() - counts[START]))
        return result


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
