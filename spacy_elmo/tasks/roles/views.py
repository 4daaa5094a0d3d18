"""Shows the roles in a doc: as a table, and for displaCy."""

from typing import Any, NamedTuple

from spacy.tokens import Doc

from .annotations import predicates_of, roles_of


class Role(NamedTuple):
    """A role of a predicate.

    predicate: index of the predicate's token.
    word: the predicate.
    label: V, ARG0, ARGM-TMP ...
    start, end: the role is doc[start:end].
    text: of the role.
    """

    predicate: int
    word: str
    label: str
    start: int
    end: int
    text: str


def roles_table(doc: Doc) -> list[Role]:
    """Return all roles in a doc, predicate by predicate, in the order of the text.

    doc: that the component has processed, or that has such annotations from elsewhere.

    Raises AnnotationError if the annotations are wrong.
    """
    return [
        Role(predicate, doc[predicate].text, span.label_, span.start, span.end, span.text)
        for predicate in predicates_of(doc) or ()
        for span in roles_of(doc, predicate) or ()
    ]


def roles_displacy(doc: Doc) -> list[dict[str, Any]]:
    """Return what displaCy draws, a picture for each predicate.

    `displacy.render(roles_displacy(doc), style="span", manual=True)` gives HTML.

    doc: that the component has processed, or that has such annotations from elsewhere.

    Raises AnnotationError if the annotations are wrong.
    """
    tokens = [token.text for token in doc]
    return [
        {
            "text": doc.text,
            "tokens": tokens,
            "spans": [
                {"start_token": span.start, "end_token": span.end, "label": span.label_}
                for span in roles_of(doc, predicate) or ()
            ],
        }
        for predicate in predicates_of(doc) or ()
    ]
