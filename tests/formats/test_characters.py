"""Character ids against AllenNLP's, against the definition, and case by case."""

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


def test_golden(golden: Path) -> None:
    sentences = json.loads((golden / "random_a" / "sentences.json").read_text(encoding="utf-8"))["sentences"]
    ids = batch_to_ids_array(sentences)
    assert ids.dtype == np.int64
    with h5py.File(golden / "random_a" / "expected.hdf5") as file:
        np.testing.assert_array_equal(ids, file["character_ids"][...])


SOME = ["<S>", "</S>", "", "\0", "a\0", "\ud800", "x\udfffy", "é" * 30]
words = st.text("ab<S>/é東🙂\0", max_size=40) | st.sampled_from(SOME)


@settings(max_examples=30, deadline=None)
@given(st.lists(words, max_size=8), st.integers(3, 60))
def test_definition(drawn: list[str], max_characters: int) -> None:
    ids = words_to_ids(drawn, max_characters)
    assert ids.shape == (len(drawn), max_characters)
    assert ids.tolist() == [ids_of(word, max_characters) for word in drawn]
    assert boundary_ids(max_characters).tolist() == [ids_of(word, max_characters) for word in ("<S>", "</S>")]


def test_padding_of_sentences() -> None:
    ids = batch_to_ids_array([["a"], [], ["b", "c"]], 4)
    assert ids.shape == (3, 2, 4)
    assert batch_to_ids_array([[], []], 7).shape == (2, 0, 7)
    assert not ids[0, 1].any()
    assert not ids[1].any()
    np.testing.assert_array_equal(ids[2], words_to_ids(["b", "c"], 4))


def test_count_truncated() -> None:
    assert count_truncated(["a" * 48, "a" * 49, "é" * 24, "é" * 25, "<S>", "東" * 17, "\ud800" * 60]) == 3
    assert count_truncated(["ab", "abc"], 4) == 1


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
    for longest in (2, 50.0):
        with pytest.raises(ElmoError, match="max_characters"):
            function([], longest)
