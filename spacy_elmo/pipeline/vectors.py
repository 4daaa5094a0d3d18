"""Restores `.vector` and the rest on docs that lost their hooks."""

from collections.abc import Iterable, Iterator
from typing import overload

from spacy.tokens import Doc

from .attributes import not_embedded
from .extensions import register
from .hooks import set_vector_hooks
from .storage import has_values


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
