"""Windows of streams, their shuffled order, and the table of words."""

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
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from small_run import evenly_drawn

from spacy_elmo.errors import CheckpointError, CorpusError, ProcessError
from spacy_elmo.formats.characters import boundary_ids, words_to_ids
from spacy_elmo.pretraining.batches import BlockShuffle, ReadAhead, StreamRange, Streams, Window
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare
from spacy_elmo.pretraining.vocabulary import END, START, Vocabulary, count_words

SIZE = 12  # positions of a word


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return evenly_drawn(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def vocabulary(corpus: PreparedCorpus) -> Vocabulary:
    return Vocabulary.from_counts(count_words(corpus), 40)


def streams(
    corpus: PreparedCorpus, vocabulary: Vocabulary, n: int = 4, first: int = 0, count: int | None = None
) -> Streams:
    share = StreamRange(n, first, n if count is None else count)
    return Streams(corpus, vocabulary, SIZE, share, block=8, seed=3)


def words_of(window: Window) -> list[list[list[bytes]]]:
    """The character ids of the words that are read, as bytes, [direction][stream][step]."""
    spelled = [row.astype(np.int16).tobytes() for row in window.characters]
    return [[[spelled[k] for k in stream] for stream in direction.T] for direction in window.inputs]


def test_streams_read_their_sentences_in_the_shuffled_order(corpus: PreparedCorpus, vocabulary: Vocabulary) -> None:
    """Everything in the windows is compared with sentences that are strung together one by one."""
    got = streams(corpus, vocabulary)
    windows = [got.next(7) for _ in range(60)]
    begin, end = (row.astype(np.int16).tobytes() for row in boundary_ids(SIZE))
    order, bounds = BlockShuffle(len(corpus), 8, 3, n_cached=8), np.linspace(0, len(corpus), 5).astype(int)
    for stream in range(4):
        read: list[list[bytes]] = [[], []]
        predicted: list[list[int]] = [[], []]
        starts: list[bool] = []
        for number in range(400):
            epoch, k = divmod(number, int(bounds[stream + 1] - bounds[stream]))
            words = corpus.sentence(order.number(epoch, int(bounds[stream]) + k))
            spelled = [row.astype(np.int16).tobytes() for row in words_to_ids(words, SIZE)]
            ids = vocabulary.ids(words).tolist()
            for d, first, last, way in ((0, begin, END, 1), (1, end, START, -1)):
                read[d] += [first, *spelled[::way]]
                predicted[d] += [*ids[::way], last]
            starts += [True] + [False] * len(words)
        for d in (0, 1):
            assert list(chain.from_iterable(words_of(window)[d][stream] for window in windows)) == read[d][:420]
            got_targets = np.concatenate([window.targets[d, :, stream] for window in windows])
            assert got_targets.tolist() == predicted[d][:420]
        assert np.concatenate([window.starts[:, stream] for window in windows]).tolist() == starts[:420]


def test_processes_share_the_streams(corpus: PreparedCorpus, vocabulary: Vocabulary) -> None:
    all_streams = streams(corpus, vocabulary, 12)
    shares = [streams(corpus, vocabulary, 12, first=first, count=4) for first in (0, 4, 8)]
    for _ in range(20):
        expected, parts = all_streams.next(5), [share.next(5) for share in shares]
        assert (np.concatenate([part.targets for part in parts], 2) == expected.targets).all()
        assert (np.concatenate([part.starts for part in parts], 1) == expected.starts).all()
        for d in (0, 1):
            assert list(chain.from_iterable(words_of(part)[d] for part in parts)) == words_of(expected)[d]


def test_streams_go_back_to_a_saved_state_as_often_as_wanted(corpus: PreparedCorpus, vocabulary: Vocabulary) -> None:
    """Neither reading on nor restoring changes what was saved, even after an epoch has ended."""
    read = streams(corpus, vocabulary)
    for _ in range(15):
        read.next(7)
    saved = read.state()
    before = {name: array.copy() for name, array in saved.items()}
    expected = [read.next(7) for _ in range(30)]
    assert (read.state()["epoch"] > before["epoch"]).any()
    for restored in (read, read, streams(corpus, vocabulary)):
        restored.restore(saved)
        for window in expected:
            for got, values in zip(restored.next(7), window, strict=True):
                np.testing.assert_array_equal(got, values)
        for name, array in before.items():
            np.testing.assert_array_equal(saved[name], array)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epoch", -1), ("position", 24), ("position", 51), ("position", 10**9), ("offset", -1), ("offset", 9)],
)
def test_positions_that_do_not_exist_are_refused(
    corpus: PreparedCorpus, vocabulary: Vocabulary, name: str, value: int
) -> None:
    """The second of four streams of 101 sentences reads 25 to 49; no sentence has more than 8 words."""
    got = streams(corpus, vocabulary)
    got.next(7)
    before, wrong = got.state(), got.state()
    wrong[name][1] = value
    with pytest.raises(CheckpointError, match="the stream 1 at epoch "):
        got.restore(wrong)
    assert all((values == before[each]).all() for each, values in got.state().items())


def test_a_full_table_of_words_changes_nothing(corpus: PreparedCorpus, vocabulary: Vocabulary) -> None:
    one, other = streams(corpus, vocabulary), streams(corpus, vocabulary)
    other.table.capacity = 20
    cleared = 0
    for _ in range(60):
        cleared += other.table.full
        a, b = one.next(7), other.next(7)
        assert words_of(a) == words_of(b)
        assert (a.targets == b.targets).all()
    assert cleared > 5


@pytest.mark.parametrize(("n", "block"), [(1, 8), (7, 8), (8, 8), (101, 8), (101, 1), (100, 10)])
def test_an_epoch_is_a_permutation_that_reads_block_by_block(n: int, block: int) -> None:
    order = BlockShuffle(n, block, seed=1, n_cached=4)
    epochs = [[order.number(epoch, k) for k in range(n)] for epoch in (0, 1)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(n))
    other_seed = BlockShuffle(n, block, seed=2, n_cached=4)
    assert n < 3 or epochs[0] != epochs[1] != [other_seed.number(1, k) for k in range(n)]
    if (n, block) == (101, 8):  # blocks are shuffled differently
        assert len({tuple(k % 8 for k in epochs[0] if k // 8 == number) for number in range(12)}) > 10
    blocks = [number // block for number in epochs[0]]
    assert sum(a != b for a, b in pairwise(blocks)) == -(-n // block) - 1


STEPS, RANGE = 7, StreamRange(12, 4, 6)


@contextmanager
def both(
    corpus: PreparedCorpus, readers: int, vocabulary: Vocabulary | None = None
) -> Iterator[tuple[Streams, ReadAhead]]:
    given = (corpus, vocabulary or Vocabulary.from_counts(count_words(corpus), 40), SIZE, RANGE, 8, 3)
    ahead = ReadAhead(readers, STEPS, *given)
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
        for _ in range(20):  # several epochs
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
        ahead.close()  # it goes on after that
        other.restore(saved)
        assert_same(ahead.next(STEPS), expected[0])
        with pytest.raises(CheckpointError):
            ahead.restore(saved | {"position": saved["position"] + 1000})
        ahead.restore(saved)
        for restored in (ahead, other):
            for window in expected:
                assert_same(restored.next(STEPS), window)


def test_a_damaged_text_is_told_as_without_readers(corpus: PreparedCorpus, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("one two\n" * 50, encoding="utf8")
    damaged = prepare(tmp_path / "text.txt", tmp_path / "prepared")
    (damaged.folder / "sentences.txt").write_text("one-two\n" * 50, encoding="utf8")
    messages = []
    with both(PreparedCorpus(damaged.folder), 2, Vocabulary.from_counts(count_words(corpus), 40)) as pair:
        for streams in pair:
            with pytest.raises(CorpusError, match="has 1 words, not 2") as raised:
                streams.next(STEPS)
            messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert not multiprocessing.active_children()


def test_killed_readers(corpus: PreparedCorpus) -> None:
    """They die in the middle of a message: nothing reads what they have read ahead."""
    with both(corpus, 2) as (_, ahead):
        ahead.next(STEPS)
        time.sleep(0.2)
        process = ahead._processes[1][0]
        process.kill()
        process.join()
        with pytest.raises(
            ProcessError, match=r"has ended \(exit code -9\)\. .* set training\.readers, which is 2, lower"
        ):
            deque((ahead.next(STEPS) for _ in range(100)), maxlen=0)
        assert not multiprocessing.active_children()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="only Linux tells here which processes run")
def test_readers_end_with_the_process_that_trains(corpus: PreparedCorpus) -> None:
    """A program ends with readers that were not closed. Killed, it ends nothing itself."""
    program = f"""
import os, sys, time
from spacy_elmo.pretraining.batches import ReadAhead, StreamRange
from spacy_elmo.pretraining.prepared import PreparedCorpus
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words
corpus = PreparedCorpus({str(corpus.folder)!r})
child = os.fork()
ahead = ReadAhead(3, 500, corpus, Vocabulary.from_counts(count_words(corpus), 40), {SIZE}, StreamRange(12, 4, 6), 8, 3)
ahead.next(500)
if not child:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *[p.pid for p, _ in ahead._processes], flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as main:
        assert main.stdout is not None
        code, *readers = [int(number) for number in main.stdout.readline().split()]
        assert (code, len(readers)) == (3, 3)
        main.kill()
    until = time.monotonic() + 20
    while (left := [number for number in readers if Path(f"/proc/{number}").exists()]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def test_signals_to_the_group_leave_the_readers(corpus: PreparedCorpus) -> None:
    """The process that trains may get them too, and finishes its update."""
    with both(corpus, 2) as (alone, ahead):
        assert_same(ahead.next(STEPS), alone.next(STEPS))
        for reader in multiprocessing.active_children():
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                os.kill(reader.pid or 0, number)
        for _ in range(3):
            assert_same(ahead.next(STEPS), alone.next(STEPS))
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_readers_that_are_not_forked(corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows."""
    monkeypatch.setattr(multiprocessing, "get_context", partial(multiprocessing.get_context, "spawn"))
    with both(corpus, 1) as (alone, ahead):
        for _ in range(3):
            assert_same(ahead.next(STEPS), alone.next(STEPS))
