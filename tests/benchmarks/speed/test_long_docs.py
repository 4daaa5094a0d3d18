"""The words of a text, and what components have found in a doc."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc

from benchmarks.speed.long_docs import QUESTION, found, question_doc, words_of


def test_words(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("It  rains .\n\nIt pours .\n", encoding="utf-8")
    assert words_of(text, 4) == ["It", "rains", ".", "It"]
    with pytest.raises(SystemExit, match="has 6 words"):
        words_of(text, 7)


def test_found() -> None:
    doc = question_doc(Doc(spacy.blank("en").vocab, words=[*QUESTION, "It", "ended", "in", "May", "."]))
    assert [doc.spans[name][0].text for name in ("question", "context")] == [" ".join(QUESTION), "It ended in May ."]
    doc.spans["answer"] = [doc[9:10], doc[8:10]]
    doc.spans["roles:1"], doc.spans["roles:7"] = [doc[1:2]], [doc[6:7], doc[7:8]]
    doc.spans["coref_clusters_1"] = [doc[4:5], doc[6:7]]
    assert [found(doc, name) for name in ("answers", "semantic_roles", "coreference")] == [2, 2, 1]
