"""Shares of a file of docs: their sizes, that a larger one contains a smaller one, and files that can't be read."""

from itertools import pairwise
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from scripts.runs.corpus_shares import write_share
from spacy_elmo.errors import CorpusError


def texts(path: Path) -> list[str]:
    return [doc.text for doc in DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)]


def test_shares(tmp_path: Path) -> None:
    nlp, source = spacy.blank("en"), tmp_path / "train.spacy"
    DocBin(docs=[nlp(f"doc {number:03}") for number in range(200)]).to_disk(source)
    drawn = []
    for share, size in ((1, 2), (3, 6), (30, 60), (100, 200)):
        write_share(source, tmp_path / "part.spacy", share)
        drawn.append(texts(tmp_path / "part.spacy"))
        assert len(drawn[-1]) == size
        assert drawn[-1] == sorted(drawn[-1])  # the order of the file
    assert all(set(small) < set(large) for small, large in pairwise(drawn))
    assert drawn[-1] == texts(source)
    assert drawn[1] != texts(source)[:6]  # drawn, not the first ones
    write_share(source, tmp_path / "part.spacy", 1)
    assert texts(tmp_path / "part.spacy") == drawn[0]


def test_one_doc_at_least(tmp_path: Path) -> None:
    DocBin(docs=[spacy.blank("en")("one")]).to_disk(tmp_path / "train.spacy")
    write_share(tmp_path / "train.spacy", tmp_path / "part.spacy", 1)
    assert texts(tmp_path / "part.spacy") == ["one"]


def test_unreadable_files(tmp_path: Path) -> None:
    DocBin().to_disk(tmp_path / "empty.spacy")
    (tmp_path / "text.spacy").write_text("not docs")
    for name, message in (("gone", "convert the corpus first"), ("text", "convert"), ("empty", "no sentences")):
        with pytest.raises(CorpusError, match=message):
            write_share(tmp_path / f"{name}.spacy", tmp_path / "part.spacy", 10)
    assert not (tmp_path / "part.spacy").exists()
