"""Docs of .spacy files: their words, sentences and annotations are those that were written."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.errors import CorpusError
from spacy_elmo.formats.docbin import docs_in, sentences_of


def docs() -> list[Doc]:
    vocab = spacy.blank("en").vocab
    words = ["a", "b", "\n", "é", "中"]
    heads = Doc(vocab, words=words, heads=[0, 0, 1, 4, 4], deps=["ROOT", "x", "x", "x", "ROOT"])
    starts = Doc(vocab, words=words, sent_starts=[True, False, None, True, False], spaces=[True, False] * 2 + [True])
    rich = Doc(vocab, words=words, tags=["T"] * 5, lemmas=words[::-1], ents=["B-X", "I-X", "O", "O", "B-Y"])
    rich.spans["s"] = [rich[0:2]]
    rich.user_data["u"], rich.cats = 1, {"c": 0.5}
    return [heads, Doc(vocab, words=[]), starts, Doc(vocab, words=["ORTH", " ", "x"]), rich]


def described(doc: Doc) -> Any:
    sentences = [[token.text for token in span] for span in doc.sents] if doc.has_annotation("SENT_START") else None
    return [token.text for token in doc], doc.text, sentences, doc.has_unknown_spaces


NAMES = ("text", "pos_", "tag_", "lemma_", "morph", "dep_", "head", "ent_iob_", "ent_type_", "norm_")


def annotated(doc: Doc) -> Any:
    values = [[str(getattr(token, name)) for name in NAMES] for token in doc]
    return described(doc), values, [token.is_title for token in doc], dict(doc.user_data)


@pytest.mark.parametrize("packed", [False, True])
def test_what_was_written_is_read(packed: bool, tmp_path: Path) -> None:
    tagged = Doc(
        spacy.blank("en").vocab,
        words=["It", "rains", "."],
        pos=["PRON", "VERB", "PUNCT"],
        morphs=["Case=Nom", "", "PunctType=Peri"],
        deps=["nsubj", "ROOT", "punct"],
        heads=[1, 1, 1],
    )
    tagged.user_data["._.", "mood", 0, None] = (1.5, {"a": None})
    written = [*docs(), tagged]
    data = DocBin(docs=written, store_user_data=True).to_bytes()
    path = tmp_path / ("docs.spacy.gz" if packed else "docs.spacy")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert list(map(annotated, docs_in(path))) == list(map(annotated, written))


def test_no_docs(tmp_path: Path) -> None:
    DocBin().to_disk(tmp_path / "docs.spacy")
    assert list(docs_in(tmp_path / "docs.spacy")) == []


def test_sentences() -> None:
    heads, empty, starts, unmarked, _ = docs()
    assert [span.text for span in sentences_of(heads)] == ["a b \n", "é 中"]
    assert len(sentences_of(starts)) == 2
    assert [len(span) for span in sentences_of(unmarked)] == [3]
    assert not any(len(span) for span in sentences_of(empty))


@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: b"", lambda data: data[2:], lambda data: data[:-9] + b"garbage .."]
)
def test_damaged_files(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "docs.spacy"
    path.write_bytes(change(DocBin(docs=docs()).to_bytes()))
    with pytest.raises(CorpusError, match=r"docs\.spacy: damaged, cut short or unreadable \("):
        list(docs_in(path))
