"""Hooks by which `.vector`, `.has_vector`, `.vector_norm` and `.similarity` of tokens, spans and docs come from ELMo.

A span's `vector_norm` needs no hook, because spaCy computes it from the span's vector.
"""

import multiprocessing
import warnings
from functools import partial
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, Token

from ..errors import Errors, LostVectorsWarning, NotEmbeddedError, SettingsError
from .attributes import mean_vector, token_vector
from .storage import hooks_of, note_hooks

Part = Doc | Span | Token


def _vector(part: Part, *, attr: str) -> Any:
    """Return a token's vector, or the mean over the tokens of a span or doc without whitespace tokens.

    *Shape:* (width,), zeros if there are only whitespace tokens.
    """
    if isinstance(part, Token):
        return token_vector(part, attr=attr)
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
    if isinstance(other, Part):
        restore_lost_hooks(other)
    try:
        b: Any = other.vector
    except ValueError:  # a lexeme of a vocabulary without vectors
        b = np.zeros(0, "f")
    if a.shape != b.shape:
        raise SettingsError(Errors.OTHER_VECTORS.format(width=a.shape[0], got=b.shape[0]))
    norms = float((a**2).sum() ** 0.5) * float((b**2).sum() ** 0.5)
    return float(np.clip(float(a @ b) / norms, -1.0, 1.0)) if norms else 0.0


def set_vector_hooks(doc: Doc, attr: str) -> None:
    """Set the hooks on a doc, its spans and its tokens, and note on the doc that it has them.

    doc: a doc that an elmo pipe has annotated.
    attr: the setting `attr` of this pipe.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks["vector"] = partial(_vector, attr=attr)
        hooks["has_vector"] = partial(_has_vector, attr=attr)
        hooks["similarity"] = _similarity
    for hooks in (doc.user_hooks, doc.user_token_hooks):
        hooks["vector_norm"] = partial(_norm, attr=attr)
    note_hooks(doc, attr)


def restore_lost_hooks(part: Part) -> None:
    """Set the hooks again if the doc had them and lost them. spaCy does not write or send hooks.

    Nothing happens if the doc has hooks of anybody.

    part: a doc, or a part of one.
    """
    doc = part if isinstance(part, Doc) else part.doc
    if "vector" not in doc.user_token_hooks and (attr := hooks_of(doc)) is not None:
        set_vector_hooks(doc, attr)


def warn_in_worker() -> None:
    """Issue a LostVectorsWarning if multiprocessing has started this process: its docs will be sent without hooks."""
    if multiprocessing.parent_process() is not None:
        warnings.warn(Errors.HOOKS_LOST, LostVectorsWarning, stacklevel=2)
