"""Fixtures of the tests of commands."""

import sys
from collections.abc import Iterator

import pytest
from file_server import Server, serving

import spacy_elmo.cli  # noqa: F401

fetching = sys.modules["spacy_elmo.cli.download"]  # the package has the command of this name


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of this machine; a download from it is tried once."""
    monkeypatch.setattr(fetching, "PAUSES", ())
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    with serving() as made:
        yield made
