"""The scorer on docs: the keys of its scores, singletons, other tokens, and docs without clusters."""

from typing import Any

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.tasks.coreference.annotations import annotate
from spacy_elmo.tasks.coreference.scorer import build_coreference_scorer

VOCAB = spacy.blank("en").vocab
WORDS = ["Anna", "saw", "Bert", "and", "he", "saw", "her"]


def example(key: list[Any], response: list[Any]) -> Example:
    predicted, reference = Doc(VOCAB, words=WORDS), Doc(VOCAB, words=WORDS)
    annotate(reference, key)
    annotate(predicted, response)
    return Example(predicted, reference)


KEY = [[(0, 1), (6, 7)], [(2, 3), (4, 5)]]


def test_perfect_and_nothing() -> None:
    scores = build_coreference_scorer()([example(KEY, KEY)])
    assert set(scores.values()) == {1.0}
    assert set(scores) == {"coref_f"} | {
        f"coref_{name}_{letter}" for name in ("muc", "b3", "ceaf", "lea", "mentions") for letter in "prf"
    }
    assert set(build_coreference_scorer()([example(KEY, [])]).values()) == {0.0}
    assert set(build_coreference_scorer()([example([], KEY)]).values()) == {None}


def test_the_mean() -> None:
    """One link of two is found: MUC 1/2, 1/1; B-cubed 2/4, 2/2; CEAF 1/2, 1/1."""
    scores = build_coreference_scorer()([example(KEY, KEY[:1])])
    for name in ("muc", "b3", "ceaf", "lea"):
        assert [scores[f"coref_{name}_{letter}"] for letter in "rp"] == [0.5, 1.0]
    assert scores["coref_f"] == pytest.approx(2 / 3)


def test_singletons() -> None:
    """With them 3 of 3 clusters are found but for one mention; without them 1 of 1."""
    given = [example([KEY[0], [(2, 3)], [(4, 5)]], [KEY[0], [(2, 3)], [(3, 4)]])]
    with_them, without = (
        build_coreference_scorer(singletons=True)(given),
        build_coreference_scorer(singletons=False)(given),
    )
    assert with_them["coref_b3_r"] == pytest.approx(3 / 4)
    assert with_them["coref_ceaf_r"] == pytest.approx(2 / 3)
    assert with_them["coref_muc_r"] == 1.0
    assert without["coref_b3_r"] == without["coref_ceaf_r"] == 1.0


def test_docs_with_other_tokens() -> None:
    reference = Doc(VOCAB, words=["Anna", "'s", "dog"], spaces=[False, True, False])
    annotate(reference, [[(0, 1)], [(0, 3)]])
    predicted = Doc(VOCAB, words=["Anna's", "dog"], spaces=[True, False])
    annotate(predicted, [[(0, 1)], [(0, 2)]])
    scores = build_coreference_scorer()([Example(predicted, reference)])
    assert scores["coref_mentions_p"] == scores["coref_mentions_r"] == 0.5


def test_docs_with_other_blanks() -> None:
    """The reference has blanks before the full stops, the predicted doc has none."""
    words = ["Anna", "met", "an", "old", "man", ".", "She", "liked", "him", "."]
    clusters = [[(0, 1), (6, 7)], [(2, 5), (8, 9)]]
    reference = Doc(VOCAB, words=words)
    predicted = Doc(VOCAB, words=words, spaces=[word not in ("man", "him") for word in words])
    annotate(reference, clusters)
    annotate(predicted, clusters)
    assert set(build_coreference_scorer()([Example(predicted, reference)]).values()) == {1.0}
