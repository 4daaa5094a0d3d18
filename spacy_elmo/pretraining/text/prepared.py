"""A corpus on disk: its text was read and tokenised once, and is mapped into memory."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError, Errors, SettingsError, shown
from ...formats.strict.npy import read_npy
from .counting import heldout_sentences
from .prepared_meta import LENGTHS, OFFSETS, TEXT, Meta, read_meta

Lengths = npt.NDArray[np.int32]


class PreparedCorpus:
    """Consecutive sentences of a folder that `prepare` has written, mapped into memory.

    A pickle of it holds the folder and the range, not the sentences. Unpickling opens the folder again.

    folder: as `prepare` wrote it.
    meta: describes all sentences of the folder, even if this corpus is a part of them.
    start: number of the first sentence, from 0.
    stop: number after the last sentence.

    Raises CorpusError if a file is missing, or does not fit to `meta`.
    """

    def __init__(self, folder: Path, meta: Meta, start: int, stop: int) -> None:
        self.folder, self.meta, self.start, self.stop = folder, meta, start, stop
        try:
            self._offsets = read_npy(folder / OFFSETS, np.int64)
            self._lengths = read_npy(folder / LENGTHS, np.int32)
            if (folder / TEXT).exists() and not (folder / TEXT).is_file():  # opening a pipe could wait for ever
                self._damaged(f"{TEXT} is a folder or a special file")
            with (folder / TEXT).open("rb") as file:
                self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except CorpusError:
            raise
        except (OSError, ValueError) as error:
            raise CorpusError(Errors.PREPARED_DAMAGED.format(folder=folder, reason=error)) from error
        n = meta.report.sentences
        if len(self._offsets) != n + 1:
            self._damaged(f"{OFFSETS} has {len(self._offsets):,} numbers, not {n + 1:,}")
        if len(self._lengths) != n:
            self._damaged(f"{LENGTHS} has {len(self._lengths):,} numbers, not {n:,}")
        if self._offsets[0] != 0:  # a wrong one in the middle shows in the sentence before it
            self._damaged(f"{OFFSETS} begins with {self._offsets[0]:,}, not 0")
        if self._offsets[-1] != len(self._text):
            self._damaged(f"{TEXT} has {len(self._text):,} bytes, not {self._offsets[-1]:,}")

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> PreparedCorpus:
        """Return all sentences of a folder. The sizes of the files and the numbers of words are checked, the words are
        not (see `verify`).

        folder: as `prepare` wrote it.

        Raises CorpusError if the folder holds no prepared corpus, or a damaged one.
        """
        meta = read_meta(Path(folder))
        corpus = cls(Path(folder), meta, 0, meta.report.sentences)
        if corpus.lengths.min(initial=1) < 1:
            corpus._damaged(f"{LENGTHS} has {corpus.lengths.min()}, but each sentence has a word")
        if corpus.n_tokens != meta.report.tokens:
            corpus._damaged(f"{LENGTHS} sums to {corpus.n_tokens:,} words, not {meta.report.tokens:,}")
        return corpus

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[list[str]]:
        return (self.sentence(number) for number in range(len(self)))

    @property
    def n_sentences(self) -> int:
        """The number of sentences."""
        return len(self)

    @cached_property
    def n_tokens(self) -> int:
        """The number of words, sentence boundaries not counted."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def lengths(self) -> Lengths:
        """The number of words of each sentence, *Shape:* (sentences,), mapped into memory."""
        part: Lengths = self._lengths[self.start : self.stop]
        return part

    def sentence(self, number: int) -> list[str]:
        """Return the words of a sentence.

        number: from 0.

        Raises IndexError if there is no such sentence, CorpusError if its text is damaged.
        """
        if not 0 <= number < len(self):
            raise IndexError(number)
        number += self.start
        begin, end = self._offsets[number], self._offsets[number + 1]
        line = self._text[begin:end] if 0 <= begin < end else b""
        if line.find(b"\n") != len(line) - 1:
            self._damaged(f"sentence {number} is not one line")
        try:
            words = line.decode("utf8").split()
        except UnicodeDecodeError as error:
            self._damaged(f"sentence {number} is no text: {error}")
        if len(words) != self._lengths[number]:
            self._damaged(f"sentence {number} has {len(words)} words, not {self._lengths[number]}")
        return words

    def part(self, start: int, stop: int) -> PreparedCorpus:
        """Return sentences start to stop - 1 as a corpus. Nothing is copied.

        start: number of the first sentence, from 0.
        stop: number after the last sentence.

        Raises CorpusError if the range is not inside this corpus.
        """
        if not 0 <= start <= stop <= len(self):
            raise CorpusError(Errors.PREPARED_PART.format(start=start, stop=stop, n=len(self)))
        return PreparedCorpus(self.folder, self.meta, self.start + start, self.start + stop)

    def cut(self, share: float) -> tuple[PreparedCorpus, PreparedCorpus]:
        """Return the training part and the held-out part, each with at least one sentence.

        share: share of the sentences, the last ones, that is held out, between 0 and 1. Their number is rounded.

        Raises SettingsError if `share` is out of range, CorpusError if there are fewer than two sentences.
        """
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise SettingsError(Errors.HELDOUT_SHARE.format(got=shown(share)))
        if len(self) < 2:
            raise CorpusError(Errors.HELDOUT_FEW.format(folder=self.folder, got=len(self)))
        border = len(self) - heldout_sentences(len(self), share)
        return self.part(0, border), self.part(border, len(self))

    def verify(self) -> None:
        """Read all of the text. Raises CorpusError if its SHA-256 is not the one in meta.json."""
        digest = hashlib.sha256(self._text).hexdigest()
        if digest != self.meta.sha256:
            self._damaged(f"the SHA-256 of {TEXT} is {digest}, not {self.meta.sha256}")

    def _damaged(self, reason: str) -> NoReturn:
        raise CorpusError(Errors.PREPARED_DAMAGED.format(folder=self.folder, reason=reason))

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.folder, self.meta.sha256, self.start, self.stop)


def _reopened(folder: Path, sha256: str, start: int, stop: int) -> PreparedCorpus:
    corpus = PreparedCorpus.open(folder)
    if corpus.meta.sha256 != sha256:
        raise CorpusError(Errors.PREPARED_OTHER.format(folder=folder))
    return corpus.part(start, stop)
