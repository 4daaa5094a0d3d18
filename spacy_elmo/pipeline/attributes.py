"""The extension attributes `token._.elmo`, `doc._.elmo_layers` and so on, and the hooks behind `.vector`.

The attributes read what is stored on a doc (models/doc_layers.py), which spaCy writes and sends to processes with the
doc. It does so without the hooks that make `.vector` and `.similarity` ELMo's: `restore_vectors` sets them again.
"""

import keyword
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any, overload

import numpy as np
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore
from thinc.types import FloatsXd

from ..errors import NotEmbeddedError, SettingsError, shown
from ..models.doc_layers import LAYERS, VECTORS, has_values, layers_of, mean_vector, not_embedded, remove, vectors_of

Part = Doc | Span | Token


def _get(part: Part, *, attr: str, read: Callable[..., Any]) -> Any:
    if isinstance(part, Token):
        return read(part.doc[part.i : part.i + 1], attr=attr)[..., 0, :]
    return read(part, attr=attr)


def _set(part: Part, value: Any, *, attr: str) -> None:
    """Free what is stored on a doc if the value is None. Without a setter spaCy would ignore other values."""
    if not isinstance(part, Doc):
        raise SettingsError(
            f"the attributes of tokens and spans can't be set. To free the layers of a doc, set doc._.{attr} to None."
        )
    if value is not None:
        raise SettingsError(
            f"doc._.{attr} can only be set to None, which frees the layers. Got {type(value).__name__}."
        )
    remove(part, attr)


# by the suffix of the attribute's name
READERS: dict[str, Callable[..., Any]] = {VECTORS: vectors_of, LAYERS: layers_of}


def register(attr: str) -> None:
    """Set the extensions for `attr` on Token, Span and Doc. Raises SettingsError if the name can't be used."""
    if not attr.isidentifier():
        raise SettingsError(
            f"attr is {attr!r}. Expected a Python identifier, since it names the attributes doc._.{attr} and so on."
        )
    if keyword.iskeyword(attr) or attr.startswith("_") or hasattr(Underscore, attr):
        raise SettingsError(f"attr is {attr!r}, a name that spaCy or Python uses itself. Set attr to another name.")
    for owner, (suffix, read) in product((Token, Span, Doc), READERS.items()):
        name = attr + suffix
        if owner.has_extension(name) and getattr(owner.get_extension(name)[2], "func", None) is not _get:
            raise SettingsError(
                f"attr is {attr!r}, but {owner.__name__}._.{name} was set by something else. Set attr to another "
                "name, or remove that extension."
            )
        getter, setter = partial(_get, attr=attr, read=read), partial(_set, attr=attr)
        owner.set_extension(name, getter=getter, setter=setter, force=True)


# The hooks that make `.vector` and `.similarity` ELMo's


def set_vector_hooks(doc: Doc, attr: str) -> None:
    """Set the hooks on a doc that has vectors under attr, and on its spans and tokens.

    `doc.tensor`, which spaCy keeps better, would not do: spaCy prefers static vectors to it, counts whitespace, finds a
    word like itself in any context (1.0), and hands it to a Tok2VecListener.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks["vector"] = partial(_vector, attr=attr)
        hooks["has_vector"] = partial(_has_vector, attr=attr)
        hooks["similarity"] = _similarity
    doc.user_hooks["vector_norm"] = partial(_norm, attr=attr)  # spaCy's would be that of the tokens' norms


def _vector(part: Part, *, attr: str) -> Any:
    return _get(part, attr=attr, read=vectors_of) if isinstance(part, Token) else mean_vector(part, attr=attr)


def _has_vector(part: Part, *, attr: str) -> bool:
    """Whether the part contains words and the doc has vectors that are not zero."""
    tokens = [part] if isinstance(part, Token) else part
    try:
        return any(not token.is_space for token in tokens) and bool(_vector(part, attr=attr).any())
    except NotEmbeddedError:
        return False


def _norm(doc: Doc, *, attr: str) -> float:
    vector: Any = mean_vector(doc, attr=attr)
    return float((vector**2).sum() ** 0.5)


def _similarity(part: Part, other: Part) -> float:
    """Return the cosine of two vectors; 0 if one is zero. Raises SettingsError if their widths differ."""
    a: Any = part.vector
    try:
        b: Any = other.vector
    except ValueError:  # a lexeme of a vocabulary without vectors
        b = np.zeros(0, "f")
    if a.shape != b.shape:
        raise SettingsError(
            f"this has an ELMo vector of width {a.shape[0]}, but what it is compared with has a vector of width "
            f"{b.shape[0]}. Run the same pipe on both; a lexeme, nlp.vocab[word], has no ELMo vector. If a doc was "
            "written, or sent by another process, call spacy_elmo.restore_vectors(doc)."
        )
    norms = float((a**2).sum() ** 0.5) * float((b**2).sum() ** 0.5)
    return float(np.clip(float(a @ b) / norms, -1.0, 1.0)) if norms else 0.0


@overload
def restore_vectors(docs: Doc, attr: str = "elmo") -> Doc: ...


@overload
def restore_vectors(docs: Iterable[Doc], attr: str = "elmo") -> Iterator[Doc]: ...


def restore_vectors(docs: Doc | Iterable[Doc], attr: str = "elmo") -> Doc | Iterator[Doc]:
    """Make `.vector`, `.has_vector`, `.vector_norm` and `.similarity` of docs and their parts come from ELMo again.

    Docs from a DocBin, from Doc.from_bytes, from Doc.from_docs and from nlp.pipe with n_process need it: spaCy loses
    their hooks, and often says so (W109).

    docs: a doc that an elmo pipe has annotated, or a stream of such docs, such as nlp.pipe(texts, n_process=2), which
        are returned as they were given. Raises NotEmbeddedError if a doc has no vectors under attr.
    """
    register(attr)  # a process that only reads docs has no pipe that would have done this
    return _restored(docs, attr) if isinstance(docs, Doc) else (_restored(doc, attr) for doc in docs)


def _restored(doc: Doc, attr: str) -> Doc:
    if not isinstance(doc, Doc):
        raise SettingsError(f"restore_vectors was given {shown(doc)}. Expected a Doc, or a stream of docs.")
    if not has_values(doc, attr=attr):
        raise not_embedded(doc, attr)
    set_vector_hooks(doc, attr)
    return doc


def tfhub_outputs(doc: Doc, attr: str = "elmo") -> dict[str, FloatsXd]:
    """Return the outputs of TF-Hub's ELMo module (google/elmo/3) for a doc, under the module's names.

    word_emb: *Shape:* (tokens, width / 2), the character encoder's vectors, which layer 0 contains twice.
    lstm_outputs1, lstm_outputs2, and so on for each LSTM layer: *Shape:* (tokens, width).
    elmo: *Shape:* (tokens, width), the mix of the layers (see the setting scalar_mix_parameters).
    default: *Shape:* (width,), the mean of `elmo` over the tokens that are not whitespace; zeros if there are none.

    Raises NotEmbeddedError if the doc has no layers under attr.
    """
    register(attr)
    layers, elmo = doc._.get(f"{attr}_layers"), doc._.get(attr)
    outputs = {"word_emb": layers[0, :, : layers.shape[2] // 2]}
    outputs |= {f"lstm_outputs{k}": layers[k] for k in range(1, len(layers))}
    return outputs | {"elmo": elmo, "default": mean_vector(doc, attr=attr)}
