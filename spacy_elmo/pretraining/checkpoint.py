"""Checkpoints, of which the newest undamaged one is read, and the signals that ask a run for one."""

import errno
import hashlib
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import CheckpointError
from ..formats.atomic import replacing, writing

Array = npt.NDArray[Any]
CHECKPOINTS = "checkpoints"  # the folder of them in that of a run
_NAME = re.compile(r"step-(\d{9}|[1-9]\d{9,})\.h5")
_TEMPORARY = ".step-*." + "[0-9a-f]" * 32 + ".tmp"  # names of temporary files of formats/atomic.py
_TITLE = b"spacy-elmo checkpoint, SHA-256 of what follows: "
_BLOCK = 512  # bytes of the user block before the HDF5 data, the smallest size that the format allows
# errors that h5py raises for damaged files
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError)


def write_checkpoint(folder: Path, step: int, arrays: Mapping[str, Array]) -> Path:
    """Write arrays of any type and shape, synced to the disk. Raises CheckpointError; then earlier files stay.

    A checkpoint is called step-000012345.h5: an uncompressed HDF5 file of plain arrays, whose user block holds the
    SHA-256 of the other bytes. The one before it is kept. Older ones are deleted, and those of later steps: these are
    damaged, or belong to an earlier run.
    """
    path = folder / f"step-{step:09}.h5"
    with writing(folder, CheckpointError):
        if not folder.is_dir():
            folder.mkdir(parents=True)
            _sync(folder.parent)
        for killed in folder.glob(_TEMPORARY):
            killed.unlink(missing_ok=True)
    # in memory first, because HDF5 can crash the process on a full disk
    with h5py.File(str(path), "w", driver="core", backing_store=False) as hdf5:
        hdf5.attrs["step"] = step
        for name, array in arrays.items():
            hdf5.create_dataset(name, data=array)
        hdf5.flush()
        image: bytes = hdf5.id.get_file_image()
    block = _TITLE + hashlib.sha256(image).hexdigest().encode()
    with replacing(path, CheckpointError) as temporary:
        try:
            with temporary.open("wb") as file:
                file.write(block.ljust(_BLOCK, b"\0") + image)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            temporary.unlink(missing_ok=True)  # before the free space is measured
            raise CheckpointError(
                f"{path}: can't be written ({error.strerror}): it needs {_BLOCK + len(image):,} bytes, and "
                f"{shutil.disk_usage(folder).free:,} are free on the disk. Make room, raise the quota or the "
                "limit, or make the folder writable. Then the same command, without --restart, goes on from the "
                "checkpoint before."
            ) from error
    with writing(folder, CheckpointError):
        _sync(folder)
        files = checkpoints_in(folder)
        newest = [number for number in files if number <= step][:2]
        for number, old in files.items():
            if number not in newest:
                old.unlink(missing_ok=True)
    return path


def latest_checkpoint(folder: Path, report: Callable[[str], None]) -> tuple[int, dict[str, Array]] | None:
    """Return step and arrays of the newest undamaged checkpoint; None if there are none. Raises CheckpointError.

    report: is called with a message for each damaged one.
    """
    problems: list[str] = []
    for step, path in checkpoints_in(folder).items():
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
            f"{folder}: no checkpoint can be used. Delete them to start from the beginning, or put an "
            f"undamaged one there. {' '.join(problems)}"
        )
    return None


def checkpoints_in(folder: Path) -> dict[int, Path]:
    """Return the checkpoints by their steps, the newest first, damaged or not."""
    paths = {int(match[1]): path for path in folder.glob("*") if (match := _NAME.fullmatch(path.name))}
    return dict(sorted(paths.items(), reverse=True))


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
    arrays: dict[str, Array] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = np.asarray(item[()], dtype=item.dtype)

    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            block = file.read(_BLOCK)
            while part := file.read(1 << 20):
                digest.update(part)
        if block != (_TITLE + digest.hexdigest().encode()).ljust(_BLOCK, b"\0"):
            raise ValueError("its SHA-256 differs" if block.startswith(_TITLE) else "it is no checkpoint")
        with h5py.File(path, "r") as hdf5:
            got = hdf5.attrs["step"]
            hdf5.visititems(visit)
        if got != step:
            raise ValueError(f"it is of step {got}: the file was renamed")
    except _DAMAGE as error:
        raise CheckpointError(
            f"{path}: can't be used ({error}). Expected a checkpoint that was not changed since it was written."
        ) from error
    return arrays


# One request may send a signal twice: torchrun and timeout(1) send it to the process and to its group.
REPEATED_SECONDS = 1.0


class Stopped(BaseException):
    """Raised by the first signal in a block that it may interrupt. No `except Exception` catches it."""


@dataclass
class Stop:
    """number: of the first signal; raises: whether it raises Stopped, see `at_once`."""

    number: int | None = None
    raises: bool = False

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let the first signal raise Stopped before or inside a `with` block, which must not write anything."""
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

    A second signal, a second after the first or later, raises KeyboardInterrupt. SIGHUP stays ignored if it was, as
    under nohup. Outside the main thread nothing is changed.
    """
    stop, first = Stop(), 0.0
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if stop.number is None:
            stop.number, first = number, time.monotonic()
            if stop.raises:
                raise Stopped
        elif time.monotonic() - first > REPEATED_SECONDS:
            raise KeyboardInterrupt

    noted = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # Windows has none
        noted.append(signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in noted}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # None: the handler was not set from Python, and can't be set again
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
