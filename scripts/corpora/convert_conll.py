"""Convert entities in two columns (word, tab, BIO tag) to a .spacy file, a doc for each sentence or tweet.

`spacy convert` is not used here: it joins sentences whose separator is not quite empty (WNUT-17's training part has a
tab in it), and stops at lines without a word (Broad Twitter has some). Words keep the blanks inside them; a line
without a word and with the tag O says nothing and is left out, and so is a line that begins with -DOCSTART-. An entity
may begin with I-.

    python -m scripts.corpora.convert_conll btc.train corpus/ner/train.spacy
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError, shown

from ..shared.command import run_command
from ..shared.corpus_files import read_lines, write_docs
from ..shared.messages import Messages

_TAG = re.compile(r"O|[BI]-[^\s,]+")


def read_sentences(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Return words and BIO tags of each sentence. Raises CorpusError, which names the line."""
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*read_lines(path), ""], 1):
        if line.strip() and not line.startswith("-DOCSTART-"):
            word, tag = _word_and_tag(line, path, number)
            if word:
                words.append(word)
                tags.append(tag)
        elif words:
            yield words, tags
            words, tags = [], []


def _word_and_tag(line: str, path: Path, number: int) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) != 2:
        raise CorpusError(Messages.CORPUS_COLUMNS.format(path=path, line=number, got=len(columns)))
    word, tag = (column.strip() for column in columns)
    if not _TAG.fullmatch(tag):
        raise CorpusError(Messages.CORPUS_TAG.format(path=path, line=number, got=shown(tag)))
    if not word and tag != "O":
        raise CorpusError(Messages.CORPUS_NO_WORD.format(path=path, line=number, got=tag))
    return word, tag


def to_docs(path: Path) -> Iterator[Doc]:
    """Return a doc for each sentence. Its spaces are marked as unknown, so that spaCy does not tokenise it again."""
    vocab = Vocab()
    for words, tags in read_sentences(path):
        starts: list[bool | int | None] = [True, *[False] * (len(words) - 1)]
        doc = Doc(vocab, words=words, sent_starts=starts)
        doc.set_ents(biluo_tags_to_spans(doc, iob_to_biluo(tags)), default="outside")
        yield doc


def main(source: Path, target: Path) -> None:
    """Convert SOURCE to TARGET, a .spacy file."""
    write_docs(source, to_docs(source), target)


if __name__ == "__main__":
    run_command(main)
