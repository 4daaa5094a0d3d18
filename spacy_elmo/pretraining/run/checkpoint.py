"""Checkpoints: files of plain arrays of which the newest whole one is always found again."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError, ElmoError, Errors
from ...formats.atomic import replacing, writing
from ...formats.hdf5_storage import check_storage

Array = npt.NDArray[Any]
_NAME = re.compile(r"step-(\d{9}|[1-9]\d{9,})\.h5")
_TEMPORARY = "." + "[0-9a-f]" * 32 + ".tmp"  # as formats/atomic.py names them
_TITLE = b"spacy-elmo checkpoint, SHA-256 of what follows: "
_BLOCK = 512  # bytes of an HDF5 file's user block: the least that the format knows
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
# what h5py raises for files that are not as it expects
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError)


def from_text(value: str) -> npt.NDArray[np.uint8]:
    """A string as an array of its UTF-8 bytes, (bytes,), to be kept in a checkpoint."""
    return np.frombuffer(value.encode("utf8"), dtype=np.uint8)


def text(array: Array) -> str:
    """The string that `from_text` was given."""
    return bytes(array).decode("utf8")


class Checkpoints:
    """The checkpoints in a folder: step-000012345.h5 is that of step 12345; the last `keep`, 1 or more, are kept.

    Each is an HDF5 file, uncompressed, whose user block holds the SHA-256 of the rest. Only one process may write at a
    time: see lock.py.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder, self.keep = folder, keep

    def write(self, step: int, arrays: Mapping[str, Array]) -> Path:
        """Write a checkpoint and give its path; it is safe on the disk when this returns.

        arrays: numbers of any type and shape; a slash in a name makes a group. Then older ones than the last `keep` are
        deleted, and those of later steps: they are damaged, or the run was begun anew. What killed writers left is
        deleted at the beginning. Raises CheckpointError, and then all that was there is as it was.
        """
        path = self.folder / f"step-{step:09}.h5"
        with writing(self.folder, CheckpointError):
            self._make_ready()
        image = _image(path, step, arrays)
        block = _TITLE + hashlib.sha256(image).hexdigest().encode()
        with replacing(path, CheckpointError) as temporary:
            _store(temporary, path, (block.ljust(_BLOCK, b"\0"), image))
        with writing(self.folder, CheckpointError):
            _sync(self.folder)
            self._delete_all_but_last(step)
        return path

    def latest(self, report: Callable[[str], None]) -> tuple[int, dict[str, Array]] | None:
        """The step and the arrays of the newest whole checkpoint; None where there is none at all.

        Damaged ones are named with the reason through `report`. Raises CheckpointError where all are damaged.
        """
        problems: list[str] = []
        for step, path in self._steps().items():
            try:
                arrays = _read(path, step)
            except CheckpointError as error:
                problems.append(str(error))
                continue
            for problem in problems:
                report(Errors.CHECKPOINT_BEFORE.format(problem=problem))
            return step, arrays
        if problems:
            raise CheckpointError(Errors.CHECKPOINTS_ALL.format(folder=self.folder, problems=" ".join(problems)))
        return None

    def _make_ready(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            _sync(self.folder.parent)
        for left in self.folder.glob(_TEMPORARY):
            left.unlink(missing_ok=True)

    def _delete_all_but_last(self, step: int) -> None:
        files = self._steps()
        kept = [number for number in files if number <= step][: self.keep]
        for number, old in files.items():
            if number not in kept:
                old.unlink(missing_ok=True)

    def _steps(self) -> dict[int, Path]:
        """The files by their steps, the newest first."""
        found = {int(match[1]): path for path in self.folder.glob("*") if (match := _NAME.fullmatch(path.name))}
        return dict(sorted(found.items(), reverse=True))


def _image(path: Path, step: int, arrays: Mapping[str, Array]) -> bytes:
    """The file's bytes, made in memory: HDF5 itself can crash the process where the disk is full."""
    with h5py.File(str(path), "w", driver="core", backing_store=False) as file:
        file.attrs["step"] = step
        for name, array in arrays.items():
            try:
                if array.dtype.kind not in "biufc":
                    raise TypeError(f"it is of type {array.dtype}")
                file.create_dataset(name, data=array)
            except _DAMAGE as error:
                raise CheckpointError(Errors.CHECKPOINT_ARRAY.format(path=path, name=name, reason=error)) from error
        file.flush()
        image: bytes = file.id.get_file_image()
    return image


def _store(temporary: Path, path: Path, parts: Iterable[bytes]) -> None:
    parts = list(parts)
    try:
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        temporary.unlink(missing_ok=True)  # first, so that it does not count as taken
        if error.errno not in _FULL:
            raise CheckpointError(Errors.FILE_UNWRITABLE.format(path=path, reason=error)) from error
        needed, free = sum(map(len, parts)), shutil.disk_usage(path.parent).free
        message = Errors.CHECKPOINT_FULL.format(path=path, reason=error.strerror, needed=needed, free=free)
        raise CheckpointError(message) from error


def _sync(folder: Path) -> None:
    """Make the folder's entries safe on the disk, so that a new name outlives a loss of power."""
    if os.name == "nt":  # folders can't be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of file systems that can't do it for folders
            raise
    finally:
        os.close(descriptor)


def _read(path: Path, step: int) -> dict[str, Array]:
    """All arrays by their names. Raises CheckpointError where the file is damaged or of another step."""
    arrays: dict[str, Array] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            _check(item, name)
            arrays[name] = np.asarray(item[()], dtype=item.dtype)

    try:
        _check_digest(path)
        with h5py.File(path, "r") as file:
            got = file.attrs["step"]
            if got != step:
                raise CheckpointError(Errors.CHECKPOINT_STEP.format(path=path, got=got, expected=step))
            file.visititems(visit)
    except ElmoError:
        raise
    except _DAMAGE as error:
        raise CheckpointError(Errors.CHECKPOINT_DAMAGED.format(path=path, reason=error)) from error
    return arrays


def _check(dataset: h5py.Dataset, name: str) -> None:
    """Nothing outside the file is read, and no more memory is taken than the file has bytes."""
    if dataset.shape is None or dataset.dtype.kind not in "biufc":
        raise ValueError(f"{name} holds no numbers")
    check_storage(dataset, dataset.dtype.itemsize, name, CheckpointError)


def _check_digest(path: Path) -> None:
    if not path.is_file():
        raise CheckpointError(Errors.CHECKPOINT_FORMAT.format(path=path))
    digest = hashlib.sha256()
    with path.open("rb") as file:
        block = file.read(_BLOCK)
        while part := file.read(1 << 20):
            digest.update(part)
    expected = _TITLE + digest.hexdigest().encode()
    if block == expected.ljust(_BLOCK, b"\0"):
        return
    if block.startswith(_TITLE):
        raise CheckpointError(Errors.CHECKPOINT_DAMAGED.format(path=path, reason="its SHA-256 differs"))
    raise CheckpointError(Errors.CHECKPOINT_FORMAT.format(path=path))
