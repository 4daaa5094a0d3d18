"""Docs that scripts write: not over their source, and whole."""

from pathlib import Path

import pytest
import spacy

from scripts.shared.corpus_files import refuse_sources, write_docs
from spacy_elmo.errors import CorpusError


def test_the_source_stays(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("text")
    doc = spacy.blank("en")("a doc")
    with pytest.raises(CorpusError, match=r"a\.txt would be replaced by its own conversion"):
        write_docs(source, [doc], tmp_path / "." / "a.txt")
    assert source.read_text() == "text"
    write_docs(source, [doc], tmp_path / "new" / "a.spacy")
    assert (tmp_path / "new" / "a.spacy").is_file()
    with pytest.raises(CorpusError, match="can't be written"):
        write_docs(source, [doc], source / "a.spacy")  # its folder is a file


def test_files_that_are_to_come(tmp_path: Path) -> None:
    refuse_sources(tmp_path / "a", tmp_path / "b")
    with pytest.raises(CorpusError, match="Expected another file"):
        refuse_sources(tmp_path / "a", tmp_path / "b", tmp_path / "a")
