"""Fixtures of the tests of commands."""

from collections.abc import Iterator

import pytest
from file_server import Server, serving

from spacy_elmo.cli import download as fetching


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of this machine; a download from it is tried once."""
    monkeypatch.setattr(fetching, "PAUSES", ())
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    with serving() as made:
        yield made
