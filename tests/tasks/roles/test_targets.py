"""Targets for the tokens of the doc that is processed, which may be others than those that were annotated."""

from role_cases import GIVEN, doc_with, example
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.tasks.roles.component import labels_in, targets_of
from spacy_elmo.tasks.roles.model import Row

LABELS = ["ARG0", "ARG1", "ARG2", "ARGM-TMP", "V"]


def test_targets() -> None:
    examples = [example(words, roles) for words, roles in GIVEN] + [example("not annotated", None)]
    targets = targets_of(examples, LABELS, 100)
    flags = [None if part is None else part.tolist() for part in targets.predicates]
    assert flags == [[0, 1, 0, 0, 0, 0, 1, 0], [0, 0, 1], [0, 0, 0], None]
    assert targets.rows == [Row(0, 1, 0, 8), Row(0, 6, 0, 8), Row(1, 2, 0, 3)]
    assert [tags.tolist() for tags in targets.tags] == [[1, 5, 3, 2, 7, 0, 0, 0], [1, 0, 0, 0, 0, 0, 5, 4], [1, 6, 5]]
    assert labels_in(examples[0]) == set(LABELS)
    assert labels_in(examples[3]) == set()


def test_other_words() -> None:
    words, roles = GIVEN[0]
    doc = doc_with(words, roles)
    # "Mar y" is two words, "John a" is one, and so is "left early"
    other = Doc(
        doc.vocab, words=["Mar", "y", "gave", "John a", "book", "and", "left early"], spaces=[False] + [True] * 6
    )
    targets = targets_of([Example(other, doc)], LABELS, 100)
    assert targets.predicates[0] is not None
    assert targets.predicates[0].tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert targets.rows == [Row(0, 2, 0, 7)]
    assert targets.tags[0].tolist() == [1, 6, 5, 0, 0, 0, 0]  # "John" and "a book" are no whole words there


def test_a_predicate_without_roles() -> None:
    """It is known to be a predicate, but its roles are not."""
    one = example("The dog slept", {2: []})
    del one.reference.spans["roles:2"]
    targets = targets_of([one], LABELS, 100)
    assert targets.predicates[0] is not None
    assert targets.predicates[0].tolist() == [0, 0, 1]
    assert targets.rows == []
