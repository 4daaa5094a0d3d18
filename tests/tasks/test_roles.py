"""Semantic roles: annotations, the component in pipelines of spaCy, what it learns from, and its loss."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from role_cases import GIVEN, SMALL, doc_with, example, examples, roles_in, trained
from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from torch.nn import functional as F

from spacy_elmo.errors import AnnotationError, UnknownLabelWarning
from spacy_elmo.tasks.roles import (
    Role,
    annotate,
    given_predicates,
    predicates_of,
    roles_displacy,
    roles_of,
    roles_table,
)
from spacy_elmo.tasks.roles.component import best_tags, spans_of, tags_of, targets_of
from spacy_elmo.tasks.roles.model import RoleScores, Row
from spacy_elmo.tasks.shared import build_given_spans

TEXT, ROLES = GIVEN[0]


# annotations


def test_reading() -> None:
    doc = doc_with(TEXT, ROLES)
    assert predicates_of(doc) == given_predicates(doc) == [1, 6]
    assert [(span.text, span.label_) for span in roles_of(doc, 6) or ()] == [
        ("Mary", "ARG0"),
        ("left", "V"),
        ("early", "ARGM-TMP"),
    ]
    assert predicates_of(doc_with(TEXT, None)) is None
    assert roles_of(doc, 3) is None


def test_writing_in_the_place_of_what_is_there() -> None:
    doc = doc_with(TEXT, None)
    annotate(doc, {1: [(1, 2, "V")], 6: []}, found=True)
    annotate(doc, {6: [(0, 1, "ARG0")]}, found=True)
    assert roles_in(doc) == {6: [(0, 1, "ARG0")]}
    assert sorted(doc.spans) == ["predicates", "roles:6"]
    assert doc.spans["predicates"].attrs == {"found": True}
    assert given_predicates(doc) is None


def wrong_docs() -> list[tuple[Doc, str]]:
    long = doc_with(TEXT, {})
    long.spans["predicates"] = [long[1:3]]
    alone = doc_with(TEXT, ROLES)
    del alone.spans["predicates"]
    other = doc_with(TEXT, ROLES)
    other.spans["predicates"] = [other[1:2]]
    unnamed = doc_with(TEXT, ROLES)
    unnamed.spans["roles:1"] = [unnamed[0:1]]
    twice = doc_with(TEXT, ROLES)
    twice.spans["roles:1"] = [Span(twice, 0, 3, "ARG0"), Span(twice, 2, 4, "ARG1")]
    return [
        (long, "predicate of 2 tokens, 'gave John'"),
        (alone, "the span groups roles:1, roles:6, but"),
        (other, "the span groups roles:6, but"),
        (unnamed, "role without a label in doc.spans.'roles:1'.: 'Mary'"),
        (twice, "overlap in doc.spans.'roles:1'.: ARG0 and ARG1"),
    ]


@pytest.mark.parametrize(("doc", "message"), wrong_docs(), ids=["long", "alone", "other", "unnamed", "twice"])
def test_wrong_annotations(doc: Doc, message: str) -> None:
    with pytest.raises(AnnotationError, match=message) as error:
        roles_table(doc)
    assert "Mary gave John a book" in str(error.value)


def test_table_and_pictures() -> None:
    doc = doc_with(*GIVEN[0])
    rows = roles_table(doc)
    assert len(rows) == 7
    assert rows[3] == Role(1, "gave", "ARG1", 3, 5, "a book")
    assert rows[-1] == Role(predicate=6, word="left", label="ARGM-TMP", start=7, end=8, text="early")
    pictures = roles_displacy(doc)
    assert [len(picture["spans"]) for picture in pictures] == [4, 3]
    html = displacy.render(pictures, style="span", manual=True, jupyter=False)
    assert (html.count("ARGM-TMP"), html.count("ARG0")) == (1, 2)
    for roles in (None, {}):
        doc = doc_with("A fine day", roles)
        assert roles_table(doc) == roles_displacy(doc) == []


# the component


@cache
def learned() -> Language:
    return trained()


@pytest.mark.slow
def test_it_learns() -> None:
    nlp = learned()
    for text, roles in GIVEN:
        assert roles_in(nlp(text)) == roles
    scores = nlp.evaluate(examples(nlp))
    assert (scores["roles_f"], scores["predicates_f"], scores["roles_given"]) == (1.0, 1.0, 0.0)


@pytest.mark.slow
def test_given_predicates_stay() -> None:
    nlp = learned()
    doc = nlp.make_doc(TEXT)
    doc.spans["predicates"] = [doc[6:7]]
    doc = nlp(doc)
    assert roles_in(doc) == {6: ROLES[6]}
    assert "roles:1" not in doc.spans
    doc.spans["predicates"] = []
    assert not roles_in(nlp(doc))
    assert sorted(doc.spans) == ["predicates"]
    del doc.spans["predicates"]
    assert roles_in(nlp(doc)) == roles_in(nlp(nlp(doc))) == ROLES  # found again at each run
    given = [next(build_given_spans(["predicates"])(nlp, one)) for one in examples(nlp)]
    assert nlp.evaluate(given)["roles_given"] == 1.0


@pytest.mark.slow
def test_docs_without_roles() -> None:
    nlp = learned()
    assert roles_in(nlp("")) == {}
    assert [len(doc) for doc in nlp.pipe(["", "Mary", ""])] == [0, 1, 0]
    assert roles_in(nlp("A fine day")) == {}
    pipe = nlp.get_pipe("semantic_roles")
    threshold, pipe.threshold = pipe.threshold, 0.0  # type: ignore[attr-defined]  # so that each token is likely enough
    doc = nlp("Mary \n\n gave")
    pipe.threshold = threshold  # type: ignore[attr-defined]
    assert [span.text for span in doc.spans["predicates"]] == ["Mary", "gave"]  # whitespace is no predicate


def small(**settings: Any) -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("semantic_roles", config={"model": SMALL, **settings})
    return nlp


def test_labels() -> None:
    nlp = small()
    pipe = nlp.get_pipe("semantic_roles")
    nlp.initialize(lambda: examples(nlp))
    assert pipe.label_data == ["ARG0", "ARG1", "ARG2", "ARGM-TMP", "V"]
    assert pipe.add_label("V") == 0
    with pytest.raises(ValueError, match="E922"):
        pipe.add_label("ARG9")
    other = small()
    other.get_pipe("semantic_roles").initialize(lambda: examples(other), labels=["V", "ARG0"])
    assert other.get_pipe("semantic_roles").label_data == ["V", "ARG0"]
    with pytest.warns(UnknownLabelWarning, match=r"'semantic_roles' does not have .*: ARG1, ARG2, ARGM-TMP\."):
        other.get_pipe("semantic_roles").update(examples(other), sgd=other.create_optimizer())


def test_labels_that_were_added_need_no_examples() -> None:
    nlp = small()
    pipe = nlp.get_pipe("semantic_roles")
    pipe.add_label("V")
    nlp.initialize()
    assert pipe.labels == ("V",)
    assert nlp("Mary slept").text == "Mary slept"


def test_docs_that_teach_nothing_and_wrong_ones() -> None:
    nlp = small()
    nlp.initialize(lambda: examples(nlp))
    for given in (
        [example("not annotated", None, nlp.vocab), example([], None, nlp.vocab)],
        [example([], None, nlp.vocab)],
    ):
        assert nlp.update(given)["semantic_roles"] == 0
    wrong = example(TEXT, ROLES, nlp.vocab)
    wrong.reference.spans["predicates"] = [wrong.reference[1:3]]
    with pytest.raises(AnnotationError, match="predicate of 2 tokens"):
        nlp.update([wrong])


def test_no_predicates_given_and_none_looked_for() -> None:
    nlp = small(find_predicates=False)
    nlp.initialize(lambda: examples(nlp))
    with pytest.raises(AnnotationError, match="find_predicates is false in the component 'semantic_roles'"):
        nlp("Mary slept")
    assert roles_in(nlp("")) == {}
    doc = doc_with("The dog slept", {}, nlp.vocab)
    assert roles_in(nlp(doc)) == {}


# what it learns from: the tokens of the doc that is processed, which may be others than those that were annotated

LABELS = ["ARG0", "ARG1", "ARG2", "ARGM-TMP", "V"]


def test_targets() -> None:
    given = [example(words, roles) for words, roles in GIVEN] + [example("not annotated", None)]
    flags, rows, tags = targets_of(given, LABELS, 100)
    assert [None if part is None else part.tolist() for part in flags] == [
        [0, 1, 0, 0, 0, 0, 1, 0],
        [0, 0, 1],
        [0, 0, 0],
        None,
    ]
    assert rows == [Row(0, 1, 0, 8), Row(0, 6, 0, 8), Row(1, 2, 0, 3)]
    assert [row.tolist() for row in tags] == [[1, 5, 3, 2, 7, 0, 0, 0], [1, 0, 0, 0, 0, 0, 5, 4], [1, 6, 5]]


def test_targets_of_other_words() -> None:
    doc = doc_with(TEXT, ROLES)
    # "Mar y" is two words, "John a" is one, and so is "left early"
    words, spaces = ["Mar", "y", "gave", "John a", "book", "and", "left early"], [False] + [True] * 6
    (flags,), rows, (tags,) = targets_of([Example(Doc(doc.vocab, words, spaces), doc)], LABELS, 100)
    assert flags is not None
    assert flags.tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert rows == [Row(0, 2, 0, 7)]
    assert tags.tolist() == [1, 6, 5, 0, 0, 0, 0]  # "John" and "a book" are no whole words there


def test_a_predicate_without_roles() -> None:
    """It is known to be a predicate, but its roles are not."""
    one = example("The dog slept", {2: []})
    del one.reference.spans["roles:2"]
    (flags,), rows, _ = targets_of([one], LABELS, 100)
    assert flags is not None
    assert flags.tolist() == [0, 0, 1]
    assert rows == []


def test_tags() -> None:
    labels = ["ARG0", "ARG1", "V"]  # B- tags 1, 2, 3; I- tags 4, 5, 6
    spans = [(0, 2, "ARG0"), (2, 3, "V"), (3, 6, "ARG1"), (6, 7, "ARG1")]
    tags = tags_of(spans, 8, labels)
    assert tags.tolist() == [1, 4, 3, 2, 5, 5, 2, 0]
    assert spans_of(tags, labels) == spans
    outside = [(-3, 1, "ARG0"), (1, 2, "ARGX"), (4, 9, "ARG1"), (9, 10, "V")]
    assert tags_of(outside, 6, labels).tolist() == [1, 0, 0, 0, 2, 5]
    assert spans_of(tags_of([], 0, labels), labels) == []


def is_legal(tags: tuple[int, ...]) -> bool:
    """Whether an I- tag (3, 4) follows its own B- tag (1, 2) or itself."""
    return all(tag <= 2 or before in (tag, tag - 2) for before, tag in zip((0, *tags), tags))


@pytest.mark.parametrize("broken", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_best_of_all_legal_sequences(seed: int, length: int, broken: float) -> None:
    """Scores that are not finite count as the least and the largest."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((length, 5)).astype("f")
    scores[:, 3:] += 1  # so that the best tag of each token alone is often illegal
    values = rng.choice([np.nan, np.inf, -np.inf], scores.shape)
    scores = np.where(rng.random(scores.shape) < broken, values, scores).astype("f")
    finite = np.nan_to_num(scores.astype(float), nan=-1e9, posinf=1e9, neginf=-1e9)
    legal = [tags for tags in product(range(5), repeat=length) if is_legal(tags)]
    best = max(sum(finite[place, tag] for place, tag in enumerate(tags)) for tags in legal)
    tags = tuple(best_tags(scores).tolist())
    assert is_legal(tags)
    assert sum(finite[place, tag] for place, tag in enumerate(tags)) == pytest.approx(best, rel=1e-6)
    assert not best_tags(np.full_like(scores, np.nan)).any()


def test_the_loss_is_that_of_torch() -> None:
    given = [example("a b c", {1: [(0, 2, "V")]}), example("d e", None), example("f g h i", {0: [(1, 4, "ARG0")]})]
    pipe = small().get_pipe("semantic_roles")
    for label in ("ARG0", "V"):  # tags: O, B-ARG0, B-V, I-ARG0, I-V
        pipe.add_label(label)  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    logits = [rng.standard_normal((length, 1)).astype("f") for length in (3, 2, 4)]
    roles = [5 * rng.standard_normal((length, 5)).astype("f") for length in (3, 4)]
    loss, gradients = pipe.get_loss(given, RoleScores(logits, roles))  # type: ignore[attr-defined]

    tensors = [torch.tensor(array, requires_grad=True) for array in (*logits, *roles)]
    entropy = F.binary_cross_entropy_with_logits(tensors[0][:, 0], torch.tensor([0.0, 1, 0]), reduction="sum")
    entropy += F.binary_cross_entropy_with_logits(tensors[2][:, 0], torch.tensor([1.0, 0, 0, 0]), reduction="sum")
    for tensor, tags in zip(tensors[3:], ([2, 4, 0], [0, 1, 3, 3])):
        entropy += F.cross_entropy(tensor, torch.tensor(tags), reduction="sum")
    (entropy / 2).backward()  # two docs are annotated, and there are two rows
    np.testing.assert_allclose(loss, entropy.item() / 2, rtol=1e-5)
    for array, tensor in zip([*gradients.predicates, *gradients.roles], tensors):
        np.testing.assert_allclose(array, 0 if tensor.grad is None else tensor.grad, atol=1e-6)
    loss, gradients = pipe.get_loss([given[1]], RoleScores(logits[1:2], []))  # type: ignore[attr-defined]
    assert loss == 0
    assert not gradients.predicates[0].any()
