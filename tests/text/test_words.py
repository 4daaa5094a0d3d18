"""How texts are split into words, and where the words stand."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import spacy

from spacy_elmo.text import words as module
from spacy_elmo.text.words import Tokenize, Unusable, blank, checked_words, decode_line, words_of


@pytest.fixture(scope="module")
def tokenizer() -> Tokenize:
    return Tokenize(partial(blank, "xx"))


def test_the_longest_text(tokenizer: Tokenize, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spacy.blank("xx").max_length == module._LONGEST
    monkeypatch.setattr(module, "_LONGEST", 10)
    assert tokenizer("aaaa bbbbb") == ["aaaa", "bbbbb"]
    with pytest.raises(Unusable, match="more than 10 characters"):
        tokenizer("aaaaa bbbbb")


def test_the_tokenizer_is_replaced_after_enough_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEWED_AFTER", 10)
    loads: list[int] = []

    def load() -> spacy.language.Language:
        loads.append(1)
        return blank("xx")

    tokenizer = Tokenize(load)
    counts = []
    for _ in range(5):
        tokenizer("a bcd")  # 5 characters
        counts.append(len(loads))
    assert counts == [1, 1, 2, 2, 3]


def test_a_byte_order_mark_only_at_the_beginning_of_a_file() -> None:
    line = b"\xef\xbb\xbfa"
    assert decode_line(line, 1) == "a"
    assert decode_line(line, 2) == "\ufeffa"
    assert decode_line(b"\xef\xbb\xbf" + line, 1) == "\ufeffa"


def test_words_of_what_a_list_or_a_cell_holds() -> None:
    """What is missing has no words, and an empty or blank token is no word."""
    values: list[tuple[Any, list[str]]] = [
        ("a  b", ["a", "b"]),
        (["a", "", " ", "\u3000", "New York"], ["a", "New York"]),
        (("a",), ["a"]),
        (None, []),
        (float("nan"), []),
        ([], []),
        ("", []),
    ]
    for value, words in values:
        assert words_of(value, str.split) == words
    for value in (3, b"a", {"a": 1}, ["a", None], ["a", 3], ["a\0"], ["\ud800"], "\ud800", "a\0"):
        with pytest.raises(Unusable):
            words_of(value, str.split)
    assert checked_words(iter(["a", "\n"])) == ["a"]
