"""Docs of several texts keep them apart, with spans and without."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.shared import make_doc, parts_of

NLP = spacy.blank("en")
KEYS = ("question", "context")


def texts(doc: Doc) -> list[str] | None:
    parts = parts_of(doc, KEYS)
    return None if parts is None else [part.text.strip() for part in parts]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("Who?", "A man. He slept."), ["Who?", "A man. He slept."]),
        (("Who\nis it? ", " A man.\n\nHe slept."), ["Who is it?", "A man.\n\nHe slept."]),
        (("a", "b"), ["a", "b"]),
        (("", "b"), None),
        (("a", " \n"), None),
        (("", ""), None),
    ],
)
def test_texts_come_back(given: tuple[str, str], expected: list[str] | None) -> None:
    doc = make_doc(NLP, given, KEYS)
    assert texts(doc) == expected
    assert texts(doc.copy()) == texts(Doc(NLP.vocab).from_bytes(doc.to_bytes())) == expected
    spans = ["".join(span.text for span in doc.spans[key]).strip() for key in KEYS]
    assert spans == [text.replace("\n", " ").strip() if i == 0 else text.strip() for i, text in enumerate(given)]
    for key in KEYS:
        del doc.spans[key]
    assert texts(doc) == expected  # from the line breaks alone


def test_spacys_corpus_reader_loses_nothing(tmp_path: object) -> None:
    words = Doc(NLP.vocab, words=["Who", "?", "\n", "do", "n't"])  # its spaces are unknown, its words are kept
    DocBin(docs=[make_doc(NLP, ("Who\nis?", "A man."), KEYS), words]).to_disk(f"{tmp_path}/x.spacy")
    first, second = Corpus(f"{tmp_path}/x.spacy")(NLP)
    assert not first.predicted.spans
    assert texts(first.predicted) == ["Who is?", "A man."]
    assert texts(second.predicted) == ["Who ?", "do n't"]


def test_spans_go_before_lines() -> None:
    doc = NLP.make_doc("a b\nc d")
    doc.spans["question"] = [doc[3:5]]
    doc.spans["context"] = [doc[0:4]]
    assert texts(doc) == ["c d", "a b\nc"]


def test_docs_without_words_have_no_parts() -> None:
    assert texts(Doc(NLP.vocab)) is None
    assert texts(NLP.make_doc(" \n ")) is None


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(AnnotationError, match="the text for 'context' is None"):
        make_doc(NLP, ("a", None), KEYS)  # type: ignore[arg-type]


def test_docs_without_division_are_refused() -> None:
    with pytest.raises(AnnotationError, match="no span groups 'question', 'context', and no line breaks"):
        parts_of(NLP.make_doc("a b"), KEYS)


def test_half_of_the_spans_is_refused() -> None:
    doc = NLP.make_doc("a\nb")
    doc.spans["question"] = [doc[0:1]]
    with pytest.raises(AnnotationError, match=r"are \[1, None\]"):
        parts_of(doc, KEYS)
    doc.spans["context"] = [doc[0:1], doc[1:2]]
    with pytest.raises(AnnotationError, match=r"are \[1, 2\]"):
        parts_of(doc, KEYS)
