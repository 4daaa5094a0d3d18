"""Splitting of text: places of words, and the limits of what the tokenizer is given."""

from __future__ import annotations

from functools import partial

import pytest
import spacy

from spacy_elmo.formats import text as splitting
from spacy_elmo.formats.text import Tokenize as Tokenizer
from spacy_elmo.formats.text import Unusable, blank, decode_line, words_at_blanks


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(partial(blank, "xx"))


def test_places_of_words_that_come_again() -> None:
    assert words_at_blanks(" a  aa a\n") == (["a", "aa", "a"], [(1, 2), (4, 6), (7, 8)])
    assert words_at_blanks(" \n") == ([], [])


def test_places_of_words_inside_a_token() -> None:
    """A tokenizer that was changed may leave blanks in a token: here all but the first letter is one."""
    nlp = spacy.blank("xx")
    nlp.tokenizer = lambda text: spacy.tokens.Doc(nlp.vocab, words=["x", text[2:]], spaces=[True, False])
    assert Tokenizer(lambda: nlp).words_and_offsets("x  b cc ") == (["x", "b", "cc"], [(0, 1), (3, 4), (5, 7)])
    assert Tokenizer(lambda: nlp)("x  b cc ") == ["x", "b", "cc"]


def test_the_longest_text(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spacy.blank("xx").max_length == splitting._LONGEST
    monkeypatch.setattr(splitting, "_LONGEST", 10)
    assert tokenizer("aaaa bbbbb") == ["aaaa", "bbbbb"]
    with pytest.raises(Unusable, match="more than 10 characters"):
        tokenizer("aaaaa bbbbb")


def test_the_tokenizer_is_replaced_after_enough_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "RENEWED_AFTER", 10)
    loads: list[int] = []

    def load() -> spacy.language.Language:
        loads.append(1)
        return blank("xx")

    tokenizer = Tokenizer(load)
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
