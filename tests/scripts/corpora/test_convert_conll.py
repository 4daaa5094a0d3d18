"""Entities in CoNLL's columns become docs: sentences, words and entities as a person reads them in the file."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from scripts.corpora.convert_conll import SENTENCES, main, to_docs
from spacy_elmo.errors import CorpusError

TWEETS = (
    "@\tB-PER\ncolgo\tB-PER\nhey\tO\n\n"  # two entities side by side
    "New\tB-LOC\nYork\tI-LOC\n \t \nMoscow\tI-LOC\nBBC\tI-ORG\nNews\tI-ORG\n\t\n"  # I- begins one; blanks separate
    "\tO\n\n"  # a tweet without a word
    "ke s\tO\n😄 \tO\n\tO\nAus\u00adtralian\tB-LOC\r\n"  # a blank inside a word and behind one
)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def shape(doc: Doc) -> tuple[list[str], list[tuple[str, str]]]:
    return [token.text for token in doc], [(ent.text, ent.label_) for ent in doc.ents]


def test_sentences_words_and_entities(tmp_path: Path) -> None:
    docs = list(to_docs(written(tmp_path / "tweets", TWEETS)))
    assert [shape(doc) for doc in docs] == [
        (["@", "colgo", "hey"], [("@", "PER"), ("colgo", "PER")]),
        (["New", "York"], [("New York", "LOC")]),
        (["Moscow", "BBC", "News"], [("Moscow", "LOC"), ("BBC News", "ORG")]),
        (["ke s", "😄", "Aus\u00adtralian"], [("Aus\u00adtralian", "LOC")]),
    ]
    assert all(len(list(doc.sents)) == 1 for doc in docs)
    assert all(doc.has_unknown_spaces for doc in docs)  # spaCy then trains on these words


def test_articles(tmp_path: Path) -> None:
    text = "-DOCSTART- O\n\na\tO\nBonn\tB-LOC\n\nRome\tI-LOC\nb\tO\n-DOCSTART- O\n\n-DOCSTART- O\nc\tO\n"
    docs = list(to_docs(written(tmp_path / "x", text), articles=True))
    assert [[[token.text for token in sent] for sent in doc.spans[SENTENCES]] for doc in docs] == [
        [["a", "Bonn"], ["Rome", "b"]],
        [["c"]],
    ]
    assert [shape(doc)[1] for doc in docs] == [[("Bonn", "LOC"), ("Rome", "LOC")], []]  # none reaches over sentences
    assert [shape(doc) for doc in to_docs(tmp_path / "x")] == [
        (["a", "Bonn"], [("Bonn", "LOC")]),
        (["Rome", "b"], [("Rome", "LOC")]),
        (["c"], []),
    ]


def test_a_corpus_keeps_its_words(tmp_path: Path) -> None:
    target = tmp_path / "new" / "x.spacy"
    main(written(tmp_path / "x", TWEETS), target)
    nlp = spacy.blank("en")
    docs = list(DocBin().from_disk(target).get_docs(nlp.vocab))
    assert [len(doc) for doc in docs] == [3, 2, 3, 3]
    assert {ent.label_ for doc in docs for ent in doc.ents} == {"PER", "LOC", "ORG"}
    corpus = spacy.training.Corpus(target)
    assert [[token.text for token in eg.predicted] for eg in corpus(nlp)] == [[t.text for t in doc] for doc in docs]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb O\n", "line 2: 1 columns"),
        ("a\tO\tO\n", "line 1: 3 columns"),
        ("a\tO\n\nb\tB-person,B-group\n", "line 3: the tag is 'B-person,B-group'"),
        ("a\tB\n", "line 1: the tag is 'B'"),
        ("a\tO\n\tB-PER\n", "line 2: the tag B-PER without a word"),
        ("\n\n", "no sentences in it"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    source, target = written(tmp_path / "bad.conll", text), tmp_path / "x.spacy"
    with pytest.raises(CorpusError, match=message) as error:
        main(source, target)
    assert "bad.conll" in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.conll"]


def test_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"caf\xe9\tO\n")
    for source in (tmp_path / "x", tmp_path / "none"):
        with pytest.raises(CorpusError, match="can't be read"):
            main(source, tmp_path / "x.spacy")
