"""The words that a biLM's softmax predicts, and how often they occur."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import FILE_NOT_REGULAR, FILE_UNREADABLE, CorpusError, SettingsError, shown
from ..formats.atomic import replacing, writing
from ..formats.characters import too_long
from ..formats.text import lines_of
from .prepared import PreparedCorpus

START, END, UNKNOWN = 0, 1, 2  # ids of the special words
SPECIAL = ("<S>", "</S>", "<UNK>")

Counts = npt.NDArray[np.int64]


def counts_path(path: Path) -> Path:
    """Return the path of the counts of a vocabulary: vocabulary.counts.npy for vocabulary.txt."""
    return path.with_name(f"{path.name.removesuffix('.txt')}.counts.npy")


def read_words(path: Path) -> list[str]:
    """Return the words of a vocabulary file. Raises CorpusError, which names the line, as `Vocabulary.read` does."""
    words: dict[str, int] = {}
    expected = "a vocabulary, one word a line"
    _check_regular(path, expected)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(lines_of(file), 1):
                word = _word(path, number, line)
                if number <= len(SPECIAL) and word != SPECIAL[number - 1]:
                    _refuse_first(path, number, word)
                if word in words:
                    _refuse(path, number, f"{shown(word)} comes twice, in line {words[word]} as well")
                words[word] = number
    except OSError as error:
        raise CorpusError(FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
    if len(words) < len(SPECIAL):
        _refuse_first(path, len(words) + 1, None)
    return list(words)


def _word(path: Path, number: int, line: bytes | None) -> str:
    if line is None:
        _refuse(path, number, "it is far too long for a word")
    try:
        word = line.decode("utf8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        _refuse(path, number, f"it is not UTF-8 ({error.reason})")
    if number == 1:
        word = word.removeprefix("\ufeff")  # a byte order mark
    if not word:
        _refuse(path, number, "it is empty")
    if word.split() != [word]:
        _refuse(path, number, f"{shown(word)} has blanks")
    return word


def read_counts(path: Path, n_words: int) -> Counts | None:
    """Read the counts of a vocabulary.

    path: of the vocabulary, not of the counts.
    n_words: number of its words.

    Returns *Shape:* (n_words,); None if there is no file of counts.
    Raises CorpusError if the file does not hold `n_words` counts.
    """
    file = counts_path(path)
    if not file.exists():
        return None
    _check_regular(file, "the counts of a vocabulary")
    try:
        counts: Counts = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CorpusError(
            f"{file}: not the counts of these words ({error}). Expected {n_words:,} numbers of int64, none below "
            "0: build the vocabulary again, or delete the counts."
        ) from error
    check_counts(str(file), counts, n_words)
    return counts


def check_counts(source: str, counts: object, n_words: int) -> None:
    """Raise CorpusError if counts are not an int64 array of shape (n_words,) without negative numbers."""
    if not isinstance(counts, np.ndarray):
        reason = f"a {type(counts).__name__}"
    elif counts.dtype != np.int64 or counts.shape != (n_words,):
        reason = f"{counts.dtype} of shape {counts.shape}"
    elif (counts < 0).any():
        reason = f"{counts.min()} is among them"
    else:
        return
    raise CorpusError(
        f"{source}: not the counts of these words ({reason}). Expected {n_words:,} numbers of int64, none below "
        "0: build the vocabulary again, or delete the counts."
    )


def write_files(path: Path, words: list[str], counts: Counts | None) -> None:
    """Write both files of a vocabulary, each atomically.

    If the process is killed in between, the vocabulary has no counts; it never has those of another one.

    counts: *Shape:* (words,); None: no file of counts is written, and an earlier one is deleted.

    Raises CorpusError if a file can't be written.
    """
    counts_file = counts_path(path)
    with replacing(path, CorpusError) as temporary, writing(path, CorpusError):
        temporary.write_text("".join(f"{word}\n" for word in words), encoding="utf8", newline="\n")
        counts_file.unlink(missing_ok=True)
    if counts is not None:
        with (
            replacing(counts_file, CorpusError) as temporary,
            writing(counts_file, CorpusError),
            temporary.open("wb") as file,
        ):
            np.save(file, counts, allow_pickle=False)


def _check_regular(path: Path, expected: str) -> None:
    if path.exists() and not path.is_file():  # reading a pipe could wait forever
        raise CorpusError(FILE_NOT_REGULAR.format(path=path, expected=expected))


def _refuse(path: Path, number: int, problem: str) -> NoReturn:
    raise CorpusError(f"{path}: line {number}: {problem}. Expected one word a line, in UTF-8, each word once.")


def _refuse_first(path: Path, number: int, word: str | None) -> NoReturn:
    got = "missing" if word is None else shown(word)
    expected, special = SPECIAL[number - 1], ", ".join(SPECIAL)
    message = f"{path}: line {number} is {got}. Expected {expected}: {special} come first, in this order."
    raise CorpusError(message)


Ids = npt.NDArray[np.int32]


class WordCounts(NamedTuple):
    """How often words occur in a text, in the order of first occurrence, and its number of sentences."""

    words: Counter[str]
    n_sentences: int


def count_words(sentences: Iterable[Sequence[str]]) -> WordCounts:
    """Count the words of a text. Memory grows only with the number of distinct words."""
    words: Counter[str] = Counter()
    n_sentences = 0
    for sentence in sentences:
        words.update(sentence)
        n_sentences += 1
    return WordCounts(words, n_sentences)


def least_count(counted: WordCounts, size: int) -> int:
    """Return how often a word must occur to be in a vocabulary that leaves some words of the text out.

    If all words fit, `<UNK>` would never be learned. Then it is 2, if words that occur twice or more often are at least
    half of the text. Otherwise it is 1.

    size: largest number of words, with `<S>`, `</S>` and `<UNK>`.
    """
    if len(counted.words) > size - len(SPECIAL):
        return 1
    repeated = sum(n for n in counted.words.values() if n > 1)
    return 2 if 2 * repeated >= counted.words.total() else 1


class Vocabulary:
    """The words of a softmax, in the order of their ids, with their counts.

    The words after `<S>`, `</S>` and `<UNK>` must be sorted by falling frequency in the training text, as in the
    official models: the log-uniform sampler of the sampled softmax draws the word of id i with a probability of about
    1 / (i + 1).

    words: `<S>`, `</S>`, `<UNK>`, then the others.
    counts: *Shape:* (words,), occurrences in the training text; None if they are unknown. For `<S>` and `</S>` it is
        the number of sentences, for `<UNK>` the number of tokens that are none of the words.

    Raises CorpusError if the counts do not fit the words.
    """

    def __init__(self, words: Sequence[str], counts: Counts | None = None) -> None:
        self.words, self.counts = list(words), counts
        if counts is not None:
            check_counts("counts", counts, len(self.words))
        # A word of the text that is spelled like a special word is an unknown word.
        self._ids = {word: number for number, word in enumerate(self.words) if number >= len(SPECIAL)}

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], size: int | None = None, min_count: int = 1) -> Vocabulary:
        """Return the vocabulary of a text. size, min_count: see `from_counts`, which also tells the errors."""
        return cls.from_counts(count_words(sentences), size, min_count)

    @classmethod
    def from_counts(cls, counted: WordCounts, size: int | None = None, min_count: int = 1) -> Vocabulary:
        """Return the vocabulary of the most frequent words. Of two equally frequent words the earlier one comes first.

        Words of the text that are spelled `<S>`, `</S>` or `<UNK>` count as unknown words.

        size: largest number of words, with `<S>`, `</S>` and `<UNK>`, 3 or more; None: no limit.
        min_count: how often a word must occur, 1 or more.

        Raises SettingsError if `size` or `min_count` is out of range, CorpusError if no word occurs often enough.
        """
        if size is not None and not _is_int(size, len(SPECIAL)):
            raise SettingsError(
                f"the vocabulary's size is {shown(size)}. Expected a whole number, {len(SPECIAL)} or more."
            )
        if not _is_int(min_count, 1):
            raise SettingsError(f"the minimum count is {shown(min_count)}. Expected a whole number, 1 or more.")
        frequent = [(w, n) for w, n in counted.words.items() if n >= min_count and w not in SPECIAL]
        if not frequent:
            raise CorpusError(
                f"no word of the text occurs {min_count:,} times. Lower vocabulary.min_count (vocab: "
                "--min-count), or give more text."
            )
        # the sort is stable, so equal counts stay in the order of first occurrence
        frequent.sort(key=lambda pair: -pair[1])
        chosen = frequent if size is None else frequent[: size - len(SPECIAL)]
        numbers = [n for _, n in chosen]
        unknown = counted.words.total() - sum(numbers)
        counts = np.array([counted.n_sentences, counted.n_sentences, unknown, *numbers], np.int64)
        return cls([*SPECIAL, *(word for word, _ in chosen)], counts)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read a vocabulary, and its counts if their file is there.

        path: one word a line, in UTF-8. The counts of vocabulary.txt are in vocabulary.counts.npy.

        Raises CorpusError, which names the line, if a line is not in UTF-8, is empty, has blanks or repeats an earlier
        one, or if `<S>`, `</S>` and `<UNK>` do not come first. Raises CorpusError as well if the counts do not fit.
        """
        words = read_words(Path(path))
        return cls(words, read_counts(Path(path), len(words)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary, and its counts if they are known, each file atomically.

        Counts of an earlier vocabulary of this name are deleted first.

        path: one word a line, in UTF-8. The counts of vocabulary.txt go to vocabulary.counts.npy.

        Raises CorpusError if a file can't be written.
        """
        write_files(Path(path), self.words, self.counts)

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> Ids:
        """Return the id of each word, *Shape:* (words,); that of `<UNK>` for unknown words and for special words."""
        get = self._ids.get
        return np.array([get(word, UNKNOWN) for word in words], np.int32)

    @property
    def coverage(self) -> float | None:
        """The share of the training text's tokens that are in the vocabulary; None if there are no counts."""
        if self.counts is None:
            return None
        known = int(self.counts[len(SPECIAL) :].sum())
        return known / max(1, known + int(self.counts[UNKNOWN]))

    def log_unigram(self) -> npt.NDArray[np.float64] | None:
        """Return the natural logarithm of each word's probability in the training text, *Shape:* (words,).

        One is added to the count of each word of the text and of `<UNK>`. The forward direction predicts `</S>` and
        never `<S>`, the backward direction the reverse. Both have the same probability, and the probabilities of all
        words but one of these two sum to 1.

        Returns None if there are no counts.
        """
        if self.counts is None:
            return None
        counts = self.counts.astype(np.float64) + 1
        counts[[START, END]] = np.maximum(self.counts[[START, END]], 1)  # a text has at least one sentence
        result: npt.NDArray[np.float64] = np.log(counts / (counts.sum() - counts[START]))
        return result


def _is_int(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


SENTENCES = 10_000  # that are looked at


def cut_share(corpus: PreparedCorpus, max_characters: int) -> float:
    """Return the share of a text's words that have more than `max_characters` - 2 bytes of UTF-8."""
    words = _words_of(corpus)
    return len(too_long(words, max_characters)) / len(words)


def unknown_share(corpus: PreparedCorpus, vocabulary: Vocabulary) -> float:
    """Return the share of a text's words that are not in a vocabulary."""
    return float((vocabulary.ids(_words_of(corpus)) == UNKNOWN).mean())


def _words_of(corpus: PreparedCorpus) -> list[str]:
    distance = -(-len(corpus) // SENTENCES)
    return [word for number in range(0, len(corpus), distance) for word in corpus.sentence(number)]
