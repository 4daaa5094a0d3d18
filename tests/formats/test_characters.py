"""Character ids against AllenNLP's, against the definition, and case by case."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.errors import ElmoError
from spacy_elmo.formats import batch_to_ids_array, boundary_ids, count_truncated, words_to_ids


def ids_of(word: str, max_characters: int) -> list[int]:
    """The definition of a word's ids, 1 added to each."""
    if word in ("<S>", "</S>"):
        inner = [256 if word == "<S>" else 257]
    else:
        inner = list(word.encode("utf-8", "ignore")[: max_characters - 2])
    ids = [258, *inner, 259]
    return [i + 1 for i in ids + [260] * (max_characters - len(ids))]


@pytest.mark.parametrize("name", ["random_a", "random_b"])
def test_golden(name: str, golden: Path) -> None:
    sentences = json.loads((golden / name / "sentences.json").read_text(encoding="utf-8"))["sentences"]
    with h5py.File(golden / name / "expected.hdf5") as file:
        expected = file["character_ids"][...]
    ids = batch_to_ids_array(sentences)
    assert ids.dtype == np.int64
    np.testing.assert_array_equal(ids, expected)


SOME = ["<S>", "</S>", "", "\0", "a\0", "\ud800", "x\udfffy", "é" * 30]
words = st.text("ab<S>/é東🙂\0", max_size=40) | st.sampled_from(SOME)


@settings(max_examples=30, deadline=None)
@given(st.lists(words, max_size=8), st.integers(3, 60))
def test_definition(drawn: list[str], max_characters: int) -> None:
    ids = words_to_ids(drawn, max_characters)
    assert ids.shape == (len(drawn), max_characters)
    assert ids.tolist() == [ids_of(word, max_characters) for word in drawn]


def test_boundaries() -> None:
    ids = boundary_ids(5)
    assert ids.tolist() == [[259, 257, 260, 261, 261], [259, 258, 260, 261, 261]]
    np.testing.assert_array_equal(words_to_ids(["<S>", "</S>"]), boundary_ids(50))
    assert words_to_ids(["<s>"], 6).tolist() == [[259, 61, 116, 63, 260, 261]]


def test_padding_of_sentences() -> None:
    ids = batch_to_ids_array([["a"], [], ["b", "c"]], 4)
    assert ids.shape == (3, 2, 4)
    assert not ids[0, 1].any()
    assert not ids[1].any()
    np.testing.assert_array_equal(ids[2], words_to_ids(["b", "c"], 4))


def test_empty_input() -> None:
    assert words_to_ids([]).shape == (0, 50)
    assert batch_to_ids_array([]).shape == (0, 0, 50)
    assert batch_to_ids_array([[], []], 7).shape == (2, 0, 7)
    assert count_truncated([]) == 0


def test_count_truncated() -> None:
    assert count_truncated(["a" * 48, "a" * 49, "é" * 24, "é" * 25, "<S>", "東" * 17, "\ud800" * 60]) == 3
    assert count_truncated(["ab", "abc"], 4) == 1


@pytest.mark.parametrize("function", [words_to_ids, batch_to_ids_array, count_truncated])
@pytest.mark.parametrize("value", [2, 0, -1, 50.0, None])
def test_bad_max_characters(function, value: object) -> None:
    with pytest.raises(ElmoError, match="max_characters"):
        function([], value)


@pytest.mark.parametrize(
    ("function", "value", "message"),
    [
        (words_to_ids, "a word", "split it into tokens"),
        (batch_to_ids_array, ["a word"], "split it into tokens"),
        (words_to_ids, ["a", 3], "a word is 3"),
        (count_truncated, [b"x"], "a word is b'x'"),
    ],
)
def test_what_is_no_list_of_words(function, value: object, message: str) -> None:
    with pytest.raises(ElmoError, match=message):
        function(value)
