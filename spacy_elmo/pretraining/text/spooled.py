"""A text in a temporary file, so that it can be read several times, and at several places at once."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from types import TracebackType
from typing import BinaryIO, cast

from ...errors import CorpusError, Errors


class SpooledText:
    """A copy of sentences in a file that is deleted with the process. Use it in a `with` block.

    Memory does not grow with the number of sentences. Several iterators may read it in turns, but not from several
    threads.

    sentences: lists of words, read once.

    The attribute `n_sentences` counts them.
    Raises CorpusError if the file can't be written.
    """

    def __init__(self, sentences: Iterable[list[str]]) -> None:
        self.n_sentences = 0
        with _writing():
            self._file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  # closed by __exit__
        try:
            for sentence in sentences:
                line = (
                    json.dumps(sentence).encode("ascii") + b"\n"
                )  # JSON can hold any word, even one with half a surrogate pair
                with _writing():
                    self._file.write(line)
                self.n_sentences += 1
            with _writing():
                self._file.flush()
        except BaseException:
            with suppress(OSError):  # closing tries to write the buffer again
                self._file.close()
            raise

    def __enter__(self) -> "SpooledText":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[list[str]]:
        """Yield all sentences in their order."""
        return self._read(0, self.n_sentences)

    def parts(self, n_parts: int) -> list[Iterator[list[str]]]:
        """Return iterators over consecutive parts of the text.

        Part k begins with sentence floor(k * n_sentences / n_parts), both numbered from 0.

        n_parts: number of parts. If there are fewer sentences, some parts are empty.
        """
        bounds = [k * self.n_sentences // n_parts for k in range(n_parts + 1)]
        offsets = self._byte_offsets(bounds)
        return [self._read(offsets[start], end - start) for start, end in pairwise(bounds)]

    def _byte_offsets(self, numbers: list[int]) -> dict[int, int]:
        """Return the byte at which each of these sentences begins."""
        wanted, offsets, offset = set(numbers), {}, 0
        self._file.seek(0)
        for number, line in enumerate(self._file):
            if number in wanted:
                offsets[number] = offset
            offset += len(line)
        return offsets | {self.n_sentences: offset}

    def _read(self, offset: int, count: int) -> Iterator[list[str]]:
        for _ in range(count):
            self._file.seek(offset)  # other iterators read from the same file in between
            line = self._file.readline()
            offset += len(line)
            yield json.loads(line)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # tempdir is None if Python finds no folder that it can write to
        folder = tempfile.tempdir or os.environ.get("TMPDIR", "the folder for temporary files")
        raise CorpusError(Errors.SCORE_COPY.format(folder=folder, reason=error)) from error
