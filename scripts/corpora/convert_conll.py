"""Convert entities in two columns (word, tab, BIO tag) to a .spacy file, a doc for each sentence, tweet or article.

`spacy convert` is not used here: it joins sentences whose separator is not quite empty (WNUT-17's training part has a
tab in it), and stops at lines without a word (Broad Twitter has some). Words keep the blanks inside them; a line
without a word and with the tag O says nothing and is left out, and so is a line that begins with -DOCSTART-, which
begins an article. An entity may begin with I-.

    python -m scripts.corpora.convert_conll btc.train corpus/ner/train.spacy
    python -m scripts.corpora.convert_conll newswire.train.conll articles.spacy --articles
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError

from ..shared import read_lines, run_command, write_docs

SENTENCES = "sentences"  # a span group, because spaCy gives predicted docs no sentences of the corpus
_TAG = re.compile(r"O|[BI]-[^\s,]+")
_ARTICLE = "-DOCSTART-"
Sentence = tuple[list[str], list[str]]


def read_articles(path: Path) -> Iterator[list[Sentence]]:
    """Yield the sentences of each article: words and BIO tags. Raises CorpusError, which names the line."""
    article: list[Sentence] = []
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*read_lines(path), _ARTICLE], 1):
        begins = line.startswith(_ARTICLE)
        if line.strip() and not begins:
            word, _, tag = (part.strip() for part in line.partition("\t"))
            if not _TAG.fullmatch(tag):
                raise CorpusError(
                    f"{path}, line {number}: expected a word, a tab and a tag, which is O, or B- or I- and a type; got "
                    f"{line!r}."
                )
            if word:
                words.append(word)
                tags.append(tag)
            elif tag != "O":
                raise CorpusError(
                    f"{path}, line {number}: the tag {tag} without a word. Expected a word, or the tag O."
                )
            continue
        if words:
            article.append((words, tags))
            words, tags = [], []
        if article and begins:
            yield article
            article = []


def to_docs(path: Path, *, articles: bool = False) -> Iterator[Doc]:
    """Yield a doc for each sentence, or for each article with a span group of its sentences.

    Spaces are marked as unknown, so that spaCy does not tokenise the doc again.
    """
    vocab = Vocab()
    read = read_articles(path)
    for sentences in read if articles else ([one] for article in read for one in article):
        words = [word for own, _ in sentences for word in own]
        starts: list[bool | int | None] = [i == 0 for own, _ in sentences for i in range(len(own))]
        tags = [tag for _, own in sentences for tag in iob_to_biluo(own)]  # no entity goes on in the next sentence
        doc = Doc(vocab, words=words, sent_starts=starts)
        doc.set_ents(biluo_tags_to_spans(doc, tags), default="outside")
        if articles:
            doc.spans[SENTENCES] = list(doc.sents)
        yield doc


def main(
    source: Path,
    target: Path,
    articles: Annotated[bool, typer.Option("--articles", help="A doc for each article, not for each sentence")] = False,
) -> None:
    """Convert SOURCE to TARGET, a .spacy file."""
    write_docs(source, to_docs(source, articles=articles), target)


if __name__ == "__main__":
    run_command(main)
