"""Texts that commands read."""

import sys

import pytest

from spacy_elmo.cli.shared import STANDARD_INPUT, open_text, sentences_in
from spacy_elmo.errors import CorpusError
from spacy_elmo.pretraining.text import Report


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # Python's value for it
    with pytest.raises(CorpusError, match=r"standard input.*closed"):
        sentences_in(STANDARD_INPUT, None, Report())
    with pytest.raises(CorpusError, match=r"standard input.*closed"), open_text(STANDARD_INPUT):
        pass
