"""Who did what to whom: `doc.spans["predicates"]`, and `doc.spans["roles:i"]` for the predicate at token i."""

from typing import Any, NamedTuple

from spacy.tokens import Doc, Span, SpanGroup

from ...errors import AnnotationError, shown

__all__ = ["Role", "roles_displacy", "roles_table"]

PREDICATES = "predicates"
VERB = "V"
_ROLES = "roles:"
_FOUND = "found"  # an attribute of the span group


class Role(NamedTuple):
    """A role of a predicate: doc[start:end], such as ARG0 of the predicate `word`, which is at token `predicate`."""

    predicate: int
    word: str
    label: str
    start: int
    end: int
    text: str


def roles_table(doc: Doc) -> list[Role]:
    """Return all roles in a doc, predicate by predicate, in the order of the text. Wrong ones raise AnnotationError."""
    return [
        Role(predicate, doc[predicate].text, span.label_, span.start, span.end, span.text)
        for predicate in predicates_of(doc) or ()
        for span in roles_of(doc, predicate) or ()
    ]


def roles_displacy(doc: Doc) -> list[dict[str, Any]]:
    """Return what displaCy draws, a picture for each predicate. Wrong annotations raise AnnotationError.

    `displacy.render(roles_displacy(doc), style="span", manual=True)` gives HTML.
    """
    spans: dict[int, list[dict[str, Any]]] = {predicate: [] for predicate in predicates_of(doc) or ()}
    for role in roles_table(doc):
        spans[role.predicate].append({"start_token": role.start, "end_token": role.end, "label": role.label})
    return [{"text": doc.text, "tokens": [token.text for token in doc], "spans": own} for own in spans.values()]


def roles_key(predicate: int) -> str:
    """Return the name of the span group with the roles of the predicate at a token."""
    return f"{_ROLES}{predicate}"


def predicates_of(doc: Doc) -> list[int] | None:
    """Return the tokens of a doc's predicates, in order; None: it has none. Roles of other tokens are an error."""
    predicates = _tokens(doc) if PREDICATES in doc.spans else None
    expected = set(map(roles_key, predicates or ()))
    if others := sorted(name for name in doc.spans if name.startswith(_ROLES) and name not in expected):
        raise AnnotationError(
            f'the doc {shown(doc.text)} has the span groups {", ".join(others)}, but doc.spans["predicates"] has no '
            "predicates at these tokens. Add them there, a span of one token each, or remove the groups."
        )
    return predicates


def given_predicates(doc: Doc) -> list[int] | None:
    """Return the tokens of the predicates that somebody gave; None if there are none, or the component found them."""
    # roles of other tokens are no error: they may be left from an earlier run
    return None if PREDICATES not in doc.spans or was_found(doc) else _tokens(doc)


def was_found(doc: Doc) -> bool:
    """Whether the component found the predicates of this doc itself."""
    return PREDICATES in doc.spans and bool(doc.spans[PREDICATES].attrs.get(_FOUND, False))


def _tokens(doc: Doc) -> list[int]:
    """Return the tokens of `doc.spans["predicates"]`, in order."""
    for span in doc.spans[PREDICATES]:
        if len(span) != 1:
            raise AnnotationError(
                f"the doc {shown(doc.text)} has a predicate of {len(span)} tokens, {shown(span.text)}. Expected spans "
                'of one token in doc.spans["predicates"]; other words of it are roles with the label V or C-V.'
            )
    return sorted({span.start for span in doc.spans[PREDICATES]})


def roles_of(doc: Doc, predicate: int) -> list[Span] | None:
    """Return the roles of the predicate at a token, in the order of the text; None: not annotated. They are checked."""
    key = roles_key(predicate)
    if key not in doc.spans:
        return None
    spans = sorted(doc.spans[key], key=lambda span: (span.start, span.end))
    for number, span in enumerate(spans):
        if not span.label:
            raise AnnotationError(
                f"the doc {shown(doc.text)} has a role without a label in doc.spans[{key!r}]: {shown(span.text)}. "
                "Give it one, such as ARG0."
            )
        if number and span.start < spans[number - 1].end:
            names = f"{spans[number - 1].label_} and {span.label_}"
            raise AnnotationError(
                f"the doc {shown(doc.text)} has roles that overlap in doc.spans[{key!r}]: {names}. Expected each "
                "token in one role of a predicate at most."
            )
    return spans


def annotate(doc: Doc, roles: dict[int, list[tuple[int, int, str]]], found: bool) -> None:
    """Write roles to a doc in the place of those that are there, and predicates if the component has found them."""
    for name in [name for name in doc.spans if name.startswith(_ROLES)]:
        del doc.spans[name]
    if found:
        spans = [doc[predicate : predicate + 1] for predicate in roles]
        doc.spans[PREDICATES] = SpanGroup(doc, name=PREDICATES, attrs={_FOUND: True}, spans=spans)
    for predicate, parts in roles.items():
        doc.spans[roles_key(predicate)] = [Span(doc, start, end, label=label) for start, end, label in parts]
