"""Checkpoints: bit for bit, damage is found, a failing writer costs nothing older; and signals to stop."""

import hashlib
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from spacy_elmo.errors import CheckpointError
from spacy_elmo.pretraining import checkpoint
from spacy_elmo.pretraining.checkpoint import (
    Stopped,
    asked_to_stop,
    checkpoints_in,
    latest_checkpoint,
    write_checkpoint,
)

Arrays = dict[str, npt.NDArray[Any]]
BLOCK = 512
NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def small(step: int) -> Arrays:
    return {"step": np.array(step), "a/b": np.arange(step, step + 5, dtype=np.float32), "a/c": np.array([True, False])}


def assert_same(got: Arrays, expected: Arrays) -> None:
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        assert isinstance(got[name], np.ndarray)
        assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape)
        assert got[name].tobytes() == array.tobytes()


def reports_of(folder: Path, step: int) -> list[str]:
    """Return what is reported up to the checkpoint of a step. Its arrays are those of `small`."""
    reports: list[str] = []
    found = latest_checkpoint(folder, reports.append)
    assert found is not None
    assert found[0] == step
    assert_same(found[1], small(step))
    return reports


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_arrays_come_back_bit_for_bit_from_plain_hdf5(folder: Path) -> None:
    """Any reader reads the file, and the user block holds the SHA-256 of what follows."""
    random = np.random.default_rng(0).normal(size=(40, 50))
    arrays: Arrays = small(7) | {"empty": np.zeros((0, 3)), "é/x y/z": random.T, "nan": np.array(np.nan, np.float16)}
    arrays |= {f"of/{name}": (100 * random).astype(name) for name in ("i1", "u2", ">i4", "f2", "c8", "c16", "?")}
    path = write_checkpoint(folder, 7, arrays)
    found = latest_checkpoint(folder, pytest.fail)
    assert found is not None
    assert_same(found[1], arrays)
    with h5py.File(path) as file:
        assert file.userblock_size == BLOCK
        for name, array in arrays.items():
            np.testing.assert_array_equal(file[name][()], array)
            assert file[name].compression is None
    raw = path.read_bytes()
    title = b"spacy-elmo checkpoint, SHA-256 of what follows: "
    assert raw[:BLOCK].rstrip(b"\0") == title + hashlib.sha256(raw[BLOCK:]).hexdigest().encode()


def test_the_last_ones_are_kept(folder: Path) -> None:
    assert latest_checkpoint(folder, pytest.fail) is None
    for step in (0, 5, 999_999_999, 1_000_000_000, 12_345_678_901, 12_345_678_901):
        write_checkpoint(folder, step, small(step))
        assert reports_of(folder, step) == []
    assert files(folder) == ["step-1000000000.h5", "step-12345678901.h5"]
    write_checkpoint(folder, 5, small(5))  # a run that begins anew is not mixed with the old one
    assert reports_of(folder, 5) == []
    assert files(folder) == ["step-000000005.h5"]


def test_other_files_are_left_alone(folder: Path) -> None:
    others = ["step-1.h5", "step-000000001.h5.bak", "step-000000001.hdf5", "notes.txt", ".mine.tmp"]
    folder.mkdir()
    for name in others:
        (folder / name).write_text("mine")
    assert latest_checkpoint(folder, pytest.fail) is None
    assert not checkpoints_in(folder)
    for step in (1, 2, 3):
        write_checkpoint(folder, step, small(step))
        assert checkpoints_in(folder)
    assert files(folder) == sorted([*others, "step-000000002.h5", "step-000000003.h5"])


def test_damage_is_found(folder: Path) -> None:
    """A changed byte, and a file that was cut short or made longer."""
    path = write_checkpoint(folder, 3, small(3))
    whole, random = path.read_bytes(), np.random.default_rng(0)
    damaged = [whole[:size] for size in range(0, len(whole), 200)]
    damaged += [whole[:-1], whole + b"\0", whole + whole, whole[BLOCK:], b"\0" * len(whole)]
    for place in [*range(0, BLOCK, 9), *range(BLOCK, len(whole), 97)]:
        damaged.append(whole[:place] + bytes([whole[place] ^ int(random.integers(1, 256))]) + whole[place + 1 :])
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"step-000000003\.h5: can't be used"):
            latest_checkpoint(folder, pytest.fail)
    path.write_bytes(whole)
    assert reports_of(folder, 3) == []


def test_the_one_before_is_used_and_the_damaged_one_named(folder: Path) -> None:
    paths = {step: write_checkpoint(folder, step, small(step)) for step in (10, 20)}
    whole = paths[20].read_bytes()
    for content, problem in (
        (whole[:-1], "its SHA-256 differs"),
        (paths[10].read_bytes(), "it is of step 10: the file was renamed"),
    ):
        paths[20].write_bytes(content)
        [report] = reports_of(folder, 10)
        assert f"step-000000020.h5: can't be used ({problem})" in report
        assert "before it is used" in report
    paths[10].unlink()
    paths[10].mkdir()
    with pytest.raises(CheckpointError) as caught:
        latest_checkpoint(folder, pytest.fail)
    assert all(path.name in str(caught.value) for path in paths.values())


def test_a_full_disk(folder: Path) -> None:
    """The message tells the bytes; the checkpoints of before stay, and writing goes on when there is room."""
    for step in (1, 2):
        write_checkpoint(folder, step, small(step))
    large = {"a": np.zeros(50_000, np.float64)}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # as a full disk does it
    try:
        message = r"step-000000003\.h5.*it needs 40\d,\d{3} bytes, and [\d,]+ are free"
        with pytest.raises(CheckpointError, match=message):
            write_checkpoint(folder, 3, large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(folder) == ["step-000000001.h5", "step-000000002.h5"]
    assert reports_of(folder, 2) == []
    write_checkpoint(folder, 3, large)
    assert files(folder) == ["step-000000002.h5", "step-000000003.h5"]


def test_the_data_is_on_the_disk_before_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss of power finds the old file or the new one: data, then name, then folder."""
    events: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        events.append("folder" if os.path.samestat(os.fstat(descriptor), folder.stat()) else "data")
        sync(descriptor)

    def replaced(*paths: str) -> None:
        events.append("name")
        replace(*paths)

    folder.mkdir()
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_checkpoint(folder, 1, small(1))
    assert events == ["data", "name", "folder"]


# Signals


@pytest.fixture
def handlers() -> Iterator[None]:
    """After the test the handlers are as they were before it."""
    numbers = [*NUMBERS, signal.SIGHUP]
    before = [signal.getsignal(each) for each in numbers]
    yield
    assert [signal.getsignal(each) for each in numbers] == before


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(("first", "second"), [NUMBERS, NUMBERS[::-1]])
def test_the_first_signal_is_a_request_and_a_second_one_interrupts(
    monkeypatch: pytest.MonkeyPatch, first: signal.Signals, second: signal.Signals
) -> None:
    with asked_to_stop() as stop:
        assert stop.number is None
        signal.raise_signal(first)
        signal.raise_signal(second)  # at once, as of timeout(1): the same request
        assert stop.number == first
        monkeypatch.setattr(checkpoint, "REPEATED_SECONDS", -1.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)
    assert stop.number == first


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(
    ("number", "before", "asked"),
    [
        (signal.SIGINT, signal.SIG_IGN, True),  # shells start background commands so
        (signal.SIGHUP, signal.SIG_DFL, True),  # a terminal is closed
        (signal.SIGHUP, signal.SIG_IGN, False),  # under nohup
    ],
)
def test_signals_that_were_ignored_before(number: signal.Signals, before: signal.Handlers, asked: bool) -> None:
    earlier = signal.signal(number, before)
    try:
        with asked_to_stop() as stop:
            signal.raise_signal(number)
            assert stop.number == (number if asked else None)
        assert signal.getsignal(number) == before
    finally:
        signal.signal(number, earlier)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_block_that_the_first_signal_interrupts(number: signal.Signals) -> None:
    with asked_to_stop() as stop:
        with pytest.raises(Stopped), stop.at_once():
            signal.raise_signal(number)
        assert stop.number == number
        with pytest.raises(Stopped), stop.at_once():
            pytest.fail("it was not to start")
    with asked_to_stop() as stop:
        with stop.at_once():
            pass
        signal.raise_signal(number)  # after the block it is a request again
        assert stop.number == number
