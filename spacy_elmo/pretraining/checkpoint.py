"""Checkpoints: files of plain arrays. The newest undamaged one is read."""

import errno
import hashlib
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import FILE_UNWRITABLE, CheckpointError, ElmoError
from ..formats.atomic import replacing, writing
from ..formats.hdf5 import check_storage

SIGNALS = (signal.SIGINT, signal.SIGTERM)
HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none
# One request may send a signal twice: timeout(1) sends it to the process and to its group.
REPEATED_SECONDS = 1.0


class Stopped(BaseException):
    """Raised by the first signal in a block that it may interrupt. No `except Exception` catches it."""


@dataclass
class Stop:
    """Whether the run was asked to stop.

    number: of the first signal; None if there was none.
    raises: whether the first signal raises Stopped; see `at_once`.
    """

    number: int | None = None
    raises: bool = False

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let the first signal raise Stopped inside a `with` block, which must not write anything.

        Raises Stopped before the block if there was a signal.
        """
        self.raises = True
        try:
            if self.number is not None:
                raise Stopped
            yield
        finally:
            self.raises = False


@contextmanager
def asked_to_stop() -> Iterator[Stop]:
    """Record SIGINT, SIGTERM and SIGHUP during a `with` block instead of ending the process.

    A second signal raises KeyboardInterrupt, unless it comes within a second, as it then belongs to the same request.
    SIGHUP, which a closed terminal sends, stays ignored if it was, as under nohup. The earlier handlers are set again
    at the end. Outside the main thread, which alone gets signals, nothing is changed.

    Yields the object that records the first signal.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    first = 0.0

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if stop.number is None:
            stop.number, first = number, time.monotonic()
            if stop.raises:
                raise Stopped
        elif time.monotonic() - first > REPEATED_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in _noted()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # None: the handler was not set from Python, and can't be set again
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _noted() -> list[signal.Signals]:
    if HANGUP is None or signal.getsignal(HANGUP) == signal.SIG_IGN:
        return [*SIGNALS]
    return [*SIGNALS, HANGUP]


Array = npt.NDArray[Any]
CHECKPOINTS = "checkpoints"  # the folder of them in that of a run
_NAME = re.compile(r"step-(\d{9}|[1-9]\d{9,})\.h5")
_TEMPORARY = ".step-*." + "[0-9a-f]" * 32 + ".tmp"  # names of temporary files of formats/atomic.py
_TITLE = b"spacy-elmo checkpoint, SHA-256 of what follows: "
_BLOCK = 512  # bytes of the user block before the HDF5 data, the smallest size that the format allows
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # errors of a full disk
# errors that h5py raises for damaged files
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError)


def from_text(value: str) -> npt.NDArray[np.uint8]:
    """Return a string as an array of its UTF-8 bytes, *Shape:* (bytes,), for a checkpoint."""
    return np.frombuffer(value.encode("utf8"), dtype=np.uint8)


def text(array: Array) -> str:
    """Return the string of an array that `from_text` returned."""
    return bytes(array).decode("utf8")


class Checkpoints:
    """The checkpoints of a run. The one of step 12345 is called step-000012345.h5.

    Each is an uncompressed HDF5 file, whose user block holds the SHA-256 of the other bytes. Only one process may write
    at a time; see `folder_lock`.

    folder: where the files are.
    keep: number of newest checkpoints that are not deleted, 1 or more.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder, self.keep = folder, keep

    def write(self, step: int, arrays: Mapping[str, Array]) -> Path:
        """Write a checkpoint. It is synced to the disk when this returns.

        Then all checkpoints but the newest `keep` are deleted, and those of later steps as well: these are damaged, or
        belong to an earlier run. Temporary files of killed processes are deleted first.

        step: number of updates.
        arrays: numbers of any type and shape, by their names. A slash in a name makes an HDF5 group.

        Returns the path of the file.
        Raises CheckpointError if it can't be written; then all earlier files stay.
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
        """Read the newest undamaged checkpoint.

        report: is called with a message for each damaged checkpoint that is newer.

        Returns its step and its arrays by their names; None if there are no checkpoints.
        Raises CheckpointError if all checkpoints are damaged.
        """
        problems: list[str] = []
        for step, path in self._steps().items():
            try:
                arrays = _read(path, step)
            except CheckpointError as error:
                problems.append(str(error))
                continue
            for problem in problems:
                report(f"{problem} The checkpoint before it is used.")
            return step, arrays
        if problems:
            raise CheckpointError(
                f"{self.folder}: no checkpoint can be used. Delete them to start from the beginning, or put an "
                f"undamaged one there. {' '.join(problems)}"
            )
        return None

    def exist(self) -> bool:
        """Return whether there is a checkpoint, damaged or not. Other files in the folder are none."""
        return bool(self._steps())

    def _make_ready(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            _sync(self.folder.parent)
        for temporary in self.folder.glob(_TEMPORARY):
            temporary.unlink(missing_ok=True)

    def _delete_all_but_last(self, step: int) -> None:
        files = self._steps()
        newest = [number for number in files if number <= step][: self.keep]
        for number, old in files.items():
            if number not in newest:
                old.unlink(missing_ok=True)

    def _steps(self) -> dict[int, Path]:
        """Return the files by their steps, the newest first."""
        paths = {int(match[1]): path for path in self.folder.glob("*") if (match := _NAME.fullmatch(path.name))}
        return dict(sorted(paths.items(), reverse=True))


def _image(path: Path, step: int, arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of the file. It is built in memory, because HDF5 can crash the process on a full disk."""
    with h5py.File(str(path), "w", driver="core", backing_store=False) as file:
        file.attrs["step"] = step
        for name, array in arrays.items():
            try:
                if array.dtype.kind not in "biufc":
                    raise TypeError(f"it is of type {array.dtype}")
                file.create_dataset(name, data=array)
            except _DAMAGE as error:
                raise CheckpointError(
                    f"{path}: the array {name} can't be stored ({error}). Expected numbers."
                ) from error
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
        temporary.unlink(missing_ok=True)  # before the free space is measured
        if error.errno not in _FULL:
            raise CheckpointError(FILE_UNWRITABLE.format(path=path, reason=error)) from error
        needed, free = sum(map(len, parts)), shutil.disk_usage(path.parent).free
        message = (
            f"{path}: can't be written ({error.strerror}): it needs {needed:,} bytes, and {free:,} are free on "
            "the disk. Make room, or raise the quota or the limit. Then the same command, without --restart, "
            "goes on from the checkpoint before."
        )
        raise CheckpointError(message) from error


def _sync(folder: Path) -> None:
    """Sync the names in a folder to the disk, so that a new file survives a loss of power."""
    if os.name == "nt":  # folders can't be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems can't sync folders
            raise
    finally:
        os.close(descriptor)


def _read(path: Path, step: int) -> dict[str, Array]:
    """Return all arrays by their names. Raises CheckpointError if the file is damaged or of another step."""
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
                raise CheckpointError(
                    f"{path}: a checkpoint of step {got}. Expected that of step {step}: the file was renamed."
                )
            file.visititems(visit)
    except ElmoError:
        raise
    except _DAMAGE as error:
        raise CheckpointError(
            f"{path}: can't be used ({error}). Expected a checkpoint that was not changed since it was written."
        ) from error
    return arrays


def _check(dataset: h5py.Dataset, name: str) -> None:
    """Refuse datasets whose values are not in the file, or that need more memory than the file has bytes."""
    if dataset.shape is None or dataset.dtype.kind not in "biufc":
        raise ValueError(f"{name} holds no numbers")
    check_storage(dataset, dataset.dtype.itemsize, name, CheckpointError)


def _check_digest(path: Path) -> None:
    if not path.is_file():
        raise CheckpointError(f"{path}: not a checkpoint. Expected a file that spacy elmo pretrain wrote.")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        block = file.read(_BLOCK)
        while part := file.read(1 << 20):
            digest.update(part)
    expected = _TITLE + digest.hexdigest().encode()
    if block == expected.ljust(_BLOCK, b"\0"):
        return
    if block.startswith(_TITLE):
        raise CheckpointError(
            f"{path}: can't be used ({'its SHA-256 differs'}). Expected a checkpoint that was not changed since "
            "it was written."
        )
    raise CheckpointError(f"{path}: not a checkpoint. Expected a file that spacy elmo pretrain wrote.")
