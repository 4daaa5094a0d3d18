"""Reads the words and the labels of annotated corpora."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.tokens import Doc, Span
from spacy.training.converters.conllu_to_docs import conllu_to_docs, has_ner

from ...corpus.reading import read_items
from ...errors import CorpusError, ElmoError, Errors, shown
from ...formats.text.docbin import damaged, docs_in, sentences_of
from ...formats.text.lines import Unusable, decode_line
from ...formats.text.sources import find_files, kind_of
from .attributes import Getter

DOCBIN, CONLLU = ".spacy", ".conllu"
_COLUMNS = 10
_CHARACTERS = 100_000  # of CoNLL-U that spaCy's reader gets at a time; it makes a vocabulary each time
_ENTITY = "^((?:name|NE)=)?([BILU])-([A-Z_]+)|O$"  # in the last column of CoNLL-U; from spaCy's conllu_to_docs
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
    for words, labels in islice(_labelled_sentences(_files(source), attribute, getter), limit):
        if words:
            corpus.sentences.append(words)
            corpus.labels.extend(labels)
    if not corpus.sentences:
        raise CorpusError(Errors.PROBE_EMPTY.format(source=source))
    if not any(corpus.labels):
        raise CorpusError(Errors.PROBE_ABSENT.format(source=source, attribute=shown(attribute)))
    return corpus


def _labelled_sentences(files: Iterable[Path], attribute: str, getter: Getter) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the words and the labels of each sentence.

    Raises CorpusError if a file is damaged or of another kind, or unpacks to more than docs would, and what the getter
    raises.
    """
    for path in files:
        kind = kind_of(path)
        if kind not in (DOCBIN, CONLLU):
            raise CorpusError(Errors.PROBE_KIND.format(path=path))
        try:
            found = _docbin_sentences(path) if kind == DOCBIN else _conllu_sentences(path, attribute.startswith("ent"))
            for sentence in found:
                tokens = [token for token in sentence if not token.is_space]
                yield [token.text for token in tokens], list(map(getter, tokens))
        except ElmoError:
            raise
        except Exception as error:  # a damaged file fails anywhere in spaCy, even if an attribute is read
            raise damaged(path, error) from error


def _docbin_sentences(path: Path) -> Iterator[Span]:
    for doc in docs_in(path, annotated=True):
        yield from sentences_of(doc)


def _conllu_sentences(path: Path, entities: bool) -> Iterator[Doc]:
    """Yield the sentences of a .conllu file. Some are read at a time: spaCy's reader holds all words of a text.

    entities: whether they are wanted. Then the file is read twice, because spaCy looks for them in all of a text, and
        if there is one, other words are outside of entities.
    """
    has_entities = entities and any(has_ner(text, _ENTITY) for text, *_ in _conllu_texts(path))
    for text, blocks, lines in _conllu_texts(path):
        vocab = spacy.blank("xx").vocab  # spaCy's reader has one that knows nothing of the form of words
        docs = conllu_to_docs(text, n_sents=1, no_print=True)
        for block, line in zip(blocks, lines):
            try:
                doc = next(docs)
            except (
                ValueError,
                LookupError,
                TypeError,
            ) as error:  # a value that spaCy does not know
                raise CorpusError(Errors.PROBE_LINE.format(source=path, line=line, reason=error)) from error
            _remove_missing(doc, block)
            if has_entities and not doc.has_annotation("ENT_IOB"):
                doc.set_ents([], default="outside")
            # all of the block: spaCy would cut a sentence at each root, and without heads each word is one
            yield Doc(vocab).from_bytes(doc.to_bytes())


def _conllu_texts(path: Path) -> Iterator[tuple[str, list[str], list[int]]]:
    """Yield parts of a .conllu file, as spaCy's reader expects them, their sentences, and the lines of these."""
    blocks: list[str] = []
    lines: list[int] = []
    size = 0
    for item in read_items([path]):
        try:
            text = decode_line(item.data, item.line)
            found = _plain_blocks(text)
        except Unusable as error:
            raise CorpusError(Errors.PROBE_LINE.format(source=path, line=item.line, reason=error)) from error
        blocks += found
        lines += [item.line] * len(found)
        size += len(text)
        if blocks and size >= _CHARACTERS:
            yield _joined(blocks), blocks, lines
            blocks, lines, size = [], [], 0
    if blocks:
        yield _joined(blocks), blocks, lines


def _joined(blocks: list[str]) -> str:
    return "".join(f"{block}\n\n" for block in blocks)


def _plain_blocks(text: str) -> list[str]:
    """Return the sentences of CoNLL-U, which blank lines separate, with LF and without comments.

    Raises Unusable if a line does not have 10 columns.
    """
    lines = ["" if line.isspace() else line for line in text.replace("\r\n", "\n").split("\n") if line[:1] != "#"]
    for line in lines:
        if line and line.count("\t") != _COLUMNS - 1:
            raise Unusable(f"no line of CoNLL-U, which has {_COLUMNS} columns divided by tabs: {shown(line)}")
    return ["\n".join(block) for filled, block in groupby(lines, bool) if filled]


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
