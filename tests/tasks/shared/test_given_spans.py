"""Span groups that spaCy's corpus reader drops."""

from pathlib import Path

import spacy
from role_cases import GIVEN, doc_with
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example

from spacy_elmo.tasks.shared import build_given_spans


def test_a_corpus_keeps_them(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    docs = [doc_with(*GIVEN[0], nlp.vocab), doc_with("no predicates", None, nlp.vocab)]
    DocBin(docs=docs).to_disk(tmp_path / "x.spacy")
    first, second = Corpus(tmp_path / "x.spacy", augmenter=build_given_spans(["predicates"]))(nlp)
    assert [(span.start, span.text) for span in first.predicted.spans["predicates"]] == [(1, "gave"), (6, "left")]
    assert sorted(first.predicted.spans) == ["predicates"]
    assert not second.predicted.spans


def test_other_words() -> None:
    reference = doc_with("ab c", {1: []})
    other = Doc(reference.vocab, words=["a", "b", "c"], spaces=[False, True, False])
    (example,) = build_given_spans(["predicates"])(spacy.blank("en"), Example(other, reference))
    assert [span.start for span in example.predicted.spans["predicates"]] == [2]
