"""Predicates and roles in `doc.spans`."""

import pytest
from role_cases import GIVEN, doc_with, roles_in
from spacy.tokens import Doc, DocBin, Span

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.roles import roles_table
from spacy_elmo.tasks.roles.annotations import annotate, given_predicates, predicates_of, roles_of, was_found

WORDS, ROLES = GIVEN[0]


def test_reading() -> None:
    doc = doc_with(WORDS, ROLES)
    assert predicates_of(doc) == given_predicates(doc) == [1, 6]
    assert [(span.text, span.label_) for span in roles_of(doc, 6) or ()] == [
        ("Mary", "ARG0"),
        ("left", "V"),
        ("early", "ARGM-TMP"),
    ]
    assert predicates_of(doc_with(WORDS, None)) is None
    assert roles_of(doc, 3) is None


def test_writing_in_the_place_of_what_is_there() -> None:
    doc = doc_with(WORDS, None)
    annotate(doc, {1: [(1, 2, "V")], 6: []}, found=True)
    annotate(doc, {6: [(0, 1, "ARG0")]}, found=True)
    assert roles_in(doc) == {6: [(0, 1, "ARG0")]}
    assert sorted(doc.spans) == ["predicates", "roles:6"]
    assert was_found(doc)
    assert given_predicates(doc) is None


def test_spacys_files_keep_them() -> None:
    doc = doc_with(WORDS, None)
    annotate(doc, dict(ROLES), found=True)
    (packed,) = DocBin(docs=[doc]).get_docs(doc.vocab)
    for copy in (packed, Doc(doc.vocab).from_bytes(doc.to_bytes())):
        assert roles_in(copy) == ROLES
        assert was_found(copy)


def wrong_docs() -> list[tuple[Doc, str]]:
    long = doc_with(WORDS, {})
    long.spans["predicates"] = [long[1:3]]
    alone = doc_with(WORDS, ROLES)
    del alone.spans["predicates"]
    other = doc_with(WORDS, ROLES)
    other.spans["predicates"] = [other[1:2]]
    unnamed = doc_with(WORDS, ROLES)
    unnamed.spans["roles:1"] = [unnamed[0:1]]
    twice = doc_with(WORDS, ROLES)
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
