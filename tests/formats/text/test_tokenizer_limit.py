"""The limit of what the tokenizer's rules read: what is refused, and what stays as spaCy splits it."""

from __future__ import annotations

import random
import re
from functools import cache, partial

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.formats import text as tokenizer_limit
from spacy_elmo.formats.text import Tokenize as Tokenizer
from spacy_elmo.formats.text import TokenizerLimit, Unusable, blank

LONG = "a" * 600


def words(stem: str, length: int, n: int) -> str:
    """Words that differ, because spaCy splits equal ones once."""
    generator = random.Random(0)
    return " ".join(stem + "".join(generator.choices("!?", k=length - len(stem))) for _ in range(n))


REFUSED = [
    ("en", "http://" * 5000),  # the rule for URLs reads all of it for each colon
    ("en", ":a@" * 5000),
    ("en", ("!" * 999 + "a") * 5),  # a mark is cut off, and the rest is read again
    ("en", LONG + "!" * 2000),
    ("en", "(" * 2000 + LONG),
    ("en", words("", 499, 40)),
    ("en", "a" + "." * 64_000 + "a"),  # the rule for "..." reads all of them for each
    ("el", "1" * 10_000),  # two rules of Greek read the rest of a number for each of its digits
    ("el", "λ" * 5000 + "!" * 5000),
    ("el", words("1" * 340, 499, 20)),
    ("el", words("1" * 50, 99, 1000)),
    ("pt", "a" * 50_000),
]
TAKEN = [
    ("en", LONG),
    ("en", f"see {LONG}, ({LONG}) and don't."),
    ("en", "a!" * 50_000),
    ("en", "!" * 1200),
    ("en", "Yes" + "😂" * 1200),
    ("en", "a" + "." * 4000 + "a"),
    ("en", "a" * 20_000 + "!" * 30),
    ("en", "ACGT" * 25_000),
    ("en", '{"name":"b","n":12},' * 600),
    ("en", "ab:" * 2000),
    ("en", "a.b{color:#fff;margin:0 1px}" * 350),
    ("en", "12,a@b.de;" * 5000),
    ("en", "data:image/png;base64," + "abcdefgh12/+" * 5000),
    ("en", f"http://a.de/{LONG}?b=http://c.de/, {LONG}:("),
    ("el", "Αυτό είναι ένα κείμενο, με λέξεις. " * 300),
    ("el", "1" * 1500),
    ("en", words("(", 99, 300)),  # short words are not counted
]


@cache
def tokenizer(language: str) -> Tokenizer:
    return Tokenizer(partial(blank, language))


@pytest.mark.parametrize(("language", "text"), REFUSED, ids=range(len(REFUSED)))
def test_words_that_are_read_too_often_are_refused(language: str, text: str) -> None:
    with pytest.raises(Unusable, match=r"^words too long or with too many punctuation marks"):
        tokenizer(language)(text)
    assert tokenizer(language)("It goes on.") == ["It", "goes", "on", "."]


@pytest.mark.parametrize(("language", "text"), TAKEN, ids=range(len(TAKEN)))
def test_other_long_words_are_split_as_spacy_splits_them(language: str, text: str) -> None:
    expected = [word for token in spacy.blank(language).tokenizer(text) for word in token.text.split()]
    assert tokenizer(language)(text) == expected


@pytest.mark.parametrize(("language", "text"), REFUSED, ids=range(len(REFUSED)))
def test_the_rules_read_no_more_than_is_allowed(language: str, text: str) -> None:
    """Counted by what the rules are called with. The search for a suffix takes about two units for a character."""
    nlp = spacy.blank(language)
    read = [0]
    search = nlp.tokenizer.suffix_search

    def counting(word: str) -> re.Match[str] | None:
        read[0] += len(word)
        found: re.Match[str] | None = search(word)
        return found

    nlp.tokenizer.suffix_search = counting
    read[0] = 0
    with pytest.raises(Unusable):
        Tokenizer(lambda: nlp)(text)
    assert read[0] <= 2_000_000 + 20 * len(text)


def test_a_text_is_allowed_as_much_as_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_limit, "_FREE", 8000)
    monkeypatch.setattr(tokenizer_limit, "_FOR_EACH", 0)
    short = "a!" * 40 + " "
    for letter in "abcdef":  # each word is read by three rules, and by the one for URLs at a tenth of the cost
        assert len(tokenizer("en")(letter * 2000)) == 1
        assert len(tokenizer("en")(short * 200)) > 200  # not limited
        with pytest.raises(Unusable):
            tokenizer("en")(letter * 3000)


def test_rules_that_a_tokenizer_lacks_are_left_out() -> None:
    nlp = spacy.blank("en")
    nlp.tokenizer = spacy.tokenizer.Tokenizer(nlp.vocab)
    TokenizerLimit(nlp.tokenizer, "en").allow("")
    assert [token.text for token in nlp(LONG + "!" * 5000)] == [LONG + "!" * 5000]


def test_tokenizers_of_other_classes_are_left_alone() -> None:
    nlp = spacy.blank("xx")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.split())
    assert Tokenizer(lambda: nlp)(LONG + "!" * 5000) == [LONG + "!" * 5000]
