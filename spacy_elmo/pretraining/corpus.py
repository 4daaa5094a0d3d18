"""Text to word ids: one sentence a line, words separated by blanks."""

import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import CorpusError, Errors
from ..formats.characters import words_to_ids

START, END, UNKNOWN = 0, 1, 2
SPECIAL = ("<S>", "</S>", "<UNK>")

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


class Sentences(NamedTuple):
    """ids: (tokens,) indices into a word list; offsets: (sentences + 1,) where each sentence starts."""

    ids: Ids
    offsets: Offsets

    def sentence(self, number: int) -> Ids:
        """The word ids of one sentence."""
        return self.ids[self.offsets[number] : self.offsets[number + 1]]

    @property
    def n_sentences(self) -> int:
        return len(self.offsets) - 1


def read_lines(path: Path) -> Iterator[list[str]]:
    """The words of each line that has any; `.xz` is unpacked on the fly. Raises CorpusError."""
    opener = lzma.open if path.suffix == ".xz" else open
    try:
        with opener(path, "rt", encoding="utf8", newline="\n") as lines:
            for line in lines:
                words = line.split()
                if words:
                    yield words
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise CorpusError(Errors.TEXT_UNREADABLE.format(path=path, reason=error)) from error


class WordIndex:
    """Numbers words in the order in which they are met, after the special three."""

    def __init__(self, words: list[str] | None = None) -> None:
        self.words = list(SPECIAL) if words is None else words
        self._ids = {word: i for i, word in enumerate(self.words)}

    def encode(self, path: Path) -> Sentences:
        """Read a file; words not met before get the next ids. Raises CorpusError."""
        ids, words, chunks, lengths = self._ids, self.words, [], []
        chunk: list[int] = []
        for sentence in read_lines(path):
            for word in sentence:
                number = ids.get(word)
                if number is None:
                    number = ids[word] = len(words)
                    words.append(word)
                chunk.append(number)
            lengths.append(len(sentence))
            if len(chunk) > 1 << 22:
                chunks.append(np.array(chunk, np.int32))
                chunk = []
        if not lengths:
            raise CorpusError(Errors.TEXT_EMPTY.format(path=path))
        chunks.append(np.array(chunk, np.int32))
        return Sentences(np.concatenate(chunks), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


class Corpus(NamedTuple):
    """words: sorted by frequency in the training text, the special three first; then words of the held-out part alone.
    counts: (words,) in the training text.
    """

    words: list[str]
    counts: npt.NDArray[np.int64]
    train: Sentences
    heldout: Sentences

    def character_ids(self, max_characters: int) -> npt.NDArray[np.int16]:
        """(words, max_characters) of every word, made in parts: int16 is a quarter of int64."""
        starts = range(0, len(self.words), 65536)
        parts = [words_to_ids(self.words[i : i + 65536], max_characters).astype(np.int16) for i in starts]
        return np.concatenate(parts)

    def log_unigram(self, n_words: int) -> npt.NDArray[np.float64]:
        """log p of the n_words output words in the training text, one added to each count; `<S>` and `</S>` each
        count once a sentence, and what is not among the words is `<UNK>`. Sums to 1 for one direction's targets:
        `<S>` shares `</S>`'s probability, since each direction predicts one of them.
        """
        counts = self.counts[:n_words].astype(np.float64) + 1
        counts[UNKNOWN] += self.counts[n_words:].sum()
        counts[[START, END]] = self.train.n_sentences
        result: npt.NDArray[np.float64] = np.log(counts / (counts.sum() - counts[START]))
        return result


def encode_corpus(train: Path, heldout: Path) -> Corpus:
    """Read both files and sort the words by their frequency in the training text."""
    index = WordIndex()
    sentences = index.encode(train)
    n_words = len(index.words)
    counts = np.bincount(sentences.ids, minlength=n_words)
    order = np.concatenate([[0, 1, 2], 3 + np.argsort(-counts[3:], kind="stable")])
    rank = np.empty(n_words, np.int32)
    rank[order] = np.arange(n_words)
    index = WordIndex([index.words[i] for i in order])
    heldout_sentences = index.encode(heldout)
    counts = np.concatenate([counts[order], np.zeros(len(index.words) - n_words, counts.dtype)])
    return Corpus(index.words, counts, Sentences(rank[sentences.ids], sentences.offsets), heldout_sentences)


def save_corpus(folder: Path, corpus: Corpus) -> None:
    """Keep an encoded corpus, so that a resumed run need not read the text again."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "counts.npy", corpus.counts)
    for name, part in (("train", corpus.train), ("heldout", corpus.heldout)):
        np.save(folder / f"{name}_ids.npy", part.ids)
        np.save(folder / f"{name}_offsets.npy", part.offsets)
    temporary = folder / "words.txt.part"
    temporary.write_text("\n".join(corpus.words), encoding="utf8")
    temporary.replace(folder / "words.txt")  # last: its presence says that all is there


def load_corpus(folder: Path) -> Corpus | None:
    """What save_corpus kept; None where there is nothing whole."""
    if not (folder / "words.txt").exists():
        return None
    try:
        words = (folder / "words.txt").read_text(encoding="utf8").split("\n")
        parts = [
            Sentences(np.load(folder / f"{name}_ids.npy", mmap_mode="r"), np.load(folder / f"{name}_offsets.npy"))
            for name in ("train", "heldout")
        ]
        counts = np.load(folder / "counts.npy")
    except (OSError, ValueError, EOFError):
        return None
    whole = len(counts) == len(words) and all(len(part.ids) == part.offsets[-1] for part in parts)
    return Corpus(words, counts, *parts) if whole else None
