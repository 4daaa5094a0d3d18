"""What an output is: a file or a folder of shards, and its format."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, cast

from ..errors import Errors, SettingsError, shown
from .shards import Format
from .writers.kinds import SUFFIXES, WITHOUT_SENTENCE_VECTORS, WRITERS

_FILES = ("hdf5", "npy")  # formats that are one file unless shards are asked for


class Output(NamedTuple):
    """Where vectors go.

    path: the file or the folder.
    format: of the file or of the shards.
    single: whether it is one file.
    """

    path: Path
    format: Format
    single: bool

    @classmethod
    def of(cls, path: str | Path, format: str | None, sharded: bool) -> Output:
        """Return what a path and a format mean.

        path: as the user wrote it. The end of its name tells the format, and that one file is meant.
        format: a name of WRITERS; None: that which the path tells, or Parquet.
        sharded: whether the user asked for shards of some size, which are always in a folder.

        Raises SettingsError if they do not fit.
        """
        path = Path(path)
        if str(path) in ("-", "."):
            raise SettingsError(Errors.CORPUS_OUTPUT.format(got=shown(str(path))))
        if format is not None and format not in WRITERS:
            raise SettingsError(Errors.CORPUS_FORMAT.format(got=shown(format), expected=", ".join(WRITERS)))
        told = None if path.is_dir() else SUFFIXES.get(path.suffix.lower())
        if format is None and told is None and path.suffix and not path.is_dir():
            raise SettingsError(Errors.CORPUS_SUFFIX.format(path=path, expected=", ".join(SUFFIXES)))
        if format is not None and told is not None and told != format:
            raise SettingsError(Errors.CORPUS_SUFFIX_FORMAT.format(path=path, told=told, format=format))
        chosen = format or told or "parquet"
        single = not sharded and not path.is_dir() and (told is not None or chosen in _FILES)
        return cls(path, cast(Format, chosen), single)

    def check(self, sentence: bool, dtype: str, several: bool) -> None:
        """Raise SettingsError if the output can't have such vectors, or not be made so.

        sentence: whether there is one vector a sentence.
        dtype: type of the values.
        several: whether several processes make it.
        """
        if self.single and several:
            raise SettingsError(Errors.CORPUS_WORKERS.format(path=self.path))
        if sentence and self.format in WITHOUT_SENTENCE_VECTORS:
            raise SettingsError(Errors.CORPUS_SENTENCE.format(format=self.format))
        if not sentence and self.format == "npy":
            raise SettingsError(Errors.CORPUS_NPY)
        if self.format == "hdf5" and dtype != "float32":
            raise SettingsError(Errors.CORPUS_HDF5.format(got=dtype))
