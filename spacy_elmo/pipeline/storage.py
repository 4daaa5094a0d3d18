"""Where the values of the extension attributes are stored: plain arrays in doc.user_data.

Each key ends in a place in the text: 0 for a doc that a pipe has annotated. spaCy moves such places when it copies user
data to another doc. So in `span.as_doc(copy_user_data=True)` the place is below 0, and in `Doc.from_docs` there is a
block for each doc, at the place where its text starts.
"""

from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import IDX, LENGTH, ORTH
from spacy.tokens import Doc, Span

# suffixes of the keys. The last two cannot be part of an attribute's name, so that no other pipe uses the same keys
LAYERS, VECTORS, MIX, TOKENS = "_layers", "", ":mix", ":tokens"
# suffix of the key that says that a pipe has run but stores nothing
NOTHING = ":nothing"
# name of the value that says under which attr `.vector` is ELMo's
HOOKS = ":hooks"


class Block(NamedTuple):
    """What is stored of one doc.

    start: place of the doc's text in the text of the doc on which it is stored, in characters.
    tokens: *Shape:* (tokens, 3), uint64, what `tokens_of` returned for the doc.
    layers: *Shape:* (layers, tokens, width); None if only vectors are stored.
    mix: *Shape:* (layers,), the weights of the mix; None if only vectors are stored.
    vectors: *Shape:* (tokens, width); None if layers are stored.
    """

    start: int
    tokens: Any
    layers: Any
    mix: Any
    vectors: Any


def key(attr: str, suffix: str, start: int | None = 0) -> Any:
    """Return spaCy's key of an extension value. (spaCy's type stub expects strings.)

    attr: name of the extension attributes.
    suffix: LAYERS, VECTORS, MIX, TOKENS, NOTHING or HOOKS.
    start: place in the text, in characters; None for docs that version 0.1.0 wrote.
    """
    return ("._.", attr + suffix, start, None)


def tokens_of(part: Doc | Span) -> Any:
    """Return what identifies each token: its text's hash, its place in the text and its length in characters.

    part: the doc or span.

    Returns *Shape:* (tokens, 3), uint64. If they differ from those of the embedded doc, the tokens have changed.
    """
    array: Any = part.to_array([ORTH, IDX, LENGTH])  # type: ignore[union-attr]  # missing in the stub of Span
    return array


def _starts(doc: Doc, attr: str, *suffixes: str) -> set[int | None]:
    """Return the places at which the doc has values with one of these suffixes."""
    names = {attr + suffix for suffix in suffixes}
    keys: Any = doc.user_data  # spaCy's type stub expects strings
    keys = (key for key in keys if isinstance(key, tuple) and len(key) == 4)
    return {start for kind, name, start, end in keys if kind == "._." and name in names and end is None}


def blocks_of(doc: Doc, attr: str) -> list[Block]:
    """Return all blocks of a doc that are complete.

    doc: any doc.
    attr: name of the extension attributes.
    """
    blocks = []
    for start in _starts(doc, attr, TOKENS):
        tokens: Any = doc.user_data[key(attr, TOKENS, start)]
        layers, weights, vectors = (doc.user_data.get(key(attr, suffix, start)) for suffix in (LAYERS, MIX, VECTORS))
        values: Any = layers if vectors is None else vectors
        if values is None or (vectors is None and weights is None) or values.shape[-2] != len(tokens):
            continue
        if tokens.shape[1] == 2:  # version 0.1.0 stored no lengths
            tokens = np.pad(tokens, ((0, 0), (0, 1)))
        blocks.append(Block(start or 0, tokens, layers, weights, vectors))
    return blocks


def has_values(doc: Doc, *, attr: str) -> bool:
    """Whether layers or vectors are stored on the doc.

    doc: any doc.
    attr: name of the extension attributes.
    """
    stored = doc.user_data
    if key(attr, LAYERS) in stored or key(attr, VECTORS) in stored:
        return True
    return bool(stored) and bool(_starts(doc, attr, LAYERS, VECTORS))


def is_not_stored(doc: Doc, attr: str) -> bool:
    """Whether a pipe with store = "none" has run on the doc, or on a part of it.

    doc: any doc.
    attr: name of the extension attributes.
    """
    return bool(doc.user_data) and bool(_starts(doc, attr, NOTHING))


def remove(doc: Doc, attr: str) -> None:
    """Remove all that is stored on the doc.

    doc: any doc.
    attr: name of the extension attributes.
    """
    if doc.user_data:
        suffixes = LAYERS, VECTORS, MIX, TOKENS, NOTHING
        for start in _starts(doc, attr, *suffixes):
            for suffix in suffixes:
                doc.user_data.pop(key(attr, suffix, start), None)
        for start in _starts(doc, "", HOOKS):
            if doc.user_data[key("", HOOKS, start)] == attr:
                del doc.user_data[key("", HOOKS, start)]


def note_hooks(doc: Doc, attr: str) -> None:
    """Note that `.vector` of the doc and its parts is read from attr, for those who get the doc without its hooks.

    doc: any doc.
    attr: name of the extension attributes.
    """
    doc.user_data[key("", HOOKS)] = attr


def hooks_of(doc: Doc) -> str | None:
    """Return the name of the extension attributes that `.vector` was read from; None if it was not ELMo's.

    doc: any doc.
    """
    attr: str | None = doc.user_data.get(key("", HOOKS))
    return attr
