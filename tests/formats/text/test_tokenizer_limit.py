"""The limit of what the tokenizer's rules read: what they read, what is refused, and what stays as spaCy splits it."""

from __future__ import annotations

from functools import partial

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.formats.text import tokenizer_limit
from spacy_elmo.formats.text.lines import Unusable
from spacy_elmo.formats.text.splitting import Tokenizer, blank
from spacy_elmo.formats.text.tokenizer_limit import TokenizerLimit

LONG = "a" * 600  # words of 500 characters and more are counted
REFUSED = [
    "http://" * 2000,  # the rule for URLs reads all of it for each colon
    ":a@" * 2000,
    '{"a":"b",' * 2000,
    ("!" * 999 + "a") * 5,  # a mark is cut off, and the rest is read again
    LONG + "!" * 2000,
    "(" * 2000 + LONG,
]
TAKEN = [
    LONG,
    f"see {LONG}, ({LONG}) and don't.",
    "a!" * 50_000,
    "!" * 600,
    "12,a@b.de;" * 5000,
    "data:image/png;base64," + "abcdefgh12/+" * 5000,
    f"http://a.de/{LONG}?b=http://c.de/, {LONG}:(",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(partial(blank, "en"))


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_words_that_are_read_too_often_are_refused(tokenizer: Tokenizer, text: str) -> None:
    with pytest.raises(Unusable, match=r"^too many punctuation marks without a blank"):
        tokenizer(text)
    assert tokenizer("It goes on, doesn't it?") == ["It", "goes", "on", ",", "does", "n't", "it", "?"]


@pytest.mark.parametrize("text", TAKEN, ids=range(len(TAKEN)))
def test_other_long_words_are_split_as_spacy_splits_them(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer(text) == [token.text for token in spacy.blank("en").tokenizer(text)]


def test_a_text_is_allowed_as_much_as_the_one_before(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_limit, "_FREE", 5000)
    monkeypatch.setattr(tokenizer_limit, "_FOR_EACH", 0)
    for letter in "abcdef":  # each word is read by two rules, and by the one for URLs at a tenth of the cost
        assert len(tokenizer(letter * 2000)) == 1
        with pytest.raises(Unusable):
            tokenizer(letter * 2500)


def test_rules_that_a_tokenizer_lacks_are_left_out() -> None:
    nlp = spacy.blank("en")
    nlp.tokenizer = spacy.tokenizer.Tokenizer(nlp.vocab)
    TokenizerLimit(nlp.tokenizer).allow("")
    assert [token.text for token in nlp(LONG + "!" * 5000)] == [LONG + "!" * 5000]


def test_tokenizers_of_other_classes_are_left_alone() -> None:
    nlp = spacy.blank("xx")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.split())
    assert Tokenizer(lambda: nlp)(LONG + "!" * 5000) == [LONG + "!" * 5000]
