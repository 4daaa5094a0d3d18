"""What all writers of vectors have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy.typing as npt

from ...errors import Errors, VectorsError
from ...formats.atomic import replacing, writing
from ..documents import Document
from ..selection import Selection

Array = npt.NDArray[Any]


class Shape(NamedTuple):
    """What a writer must know of the vectors.

    selection: what is written of the layers.
    n_layers: layers of the biLM.
    width: of a layer.
    """

    selection: Selection
    n_layers: int
    width: int


class VectorFile(AbstractContextManager["VectorFile"], ABC):
    """A file of vectors, which appears at its path when the `with` block succeeds.

    If the block raises, an earlier file at `path` stays unchanged.

    path: the file.
    shape: of the vectors.

    Raises VectorsError if the file can't be written.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        self.path, self.shape = path, shape
        self._replacing: AbstractContextManager[Path] | None = None

    @staticmethod
    def check_packages() -> None:
        """Raise VectorsError, which says what to install, if the format needs an optional package that is missing."""

    @abstractmethod
    def open(self, temporary: Path) -> None:
        """Begin to write. temporary: the path to write to."""

    @abstractmethod
    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Write a document.

        document: its sentences and where they come from.
        vectors: what the selection made of the layers of each sentence.
        """

    @abstractmethod
    def close(self) -> None:
        """Write what is left, and close the file."""

    def abandon(self) -> None:
        """Close the file, which is incomplete, without an error."""

    def __enter__(self) -> VectorFile:
        replaced = replacing(self.path, VectorsError)
        temporary = replaced.__enter__()
        self._replacing, self._temporary = replaced, temporary
        try:
            with writing(self.path, VectorsError):
                self.open(temporary)
        except BaseException as error:
            replaced.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._replacing is not None
        if error is not None:
            self.abandon()
            self._replacing.__exit__(kind, error, trace)
            return
        try:
            with writing(self.path, VectorsError):
                self.close()
                _sync(self._temporary)
        except BaseException as other:
            self.abandon()
            self._replacing.__exit__(type(other), other, other.__traceback__)
            raise
        self._replacing.__exit__(None, None, None)


def required(module: str, extra: str) -> Any:
    """Import a module of an optional package. Raises VectorsError, which says what to install, if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise VectorsError(Errors.CORPUS_EXTRA.format(package=package, extra=extra)) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
