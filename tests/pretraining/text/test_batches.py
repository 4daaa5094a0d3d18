"""Windows of streams, their shuffled order, and the table of words."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from small_corpora import evenly_drawn

from spacy_elmo.errors import CheckpointError
from spacy_elmo.formats.characters import boundary_ids, words_to_ids
from spacy_elmo.pretraining.batches import BlockShuffle, StreamRange, Streams, Window, WordTable, reading_order
from spacy_elmo.pretraining.prepared import PreparedCorpus
from spacy_elmo.pretraining.vocabulary import END, START, UNKNOWN, Vocabulary

SIZE = 12  # positions of a word


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return evenly_drawn(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def vocabulary(corpus: PreparedCorpus) -> Vocabulary:
    return Vocabulary.build(corpus, size=40)


def streams(
    corpus: PreparedCorpus, vocabulary: Vocabulary, n: int = 4, first: int = 0, count: int | None = None
) -> Streams:
    share = StreamRange(n, first, n if count is None else count)
    return Streams(corpus, vocabulary, SIZE, share, block=8, seed=3)


def words_of(window: Window) -> list[list[list[bytes]]]:
    """The character ids of the words that are read, as bytes, [direction][stream][step]."""
    spelled = [row.astype(np.int16).tobytes() for row in window.characters]
    return [[[spelled[k] for k in stream] for stream in direction.T] for direction in window.inputs]


def test_each_direction_makes_one_prediction_more_than_there_are_words() -> None:
    words, targets = np.array([7, 8, 9], np.int32), np.array([4, 5, 6], np.int32)
    assert reading_order(words, targets).tolist() == [
        [START, 7, 8, 9],
        [4, 5, 6, END],
        [END, 9, 8, 7],
        [6, 5, 4, START],
    ]


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


def test_words_outside_the_vocabulary_are_unknown_targets(corpus: PreparedCorpus, vocabulary: Vocabulary) -> None:
    targets = np.concatenate([streams(corpus, vocabulary).next(50).targets.ravel()])
    assert (targets == UNKNOWN).any()
    assert targets.max() < len(vocabulary)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_processes_share_the_streams(corpus: PreparedCorpus, vocabulary: Vocabulary, n: int) -> None:
    all_streams = streams(corpus, vocabulary, 12)
    shares = [streams(corpus, vocabulary, 12, first=k * (12 // n), count=12 // n) for k in range(n)]
    for _ in range(20):
        expected, parts = all_streams.next(5), [share.next(5) for share in shares]
        assert (np.concatenate([part.targets for part in parts], 2) == expected.targets).all()
        assert (np.concatenate([part.starts for part in parts], 1) == expected.starts).all()
        for d in (0, 1):
            assert list(chain.from_iterable(words_of(part)[d] for part in parts)) == words_of(expected)[d]


@pytest.mark.parametrize("after", [0, 1, 37])
def test_restored_streams_return_the_same_windows(corpus: PreparedCorpus, vocabulary: Vocabulary, after: int) -> None:
    one, other = streams(corpus, vocabulary), streams(corpus, vocabulary)
    for _ in range(after):
        one.next(7)
    other.restore(one.state())
    for _ in range(30):
        a, b = one.next(7), other.next(7)
        assert words_of(a) == words_of(b)
        assert (a.characters == b.characters).all()
        assert (a.inputs == b.inputs).all()
        assert (a.targets == b.targets).all()
        assert (a.starts == b.starts).all()


def test_streams_go_back_to_a_saved_state_as_often_as_wanted(corpus: PreparedCorpus, vocabulary: Vocabulary) -> None:
    """Neither reading on nor restoring changes what was saved, even after an epoch has ended."""
    read = streams(corpus, vocabulary)
    for _ in range(15):
        read.next(7)
    saved = read.state()
    before = {name: array.copy() for name, array in saved.items()}
    expected = [read.next(7) for _ in range(30)]
    assert (read.state()["epoch"] > before["epoch"]).any()
    for _ in range(2):
        read.restore(saved)
        for window in expected:
            got = read.next(7)
            assert words_of(got) == words_of(window)
            np.testing.assert_array_equal(got.targets, window.targets)
            np.testing.assert_array_equal(got.starts, window.starts)
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


def test_a_position_after_the_last_word_is_accepted(corpus: PreparedCorpus, vocabulary: Vocabulary) -> None:
    """The end of the sentence is predicted next. One word later there is nothing to predict."""
    one = streams(corpus, vocabulary, 1)
    words = len(corpus.sentence(BlockShuffle(len(corpus), 8, 3, n_cached=8).number(0, 0)))
    state = {"epoch": np.zeros(1, np.int64), "position": np.zeros(1, np.int64), "offset": np.array([words])}
    one.restore(state)
    assert one.next(1).targets[:, 0, 0].tolist() == [END, START]
    with pytest.raises(CheckpointError):
        one.restore(state | {"offset": np.array([words + 1])})


def test_a_position_after_the_end_of_a_sentence_does_not_loop_forever(
    corpus: PreparedCorpus, vocabulary: Vocabulary
) -> None:
    one = streams(corpus, vocabulary, 1)
    one.offset[0] = 99
    assert one.next(3).starts[0, 0]
    assert one.position[0] >= 1


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


def test_the_table_knows_all_its_words() -> None:
    table = WordTable(SIZE)
    texts = [[f"{k:x}" for k in range(n)] + ["é", "<S>", "x" * 99] for n in (1, 900, 3000)]
    for words in texts:
        numbers = table.numbers(words)
        assert (table.characters(numbers.astype(np.int64)) == words_to_ids(words, SIZE)).all()
        assert numbers.min() >= 2
    assert (table.characters(np.array([0, 1])) == boundary_ids(SIZE)).all()


@pytest.mark.parametrize(("n", "block"), [(1, 8), (7, 8), (8, 8), (101, 8), (101, 1), (100, 10)])
def test_an_epoch_is_a_permutation_that_reads_block_by_block(n: int, block: int) -> None:
    order = BlockShuffle(n, block, seed=1, n_cached=4)
    epochs = [[order.number(epoch, k) for k in range(n)] for epoch in (0, 1)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(n))
    assert n < 3 or epochs[0] != epochs[1]
    blocks = [number // block for number in epochs[0]]
    assert sum(a != b for a, b in pairwise(blocks)) == -(-n // block) - 1


def test_another_seed_is_another_order() -> None:
    first, second = ([BlockShuffle(50, 8, seed, n_cached=4).number(0, k) for k in range(50)] for seed in (0, 1))
    assert first != second


def test_blocks_of_one_epoch_are_shuffled_differently() -> None:
    order = BlockShuffle(64, 8, seed=1, n_cached=4)
    inside = {tuple(order.number(0, start + k) % 8 for k in range(8)) for start in range(0, 64, 8)}
    assert len(inside) == 8
