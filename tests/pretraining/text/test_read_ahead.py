"""Batches that processes read ahead, against those that `Streams` reads alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from small_corpora import evenly_drawn

from spacy_elmo.errors import CheckpointError, CorpusError, ProcessError, SettingsError
from spacy_elmo.pretraining.batches import ReadAhead, StreamRange, Streams, Window
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.vocabulary import Vocabulary

SIZE, STEPS, RANGE = 12, 7, StreamRange(12, 4, 6)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return evenly_drawn(tmp_path_factory.mktemp("corpus"))


@contextmanager
def both(
    corpus: PreparedCorpus, readers: int, vocabulary: Vocabulary | None = None
) -> Iterator[tuple[Streams, ReadAhead]]:
    given = (corpus, vocabulary or Vocabulary.build(corpus, size=40), SIZE, RANGE, 8, 3)
    ahead = ReadAhead(*given, readers=readers, steps=STEPS)
    try:
        yield Streams(*given), ahead
    finally:
        ahead.close()


def assert_same(got: Window, expected: Window) -> None:
    np.testing.assert_array_equal(got.characters[got.inputs], expected.characters[expected.inputs])
    np.testing.assert_array_equal(got.targets, expected.targets)
    np.testing.assert_array_equal(got.starts, expected.starts)


@pytest.mark.parametrize("readers", [1, 3])
def test_the_batches_are_those_of_one_process(corpus: PreparedCorpus, readers: int) -> None:
    with both(corpus, readers) as (alone, ahead):
        for _ in range(40):  # several epochs
            assert_same(ahead.next(STEPS), alone.next(STEPS))
            for name, values in alone.state().items():
                np.testing.assert_array_equal(ahead.state()[name], values)


def test_a_restored_one_goes_on_from_what_was_used(corpus: PreparedCorpus) -> None:
    with both(corpus, 2) as (alone, ahead), both(corpus, 3) as (_, other):
        for _ in range(5):
            ahead.next(STEPS)
            alone.next(STEPS)
        saved = ahead.state()
        expected = [alone.next(STEPS) for _ in range(3)]
        other.restore(saved)
        ahead.next(STEPS)
        ahead.restore(saved)
        for restored in (ahead, other):
            for window in expected:
                assert_same(restored.next(STEPS), window)


def test_it_can_be_closed_and_go_on(corpus: PreparedCorpus) -> None:
    with both(corpus, 2) as (alone, ahead):
        for _ in range(3):
            assert_same(ahead.next(STEPS), alone.next(STEPS))
            ahead.close()


def test_streams_that_can_not_be_divided(corpus: PreparedCorpus) -> None:
    with pytest.raises(
        SettingsError,
        match=r"training\.readers is 4\. Expected 0 or a number that divides the 6 streams .*: 1, 2, 3, 6\.",
    ):
        ReadAhead(corpus, Vocabulary.build(corpus, size=40), SIZE, RANGE, 8, 3, readers=4, steps=STEPS)


def test_a_place_that_is_not_there(corpus: PreparedCorpus) -> None:
    with both(corpus, 2) as (_, ahead):
        before = ahead.state()
        wrong = before | {"position": before["position"] + 1000}
        with pytest.raises(CheckpointError):
            ahead.restore(wrong)
        for name, values in before.items():
            np.testing.assert_array_equal(ahead.state()[name], values)


def test_a_damaged_text_is_told_as_without_readers(corpus: PreparedCorpus, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("one two\n" * 50, encoding="utf8")
    damaged = prepare(tmp_path / "text.txt", tmp_path / "prepared")
    (damaged.folder / "sentences.txt").write_text("one-two\n" * 50, encoding="utf8")
    messages = []
    with both(PreparedCorpus.open(damaged.folder), 2, Vocabulary.build(corpus, size=40)) as pair:
        for streams in pair:
            with pytest.raises(CorpusError, match="has 1 words, not 2") as raised:
                streams.next(STEPS)
            messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("killed", [[0], [1], [0, 1]])
def test_killed_readers(corpus: PreparedCorpus, killed: list[int]) -> None:
    """They die in the middle of a message: nothing reads what they have read ahead."""
    with both(corpus, 2) as (_, ahead):
        ahead.next(STEPS)
        time.sleep(0.5)
        for number in killed:
            process = ahead._processes[number].process
            process.kill()
            process.join()
        with pytest.raises(
            ProcessError, match=r"has ended \(exit code -9\)\. .* set training\.readers, which is 2, lower"
        ):
            deque((ahead.next(STEPS) for _ in range(100)), maxlen=0)
        assert not multiprocessing.active_children()


@pytest.mark.skipif(not Path("/proc").exists(), reason="only Linux tells here which processes run")
def test_readers_end_with_the_process_that_trains(corpus: PreparedCorpus) -> None:
    """Killed, it ends nothing itself."""
    program = f"""
import os, sys, time
from pathlib import Path
from spacy_elmo.pretraining.batches import StreamRange
from spacy_elmo.pretraining.prepared import PreparedCorpus
from spacy_elmo.pretraining.batches import ReadAhead
from spacy_elmo.pretraining.vocabulary import Vocabulary
corpus = PreparedCorpus.open(Path({str(corpus.folder)!r}))
ahead = ReadAhead(corpus, Vocabulary.build(corpus, size=40), {SIZE}, StreamRange(12, 4, 6), 8, 3, readers=3, steps=500)
ahead.next(500)
print(*[reader.process.pid for reader in ahead._processes], flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as main:
        assert main.stdout is not None
        readers = [int(number) for number in main.stdout.readline().split()]
        assert len(readers) == 3
        main.kill()
    until = time.monotonic() + 20
    while running(readers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not running(readers)


def running(processes: list[int]) -> list[int]:
    return [number for number in processes if Path(f"/proc/{number}").exists()]


def test_a_program_ends_with_readers_that_were_not_closed(corpus: PreparedCorpus) -> None:
    program = f"""
from pathlib import Path
from spacy_elmo.pretraining.batches import StreamRange
from spacy_elmo.pretraining.prepared import PreparedCorpus
from spacy_elmo.pretraining.batches import ReadAhead
from spacy_elmo.pretraining.vocabulary import Vocabulary
corpus = PreparedCorpus.open(Path({str(corpus.folder)!r}))
ahead = ReadAhead(corpus, Vocabulary.build(corpus, size=40), {SIZE}, StreamRange(12, 4, 6), 8, 3, readers=2, steps=500)
ahead.next(500)
raise SystemExit(3)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 3


def test_signals_to_the_group_leave_the_readers(corpus: PreparedCorpus) -> None:
    """The process that trains may get them too, and finishes its update."""
    with both(corpus, 2) as (alone, ahead):
        assert_same(ahead.next(STEPS), alone.next(STEPS))
        for reader in multiprocessing.active_children():
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                os.kill(reader.pid or 0, number)
        for _ in range(20):
            assert_same(ahead.next(STEPS), alone.next(STEPS))
    assert not multiprocessing.active_children()


def test_readers_that_are_not_forked(corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows."""
    monkeypatch.setattr(multiprocessing, "get_context", partial(multiprocessing.get_context, "spawn"))
    with both(corpus, 2) as (alone, ahead):
        for _ in range(3):
            assert_same(ahead.next(STEPS), alone.next(STEPS))
