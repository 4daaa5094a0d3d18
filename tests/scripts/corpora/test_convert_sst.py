"""Labelled sentences become docs with one category at 1.0."""

from pathlib import Path

import pytest

from scripts.corpora.convert_sst import main, to_docs
from spacy_elmo.errors import CorpusError


def test_labels_and_words(tmp_path: Path) -> None:
    source = tmp_path / "sst.txt"
    source.write_text("__label__5\tA  fine\u00a0film , n't it ?\n\n__label__1\t`` Bad ''\n", encoding="utf-8")
    first, second = to_docs(source)
    assert [token.text for token in first] == ["A", "fine", "film", ",", "n't", "it", "?"]
    assert first.cats == {"1": 0.0, "5": 1.0}
    assert [token.text for token in second] == ["``", "Bad", "''"]
    assert second.cats == {"1": 1.0, "5": 0.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__label__1\ta\nno label\tb\n", "line 2: no label"),
        ("__label__1 a\n", "line 1: no label"),
        ("__label__1\t \n", "line 1: no text"),
        ("", "no sentences in it"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    source = tmp_path / "bad.txt"
    source.write_text(text)
    with pytest.raises(CorpusError, match=message) as error:
        main(source, tmp_path / "x.spacy")
    assert "bad.txt" in str(error.value)
    assert not (tmp_path / "x.spacy").exists()
