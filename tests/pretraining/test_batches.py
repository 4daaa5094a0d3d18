import numpy as np
import pytest

from spacy_elmo.pretraining.batches import NO_TARGET, Streams, reading
from spacy_elmo.pretraining.corpus import END, START, Sentences


def sentences(*lists: list[int]) -> Sentences:
    offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in lists])]).astype(np.int64)
    return Sentences(np.array([i for ids in lists for i in ids], np.int32), offsets)


def test_each_direction_makes_one_prediction_more_than_there_are_words() -> None:
    assert reading(np.array([7, 8, 9], np.int32)).tolist() == [
        [START, 7, 8, 9],
        [7, 8, 9, END],
        [END, 9, 8, 7],
        [9, 8, 7, START],
    ]


def test_streams_in_order_read_everything_once() -> None:
    text = sentences([5], [6, 7], [8, 9, 10], [11], [12, 13])
    streams = Streams(text, 2, seed=None)
    inputs, targets, starts = [], [], []
    while (window := streams.next(3)) is not None:
        assert window.inputs.shape == window.targets.shape == (2, 3, 2)
        inputs.append(window.inputs)
        targets.append(window.targets)
        starts.append(window.starts)
    forward = np.concatenate([t[0] for t in targets])
    assert [ids[ids != NO_TARGET].tolist() for ids in forward.T] == [
        [5, END, 6, 7, END],
        [8, 9, 10, END, 11, END, 12, 13, END],
    ]
    backward = np.concatenate([t[1] for t in targets])
    assert backward.T[1][backward.T[1] != NO_TARGET].tolist() == [10, 9, 8, START, 11, START, 13, 12, START]
    read = np.concatenate([i[0] for i in inputs])
    assert ((read == START) & (forward != NO_TARGET) == np.concatenate(starts)).all()


def test_shuffled_streams_never_end_and_see_each_sentence_once_an_epoch() -> None:
    text = sentences(*[[10 + k] for k in range(12)])
    streams = Streams(text, 3, seed=4)
    seen = [streams.next(2) for _ in range(8)]  # 4 sentences a stream and epoch, 2 positions each
    words = np.stack([window.targets[0, 0] for window in seen if window is not None])
    assert sorted(words[:4].ravel()) == sorted(words[4:].ravel()) == list(range(10, 22))
    assert words[:4].ravel().tolist() != words[4:].ravel().tolist()


@pytest.mark.parametrize("seed", [None, 0])
def test_restored_streams_go_on_where_they_stood(seed: int | None) -> None:
    rng = np.random.default_rng(0)
    text = sentences(*[rng.integers(3, 99, rng.integers(1, 9)).tolist() for _ in range(200)])
    streams, other = Streams(text, 4, seed), Streams(text, 4, seed)
    for _ in range(37 if seed == 0 else 10):
        streams.next(7)
    other.restore(streams.state())
    for _ in range(20):
        a, b = streams.next(7), other.next(7)
        assert a is not None
        assert b is not None
        assert all((x == y).all() for x, y in zip(a, b))
