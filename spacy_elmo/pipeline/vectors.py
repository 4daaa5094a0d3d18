"""`.vector`, `.has_vector`, `.vector_norm` and `.similarity` of tokens, spans and docs from ELMo.

spaCy's own `vector_norm` of a span calls its vector, so that hook is left alone.
"""

from functools import partial
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, Token

from ..errors import Errors, NotEmbeddedError, SettingsError
from .attributes import has_values, mean_vector, register

Part = Doc | Span | Token


def _vector(part: Part, *, attr: str) -> Any:
    """A token's vector; of spans and docs the mean over tokens but for whitespace, which the biLM does not see.

    *Shape:* (width,), zeros where there is nothing to read.
    """
    if isinstance(part, Token):
        return part._.get(attr)
    return mean_vector(part, attr=attr)


def _has_vector(part: Part, *, attr: str) -> bool:
    """Whether there are words in it and their vectors on the doc."""
    tokens = [part] if isinstance(part, Token) else part
    try:
        return any(not token.is_space for token in tokens) and bool(_vector(part, attr=attr).any())
    except NotEmbeddedError:
        return False


def _norm(part: Part, *, attr: str) -> float:
    return float((_vector(part, attr=attr) ** 2).sum() ** 0.5)


def _similarity(part: Part, other: Part) -> float:
    """Cosine; 0 where a vector is zero. Raises SettingsError where the other's vector is not of this kind."""
    a: Any = part.vector
    try:
        b: Any = other.vector
    except ValueError:  # a lexeme's, of a vocabulary without vectors
        b = np.zeros(0, "f")
    if a.shape != b.shape:
        raise SettingsError(Errors.OTHER_VECTORS.format(width=a.shape[0], got=b.shape[0]))
    norms = float((a**2).sum() ** 0.5) * float((b**2).sum() ** 0.5)
    return float(np.clip(float(a @ b) / norms, -1.0, 1.0)) if norms else 0.0


def set_vector_hooks(doc: Doc, attr: str) -> None:
    """Hooks do not survive serialisation, by spaCy's design."""
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks["vector"] = partial(_vector, attr=attr)
        hooks["has_vector"] = partial(_has_vector, attr=attr)
        hooks["similarity"] = _similarity
    for hooks in (doc.user_hooks, doc.user_token_hooks):
        hooks["vector_norm"] = partial(_norm, attr=attr)


def restore_vectors(doc: Doc, attr: str = "elmo") -> Doc:
    """Make `.vector`, `.has_vector`, `.vector_norm` and `.similarity` of a doc and its parts come from ELMo again.

    For docs that lost them, since spaCy does not keep hooks in bytes: docs out of a DocBin, Doc.from_bytes or
    nlp.pipe with n_process. attr: the pipe's setting. Returns the doc.

    Raises NotEmbeddedError where the doc has no vectors under `attr`.
    """
    register(attr)  # a process that only reads docs has no pipe that did
    if not has_values(doc, attr=attr):
        raise NotEmbeddedError(Errors.NOT_EMBEDDED.format(attr=attr))
    set_vector_hooks(doc, attr)
    return doc
