"""The table, and what displaCy draws."""

import pytest
from role_cases import GIVEN, doc_with
from spacy import displacy

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.roles import Role, roles_displacy, roles_table


def test_table() -> None:
    rows = roles_table(doc_with(*GIVEN[0]))
    assert len(rows) == 7
    assert rows[3] == Role(1, "gave", "ARG1", 3, 5, "a book")
    assert rows[-1]._asdict() == {
        "predicate": 6,
        "word": "left",
        "label": "ARGM-TMP",
        "start": 7,
        "end": 8,
        "text": "early",
    }


def test_displacy() -> None:
    pictures = roles_displacy(doc_with(*GIVEN[0]))
    assert [len(picture["spans"]) for picture in pictures] == [4, 3]
    html = displacy.render(pictures, style="span", manual=True, jupyter=False)
    assert html.count("ARGM-TMP") == 1
    assert html.count("ARG0") == 2


@pytest.mark.parametrize("roles", [None, {}])
def test_nothing_to_show(roles: dict[int, list[tuple[int, int, str]]] | None) -> None:
    doc = doc_with("A fine day", roles)
    assert roles_table(doc) == []
    assert roles_displacy(doc) == []


def test_wrong_annotations() -> None:
    doc = doc_with(*GIVEN[0])
    del doc.spans["predicates"]
    with pytest.raises(AnnotationError, match="roles:1, roles:6"):
        roles_table(doc)
