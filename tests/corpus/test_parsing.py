"""Items that can't be turned into documents."""

import json

import pytest

from spacy_elmo.corpus import reading as parsing
from spacy_elmo.corpus.reading import Item, Parser
from spacy_elmo.formats.text import Unusable


def test_json_that_can_be_read_but_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python writes JSON less deep than it reads it. By how much depends on the stack."""

    def dumps(*args: object, **kwargs: object) -> str:
        raise RecursionError

    line = json.dumps({"text": "a b", "other": [[]]}).encode()
    assert Parser(None, docs=True)(Item("file", 1, "json", line)) is not None
    monkeypatch.setattr(parsing.json, "dumps", dumps)
    with pytest.raises(Unusable, match="nested too deep"):
        Parser(None, docs=True)(Item("file", 1, "json", line))
