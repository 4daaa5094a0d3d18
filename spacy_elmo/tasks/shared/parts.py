"""Docs that hold several texts, such as a premise and a hypothesis: making them, and finding the texts in them."""

from collections.abc import Sequence

from spacy.language import Language
from spacy.tokens import Doc, Span

from ...errors import AnnotationError, Errors, shown
from ...models.parts import has_parts, lines_of


def make_doc(nlp: Language, texts: Sequence[str], keys: Sequence[str]) -> Doc:
    """Return a doc of several texts, a line break between them, each of them a span of `doc.spans`; an empty text none.

    A line break inside a text becomes a blank, except in the last text: it would end the text if the doc is read from
    a file by spaCy, which restores words but no spans.

    nlp: pipeline, whose tokenizer is used.
    texts: the texts.
    keys: key of each text in `doc.spans`.

    Raises AnnotationError if a text is no string.
    """
    for key, text in zip(keys, texts):
        if not isinstance(text, str):
            raise AnnotationError(Errors.PART_TEXT.format(key=key, got=shown(text)))
    doc = nlp.make_doc("\n".join([*(text.replace("\n", " ") for text in texts[:-1]), texts[-1]]))
    start = 0
    for key, text in zip(keys, texts):
        tokens = [token for token in doc if start <= token.idx and token.idx + len(token) <= start + len(text)]
        # spaCy can't copy a doc with an empty span
        doc.spans[key] = [doc[tokens[0].i : tokens[-1].i + 1]] if tokens else []
        start += len(text) + 1
    return doc


def parts_of(doc: Doc, keys: Sequence[str]) -> list[Span] | None:
    """Return a doc's spans under given keys; of a doc without such span groups, the parts between its line breaks.

    doc: the doc.
    keys: a key of `doc.spans` for each part.

    Returns None if the doc has no words, or one of the parts has none; its span group may then be empty.

    Raises AnnotationError if some span groups are missing or have several spans, or if all are and there are no line
    breaks.
    """
    names = ", ".join(map(repr, keys))
    if has_parts(doc, keys):
        counts = [len(doc.spans[key]) if key in doc.spans else None for key in keys]
        if any(count not in (0, 1) for count in counts):
            raise AnnotationError(Errors.PART_SPANS.format(keys=names, got=counts, text=shown(doc.text)))
        parts = [span for key in keys for span in doc.spans[key]]
    else:
        parts = lines_of(doc, len(keys))
        if len(parts) < len(keys) and any(not token.is_space for token in doc):
            raise AnnotationError(Errors.PART_LINES.format(keys=names, text=shown(doc.text)))
    if len(parts) < len(keys) or not all(part.text.strip() for part in parts):
        return None
    return parts
