"""Batches that processes read ahead, against those that `Streams` reads alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from torch.utils.data import DataLoader

from spacy_elmo.errors import CheckpointError, CorpusError, ProcessError, SettingsError
from spacy_elmo.pretraining.text import read_ahead
from spacy_elmo.pretraining.text.batches import StreamRange, Streams, Window
from spacy_elmo.pretraining.text.prepared import PreparedCorpus
from spacy_elmo.pretraining.text.preparing import prepare
from spacy_elmo.pretraining.text.read_ahead import ReadAhead
from spacy_elmo.pretraining.text.vocabulary import Vocabulary

# torch's advice on machines with fewer cores than readers
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
SIZE, STEPS, RANGE = 12, 7, StreamRange(12, 4, 6)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{k}" for k in rng.integers(0, 60, rng.integers(1, 9))) for _ in range(101)]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf8")
    return prepare(folder / "text.txt", folder / "prepared")


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
    with pytest.raises(SettingsError, match=r"training\.readers is 4, but must divide the 6 streams of a process"):
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


def test_a_killed_reader(corpus: PreparedCorpus) -> None:
    with both(corpus, 2) as (_, ahead):
        ahead.next(STEPS)
        readers = multiprocessing.active_children()
        assert len(readers) == 2
        os.kill(readers[0].pid or 0, signal.SIGKILL)
        told = r"a process that reads the text has ended .* set training\.readers"
        with pytest.raises(ProcessError, match=told):
            deque((ahead.next(STEPS) for _ in range(100)), maxlen=0)
        assert not multiprocessing.active_children()


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
    monkeypatch.setattr(read_ahead, "DataLoader", partial(DataLoader, multiprocessing_context="spawn"))
    with both(corpus, 2) as (alone, ahead):
        for _ in range(3):
            assert_same(ahead.next(STEPS), alone.next(STEPS))
