"""Reads the words and the labels of annotated corpora."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training.converters.conllu_to_docs import conllu_to_docs

from ...errors import CorpusError, ElmoError, Errors, shown
from ...formats.text.docbin import TooLargeError, check_docs_size, docbin_bytes, sentences_of
from ...formats.text.sources import find_files, kind_of
from ...formats.unpacking import unpacked
from .attributes import Getter

DOCBIN, CONLLU = ".spacy", ".conllu"
_EXPECTED = "an annotated corpus: a .spacy or .conllu file, or a folder of such files"


class LabelledCorpus(NamedTuple):
    """The sentences of a corpus.

    sentences: their words.
    labels: of all words, in order; "" for a word without a label.
    """

    sentences: list[list[str]]
    labels: list[str]

    @property
    def words(self) -> list[str]:
        """All words, in order."""
        return [word for sentence in self.sentences for word in sentence]


def read_labelled(source: Path, attribute: str, getter: Getter, limit: int | None = None) -> LabelledCorpus:
    """Read a corpus. Whitespace tokens are left out, because they have no vectors.

    source: a .spacy or .conllu file, perhaps packed, or a folder of such files. A doc without sentence
        boundaries is one sentence.
    attribute: name of the labels, for messages.
    getter: reads the label of a token.
    limit: number of sentences that are read, the first ones; None: all.

    Raises ElmoError if a file can't be read, if there are no words, or if no word has a label.
    """
    corpus = LabelledCorpus([], [])
    limit = limit and min(limit, sys.maxsize)  # islice accepts no larger number
    for sentence in islice(_sentences(_files(source)), limit):
        tokens = [token for token in sentence if not token.is_space]
        if tokens:
            corpus.sentences.append([token.text for token in tokens])
            corpus.labels.extend(map(getter, tokens))
    if not corpus.sentences:
        raise CorpusError(Errors.PROBE_EMPTY.format(source=source))
    if not any(corpus.labels):
        raise CorpusError(Errors.PROBE_ABSENT.format(source=source, attribute=shown(attribute)))
    return corpus


def docs_of(path: Path) -> Iterator[Doc]:
    """Yield the docs of a .spacy file, or the sentences of a .conllu file, with all annotations.

    path: the file, perhaps packed as .gz, .xz or .zst.

    Raises CorpusError if it is damaged, of another kind, or unpacks to more bytes than docs would.
    """
    kind = kind_of(path)
    if kind not in (DOCBIN, CONLLU):
        raise CorpusError(Errors.PROBE_KIND.format(path=path))
    try:
        if kind == DOCBIN:
            data, limit = docbin_bytes(path)
            check_docs_size(data, limit)  # spaCy unpacks all of it at once
            # a language's vocab, since that of Vocab() knows no attributes such as is_title
            yield from DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab)
        else:
            with unpacked(path) as file:
                text = _plain_conllu(file.read().decode("utf-8-sig"))
            for doc, block in zip(conllu_to_docs(text, n_sents=1, no_print=True), text.split("\n\n")):
                _remove_missing(doc, block)
                yield doc
    except ElmoError:
        raise
    except TooLargeError as error:
        raise CorpusError(Errors.SOURCE_DOCS.format(path=path, limit=limit)) from error
    except Exception as error:  # a damaged file fails anywhere in zlib, msgpack, numpy or spaCy
        reason = error if str(error) else type(error).__name__
        raise CorpusError(Errors.SOURCE_DAMAGED.format(path=path, reason=reason)) from error


def _plain_conllu(text: str) -> str:
    """Return CoNLL-U as spaCy's reader expects it: no comments, LF, and one empty line between sentences."""
    lines = ("" if line.isspace() else line for line in text.replace("\r\n", "\n").split("\n") if line[:1] != "#")
    blocks = (list(block) for filled, block in groupby(lines, bool) if filled)
    return "".join("\n".join(block) + "\n\n" for block in blocks)


def _remove_missing(doc: Doc, block: str) -> None:
    """Remove the values that spaCy gives to words without one: the UPOS as XPOS, and "_" as lemma and relation.

    doc: what spaCy made of a sentence, whose words are its words.
    block: the lines of that sentence.
    """
    rows = (line.split("\t") for line in block.split("\n"))
    words = (row for row in rows if row[0].isdecimal())  # not ranges, and no words that are not in the text
    for token, (_, form, lemma, _, xpos, _, _, relation, *_) in zip(doc, words):
        if xpos == "_":
            token.tag_ = ""
        if lemma == "_" != form:
            token.lemma_ = ""
        if relation == "_":
            token.dep_ = ""


def _files(source: Path) -> list[Path]:
    if not source.exists():
        raise CorpusError(Errors.FILE_MISSING.format(path=source, expected=_EXPECTED))
    return find_files(source) if source.is_dir() else [source]


def _sentences(files: Iterable[Path]) -> Iterator[Span]:
    for path in files:
        for doc in docs_of(path):
            # spaCy would cut a sentence of CoNLL-U at each root, and without heads each word is one
            yield from [doc[:]] if kind_of(path) == CONLLU else sentences_of(doc)
