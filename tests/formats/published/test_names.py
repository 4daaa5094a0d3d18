"""Names of published biLMs, their addresses and their folders."""

from pathlib import Path

import pytest

from spacy_elmo.formats.names import PUBLISHED, cache_folder


def test_the_addresses_are_those_of_allennlp() -> None:
    """The default of AllenNLP 2.10.1's ElmoTokenEmbedder, and the weights that belong to it."""
    start = "https://allennlp.s3.amazonaws.com/models/elmo/"
    original = "2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_"
    assert PUBLISHED["original"][:2] == (f"{start}{original}options.json", f"{start}{original}weights.hdf5")
    assert list(PUBLISHED) == ["original", "original-5.5B", "medium", "small", "pubmed", "pt"]
    urls = [url for model in PUBLISHED.values() for url in model[:2]]
    assert len(set(urls)) == 12
    assert all(url.startswith(start) for url in urls)


def test_the_cache_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACY_ELMO_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert cache_folder() == tmp_path / "home/.cache/spacy-elmo"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / "home/.cache/spacy-elmo"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/spacy-elmo"
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPACY_ELMO_CACHE", "~/own")
    assert cache_folder() == tmp_path / "own"
