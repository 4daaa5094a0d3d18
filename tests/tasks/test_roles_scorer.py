"""Scores as srl-eval.pl of CoNLL-2005 counts them. The counts here are worked out by hand by its rules.

Its counts of 1,622 propositions with random roles, of all labels below and their C- and R- forms, were the same.
"""

from typing import Any

import pytest
from role_cases import doc_with, example
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_elmo.tasks.roles import annotate
from spacy_elmo.tasks.roles.scorer import score_roles

WORDS = "a b c d e f g h"
Spans = list[tuple[int, int, str]]
# gold roles, predicted roles, arguments: right, predicted, gold
CASES: list[tuple[str, Spans, Spans, tuple[int, int, int]]] = [
    ("the same; V is no argument", [(0, 1, "ARG0"), (1, 2, "V")], [(0, 1, "ARG0"), (1, 2, "V")], (1, 1, 1)),
    ("a wrong V costs nothing", [(0, 1, "ARG0"), (1, 2, "V")], [(0, 1, "ARG0"), (1, 3, "V")], (1, 1, 1)),
    ("another label", [(0, 1, "ARG0")], [(0, 1, "ARG1")], (0, 1, 1)),
    ("another end", [(0, 3, "ARG0")], [(0, 2, "ARG0")], (0, 1, 1)),
    ("two for one", [(0, 4, "ARG0")], [(0, 2, "ARG0"), (2, 4, "ARG0")], (0, 2, 1)),
    ("continuation", [(0, 1, "ARG1"), (3, 5, "C-ARG1")], [(0, 1, "ARG1"), (3, 5, "C-ARG1")], (1, 1, 1)),
    ("a part of it alone is wrong", [(0, 1, "ARG1"), (3, 5, "C-ARG1")], [(0, 1, "ARG1")], (0, 1, 1)),
    ("three pieces, one wrong", [(0, 1, "A"), (2, 3, "C-A"), (4, 5, "C-A")], [(0, 1, "A"), (4, 5, "C-A")], (0, 1, 1)),
    ("two arguments are no continuation", [(0, 1, "A"), (3, 5, "C-A")], [(0, 1, "A"), (3, 5, "A")], (0, 2, 1)),
    ("a continuation of nothing is the argument", [(3, 5, "ARG1")], [(3, 5, "C-ARG1")], (1, 1, 1)),
    ("of the last of two", [(0, 1, "A"), (2, 3, "A"), (4, 5, "C-A")], [(0, 1, "A"), (2, 3, "A")], (1, 2, 2)),
    ("not of the first", [(0, 1, "A"), (2, 3, "A"), (4, 5, "C-A")], [(0, 1, "A")], (1, 1, 2)),
    ("reference is a label", [(0, 1, "R-ARG0"), (2, 3, "ARG0")], [(0, 1, "ARG0"), (2, 3, "ARG0")], (1, 2, 2)),
    ("continued reference", [(0, 1, "R-A"), (2, 3, "C-R-A")], [(0, 1, "R-A"), (2, 3, "C-R-A")], (1, 1, 1)),
    ("C-V belongs to V", [(1, 2, "V"), (4, 5, "C-V"), (2, 4, "ARG1")], [(1, 2, "V"), (2, 4, "ARG1")], (1, 1, 1)),
    ("nothing there", [(0, 1, "ARG0")], [], (0, 0, 1)),
    ("nothing gold", [], [(0, 1, "ARG0")], (0, 1, 0)),
]


def scored(gold: dict[int, Spans] | None, predicted: dict[int, Spans], found: bool = False) -> dict[str, Any]:
    one = example(WORDS, gold)
    if not found:
        one.predicted = doc_with(WORDS, predicted, one.predicted.vocab)
    else:
        annotate(one.predicted, predicted, found=True)
    return score_roles([one])


def ratio(part: int, whole: int) -> float:
    return pytest.approx(part / whole if whole else 0)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("gold", "predicted", "counts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_counts(gold: Spans, predicted: Spans, counts: tuple[int, int, int]) -> None:
    right, wanted, there = counts
    scores = scored({1: gold}, {1: predicted})
    assert (scores["roles_p"], scores["roles_r"]) == (ratio(right, wanted), ratio(right, there))
    assert (scores["roles_given"], scores["predicates_f"]) == (1.0, None)


def test_all_predicates_count_together() -> None:
    gold = {1: [(0, 1, "ARG0"), (2, 3, "ARG1")], 4: [(0, 1, "ARG0"), (5, 6, "ARG1")]}
    predicted = {1: [(0, 1, "ARG0"), (2, 3, "ARG2")], 4: [(0, 1, "ARG0")]}
    scores = scored(gold, predicted)
    assert (scores["roles_p"], scores["roles_r"], scores["roles_f"]) == (ratio(2, 3), ratio(2, 4), ratio(4, 7))
    assert scores["roles_per_type"] == {
        "ARG0": {"p": 1.0, "r": 1.0, "f": 1.0},
        "ARG1": {"p": 0.0, "r": 0.0, "f": 0.0},
        "ARG2": {"p": 0.0, "r": 0.0, "f": 0.0},
    }


def test_found_predicates() -> None:
    """One is right, one is missed with an argument, and one is none: its argument is wrong."""
    gold = {1: [(0, 1, "ARG0")], 4: [(5, 6, "ARG1")]}
    scores = scored(gold, {1: [(0, 1, "ARG0")], 6: [(7, 8, "ARG1")]}, found=True)
    assert (scores["roles_p"], scores["roles_r"], scores["roles_given"]) == (0.5, 0.5, 0.0)
    assert (scores["predicates_p"], scores["predicates_r"], scores["predicates_f"]) == (0.5, 0.5, 0.5)


def test_what_is_not_annotated_is_not_scored() -> None:
    assert set(scored(None, {1: [(0, 1, "ARG0")]}).values()) == {None}
    one = example(WORDS, {1: [(0, 1, "ARG0")], 4: []})
    del one.reference.spans["roles:4"]
    one.predicted = doc_with(WORDS, {1: [(0, 1, "ARG0")], 4: [(5, 6, "ARG1")]}, one.reference.vocab)
    assert score_roles([one])["roles_f"] == 1.0


@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("gold", [{}, {1: []}, {1: [(1, 2, "V")]}])
def test_nothing_to_count_is_none_as_in_spacys_scores(gold: dict[int, Spans], found: bool) -> None:
    doc = Doc(Vocab(), words=WORDS.split())
    doc.spans["sc"] = []
    spacys = Scorer.score_spans(
        [Example(doc, doc.copy())],
        attr="roles",
        getter=lambda doc, attr: doc.spans["sc"],
        has_annotation=lambda doc: True,
    )
    scores = scored(gold, gold, found)
    assert {name: scores[name] for name in spacys} == spacys
    assert scores["predicates_f"] == (1.0 if found and gold else None)
    assert scores["roles_given"] == float(not found)


def test_other_words() -> None:
    reference = doc_with("ab c d", {1: [(0, 1, "ARG0"), (2, 3, "ARG1")]})
    other = doc_with("a b c d", {2: [(0, 2, "ARG0"), (3, 4, "ARG1")], 0: [(1, 2, "ARG1")]}, reference.vocab)
    other = Doc(other.vocab, words=["a", "b", "c", "d"], spaces=[False, True, True, True])
    annotate(other, {0: [(1, 2, "ARG1")], 2: [(0, 2, "ARG0"), (3, 4, "ARG1")]}, found=True)
    scores = score_roles([Example(other, reference)])
    assert (scores["roles_p"], scores["roles_r"]) == (1.0, 1.0)  # the role of "a" is half a word there
    assert (scores["predicates_p"], scores["predicates_r"]) == (0.5, 1.0)


def test_each_predicate_that_is_no_word_of_the_reference_is_wrong() -> None:
    vocab = Vocab()
    predicted = Doc(vocab, words=["a", "b", "c", "d", "ef", "gh"], spaces=[False, True, False, True, True, False])
    annotate(predicted, {0: [(5, 6, "ARG0")], 2: [(5, 6, "ARG0")], 4: [(5, 6, "ARG1")]}, found=True)
    reference = Doc(vocab, words=["ab", "cd", "ef", "gh"], spaces=[True, True, True, False])
    reference.spans["predicates"] = [reference[2:3]]
    annotate(reference, {2: [(3, 4, "ARG1")]}, found=False)
    scores = score_roles([Example(predicted, reference)])
    assert (scores["roles_p"], scores["roles_r"]) == (ratio(1, 3), 1.0)
    assert (scores["predicates_p"], scores["predicates_r"]) == (ratio(1, 3), 1.0)
