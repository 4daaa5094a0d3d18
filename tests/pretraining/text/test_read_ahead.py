"""Batches that processes read ahead, against those that `Streams` reads alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from spacy_elmo.errors import CheckpointError, SettingsError
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
def both(corpus: PreparedCorpus, readers: int) -> Iterator[tuple[Streams, ReadAhead]]:
    given = (corpus, Vocabulary.build(corpus, size=40), SIZE, RANGE, 8, 3)
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
