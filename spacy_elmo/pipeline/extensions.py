"""The extension attributes `token._.elmo`, `doc._.elmo_layers` and so on, as spaCy knows them: getters and setters."""

import keyword
import multiprocessing
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, overload

import numpy as np
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore
from thinc.types import Floats1d, Floats2d, Floats3d, FloatsXd

from ..errors import LostVectorsWarning, NotEmbeddedError, SettingsError
from .attributes import (
    LAYERS,
    VECTORS,
    has_values,
    hooks_of,
    layers_of,
    mean_vector,
    not_embedded,
    note_hooks,
    remove,
    token_vector,
    vectors_of,
)

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
        raise SettingsError(
            f"this has an ELMo vector of width {a.shape[0]}, but what it is compared with has a vector of width "
            f"{b.shape[0]}: no ELMo vector, or one of another biLM. Run the same pipe on both; a lexeme, "
            "nlp.vocab[word], stands in no sentence and has no ELMo vector. If a doc was embedded and then "
            "written, or sent by another process, call spacy_elmo.restore_vectors(doc)."
        )
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
        warnings.warn(
            (
                "set_vectors is true in a worker process, such as those of nlp.pipe with n_process. spaCy does not "
                "send what set_vectors sets: in the process that gets the docs, .vector has the shape (0,). There, "
                "iterate over spacy_elmo.restore_vectors(nlp.pipe(...)), or read doc._.elmo before .vector, which "
                "restores it too. A worker can't see whether that is done. If it is, silence this warning before "
                'nlp.pipe with warnings.filterwarnings("ignore", category=spacy_elmo.errors.LostVectorsWarning).'
            ),
            LostVectorsWarning,
            stacklevel=2,
        )


def clear(doc: Doc, value: Any, *, attr: str) -> None:
    """Remove the stored values: the setter of the doc's attributes, as in `doc._.elmo = None`.

    doc: the doc.
    value: None.
    attr: name of the extension attributes.

    Raises SettingsError if value is not None.
    """
    if value is not None:
        raise SettingsError(
            f"doc._.{attr} can only be set to None, which frees the layers. Got {type(value).__name__}."
        )
    remove(doc, attr)


def _refuse(part: Span | Token, value: Any, *, attr: str) -> None:
    """Raise SettingsError: the setter of attributes of tokens and spans. Without one spaCy would ignore the value."""
    raise SettingsError(
        f"the attributes of tokens and spans can't be set. To free the layers of a doc, set doc._.{attr} to None."
    )


def _layers(part: Doc | Span, *, attr: str) -> Floats3d:
    layers = layers_of(part, attr=attr)
    restore_lost_hooks(part)
    return layers


def _vectors(part: Doc | Span, *, attr: str) -> Floats2d:
    vectors = vectors_of(part, attr=attr)
    restore_lost_hooks(part)
    return vectors


def _token_layers(token: Token, *, attr: str) -> Floats2d:
    result: Floats2d = _layers(token.doc[token.i : token.i + 1], attr=attr)[:, 0]
    return result


def _token_vector(token: Token, *, attr: str) -> Floats1d:
    vector = token_vector(token, attr=attr)
    restore_lost_hooks(token)
    return vector


_GETTERS = (
    (Token, VECTORS, _token_vector),
    (Token, LAYERS, _token_layers),
    (Span, VECTORS, _vectors),
    (Span, LAYERS, _layers),
    (Doc, VECTORS, _vectors),
    (Doc, LAYERS, _layers),
)


def register(attr: str) -> None:
    """Set the extensions for `attr` on Token, Span and Doc, unless they are set.

    attr: name of the extension attributes, a Python identifier.

    Raises SettingsError if attr cannot be used as a name, or another package has set an extension of this name.
    """
    if not attr.isidentifier():
        raise SettingsError(
            f"attr is {attr!r}. Expected a Python identifier, since it names the attributes doc._.{attr} and so on."
        )
    if keyword.iskeyword(attr) or attr.startswith("_") or hasattr(Underscore, attr):
        raise SettingsError(f"attr is {attr!r}, a name that spaCy or Python uses itself. Set attr to another name.")
    missing = []
    for owner, suffix, getter in _GETTERS:
        name = attr + suffix
        if not owner.has_extension(name):
            missing.append((owner, name, getter))
        elif getattr(owner.get_extension(name)[2], "func", None) is not getter:
            raise SettingsError(
                f"attr is {attr!r}, but {owner.__name__}._.{name} was set by something else. Set attr to another "
                "name, or remove that extension."
            )
    for owner, name, getter in missing:
        setter = partial(clear if owner is Doc else _refuse, attr=attr)
        owner.set_extension(name, getter=partial(getter, attr=attr), setter=setter)


@overload
def restore_vectors(docs: Doc, attr: str = "elmo") -> Doc: ...


@overload
def restore_vectors(docs: Iterable[Doc], attr: str = "elmo") -> Iterator[Doc]: ...


def restore_vectors(docs: Doc | Iterable[Doc], attr: str = "elmo") -> Doc | Iterator[Doc]:
    """Make `.vector`, `.has_vector`, `.vector_norm` and `.similarity` of docs and their parts come from ELMo again.

    Docs from a DocBin, from Doc.from_bytes, from Doc.from_docs and from nlp.pipe with n_process need it, because spaCy
    does not copy their hooks. Reading `doc._.elmo` or another of the attributes does the same.

    docs: a doc that an elmo pipe has annotated, or a stream of such docs, such as nlp.pipe(texts, n_process=2).
    attr: the setting `attr` of this pipe.

    Returns the doc, or the docs one after the other. Raises NotEmbeddedError if a doc has no vectors under attr.
    """
    register(attr)  # a process that only reads docs has no pipe that would have done this
    if not isinstance(docs, Doc):
        return (restore_vectors(doc, attr) for doc in docs)
    if not has_values(docs, attr=attr):
        raise not_embedded(docs, attr)
    set_vector_hooks(docs, attr)
    return docs


def tfhub_outputs(doc: Doc, attr: str = "elmo") -> dict[str, FloatsXd]:
    """Return the outputs of TF-Hub's ELMo module (google/elmo/3) for a doc, under the module's names.

    doc: a doc that an elmo pipe has annotated.
    attr: the setting `attr` of this pipe.

    Returns a dict with these keys:
    word_emb: *Shape:* (tokens, width / 2), the character encoder's vectors, which layer 0 contains twice.
    lstm_outputs1, lstm_outputs2, and so on for each LSTM layer: *Shape:* (tokens, width).
    elmo: *Shape:* (tokens, width), the mix of the layers (see the setting scalar_mix_parameters).
    default: *Shape:* (width,), the mean of `elmo` over the tokens without whitespace tokens, which TF-Hub's module
        never reads; zeros if there are none.

    Raises NotEmbeddedError if the doc has no layers under attr.
    """
    register(attr)
    layers, elmo = doc._.get(f"{attr}_layers"), doc._.get(attr)
    outputs = {"word_emb": layers[0, :, : layers.shape[2] // 2]}
    outputs |= {f"lstm_outputs{k}": layers[k] for k in range(1, len(layers))}
    return outputs | {"elmo": elmo, "default": mean_vector(doc, attr=attr)}
