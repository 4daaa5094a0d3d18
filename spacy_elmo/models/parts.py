"""The parts of a doc, such as premise and hypothesis: its spans under given keys, or else its lines."""

from collections.abc import Sequence

from spacy.tokens import Doc, Span


def has_parts(doc: Doc, keys: Sequence[str]) -> bool:
    """Return whether a doc has a span group under one of the keys."""
    return any(key in doc.spans for key in keys)


def lines_of(doc: Doc, count: int) -> list[Span]:
    """Divide a doc at its first whitespace tokens with a line break. These are in no part.

    spaCy's corpus reader keeps the words of a doc but not its spans; so what divides the parts must be in the text.

    doc: the doc.
    count: number of parts at most. Line breaks after the last division belong to the last part.
    """
    breaks = [token.i for token in doc if token.is_space and "\n" in token.text][: count - 1]
    return [doc[start:end] for start, end in zip([0, *(i + 1 for i in breaks)], [*breaks, len(doc)])]
