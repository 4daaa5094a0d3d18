"""Hooks by which `.vector`, `.has_vector`, `.vector_norm` and `.similarity` of tokens, spans and docs come from ELMo.

A span's `vector_norm` needs no hook, because spaCy computes it from the span's vector.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, overload

import numpy as np
from spacy.tokens import Doc, Span, Token

from ..errors import Errors, NotEmbeddedError, SettingsError
from .attributes import mean_vector, register
from .storage import has_values

Part = Doc | Span | Token


def _vector(part: Part, *, attr: str) -> Any:
    """Return a token's vector, or the mean over the tokens of a span or doc without whitespace tokens.

    *Shape:* (width,), zeros if there are only whitespace tokens.
    """
    if isinstance(part, Token):
        return part._.get(attr)
    return mean_vector(part, attr=attr)


def _has_vector(part: Part, *, attr: str) -> bool:
    """Whether the part contains words and the doc has vectors that are not zero."""
    tokens = [part] if isinstance(part, Token) else part
    try:
        return any(not token.is_space for token in tokens) and bool(_vector(part, attr=attr).any())
    except NotEmbeddedError:
        return False


def _norm(part: Part, *, attr: str) -> float:
    return float((_vector(part, attr=attr) ** 2).sum() ** 0.5)


def _similarity(part: Part, other: Part) -> float:
    """Return the cosine of two vectors; 0 if a vector is zero. Raises SettingsError if their widths differ."""
    a: Any = part.vector
    try:
        b: Any = other.vector
    except ValueError:  # a lexeme of a vocabulary without vectors
        b = np.zeros(0, "f")
    if a.shape != b.shape:
        raise SettingsError(Errors.OTHER_VECTORS.format(width=a.shape[0], got=b.shape[0]))
    norms = float((a**2).sum() ** 0.5) * float((b**2).sum() ** 0.5)
    return float(np.clip(float(a @ b) / norms, -1.0, 1.0)) if norms else 0.0


def set_vector_hooks(doc: Doc, attr: str) -> None:
    """Set the hooks on a doc, its spans and its tokens. spaCy does not serialise hooks.

    doc: a doc that an elmo pipe has annotated.
    attr: the setting `attr` of this pipe.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks["vector"] = partial(_vector, attr=attr)
        hooks["has_vector"] = partial(_has_vector, attr=attr)
        hooks["similarity"] = _similarity
    for hooks in (doc.user_hooks, doc.user_token_hooks):
        hooks["vector_norm"] = partial(_norm, attr=attr)


@overload
def restore_vectors(docs: Doc, attr: str = "elmo") -> Doc: ...


@overload
def restore_vectors(docs: Iterable[Doc], attr: str = "elmo") -> Iterator[Doc]: ...


def restore_vectors(docs: Doc | Iterable[Doc], attr: str = "elmo") -> Doc | Iterator[Doc]:
    """Make `.vector`, `.has_vector`, `.vector_norm` and `.similarity` of docs and their parts come from ELMo again.

    Docs from a DocBin, from Doc.from_bytes, from Doc.from_docs and from nlp.pipe with n_process need it, because spaCy
    does not copy their hooks.

    docs: a doc that an elmo pipe has annotated, or a stream of such docs, such as nlp.pipe(texts, n_process=2).
    attr: the setting `attr` of this pipe.

    Returns the doc, or the docs one after the other. Raises NotEmbeddedError if a doc has no vectors under attr.
    """
    register(attr)  # a process that only reads docs has no pipe that would have done this
    if not isinstance(docs, Doc):
        return (restore_vectors(doc, attr) for doc in docs)
    if not has_values(docs, attr=attr):
        raise NotEmbeddedError(Errors.NOT_EMBEDDED.format(attr=attr))
    set_vector_hooks(docs, attr)
    return docs
