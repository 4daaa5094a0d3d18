"""A text kept in a temporary file, so that it can be read again and at several places at once."""

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
    """Sentences, in a file that vanishes with the process; memory does not grow with them. Use it in a with statement.

    n_sentences: how many there are. Raises CorpusError where there is no room for the file.
    """

    def __init__(self, sentences: Iterable[list[str]]) -> None:
        self.n_sentences = 0
        with _writing():
            self._file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  # closed by __exit__
        try:
            for sentence in sentences:
                line = json.dumps(sentence).encode("ascii") + b"\n"  # any word at all, lone surrogates too
                with _writing():
                    self._file.write(line)
                self.n_sentences += 1
            with _writing():
                self._file.flush()
        except BaseException:
            with suppress(OSError):  # it would write what did not fit once more
                self._file.close()
            raise

    def __enter__(self) -> "SpooledText":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[list[str]]:
        """All sentences in their order, from the first one on."""
        return self._read(0, self.n_sentences)

    def parts(self, n_parts: int) -> list[Iterator[list[str]]]:
        """The text cut into parts: part k begins with sentence floor(k * n_sentences / n_parts), from 0."""
        bounds = [k * self.n_sentences // n_parts for k in range(n_parts + 1)]
        places = self._places(bounds)
        return [self._read(places[start], end - start) for start, end in pairwise(bounds)]

    def _places(self, numbers: list[int]) -> dict[int, int]:
        """The byte at which each of these sentences begins."""
        wanted, places, place = set(numbers), {}, 0
        self._file.seek(0)
        for number, line in enumerate(self._file):
            if number in wanted:
                places[number] = place
            place += len(line)
        return places | {self.n_sentences: place}

    def _read(self, place: int, count: int) -> Iterator[list[str]]:
        for _ in range(count):
            self._file.seek(place)  # others read from the same file in between
            line = self._file.readline()
            place += len(line)
            yield json.loads(line)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # TMPDIR itself, where Python finds no folder at all to write to
        folder = tempfile.tempdir or os.environ.get("TMPDIR", "the folder for temporary files")
        raise CorpusError(Errors.SCORE_COPY.format(folder=folder, reason=error)) from error
