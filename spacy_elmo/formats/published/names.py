"""The published biLMs that have a name: their addresses, and the folder that keeps them after `elmo download`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ...errors import Errors, SettingsError

CACHE = "SPACY_ELMO_CACHE"  # environment variable that moves the folder
_ADDRESS = "https://allennlp.s3.amazonaws.com/models/elmo/"  # as AllenNLP 2.10.1 names it


class PublishedModel(NamedTuple):
    """A published biLM.

    options_url, weights_url: addresses of its options.json and its weights.hdf5.
    language: spaCy's code of its language.
    """

    options_url: str
    weights_url: str
    language: str


def _of_sizes(sizes: str) -> PublishedModel:
    start = f"{_ADDRESS}{sizes}/elmo_{sizes}"
    return PublishedModel(f"{start}_options.json", f"{start}_weights.hdf5", "en")


_PUBMED = f"{_ADDRESS}contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway"
_PT = f"{_ADDRESS}contributed/pt/elmo_pt"

# The paper's page (allennlp.org/elmo) named the same files in this bucket, by its older address.
PUBLISHED = {
    "original": _of_sizes("2x4096_512_2048cnn_2xhighway"),
    "original-5.5B": _of_sizes("2x4096_512_2048cnn_2xhighway_5.5B"),
    "medium": _of_sizes("2x2048_256_2048cnn_1xhighway"),
    "small": _of_sizes("2x1024_128_2048cnn_1xhighway"),
    "pubmed": PublishedModel(f"{_PUBMED}_options.json", f"{_PUBMED}_weights_PubMed_only.hdf5", "en"),
    "pt": PublishedModel(f"{_PT}_options.json", f"{_PT}_weights.hdf5", "pt"),
}


def cache_folder() -> Path:
    """Return the folder of downloaded biLMs: $SPACY_ELMO_CACHE, or spacy-elmo in $XDG_CACHE_HOME or in ~/.cache."""
    if own := os.environ.get(CACHE):
        return Path(os.path.expanduser(own))  # a shell expands ~ in some places only
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG specification: a relative path is not valid and should be ignored
    return (Path(shared) if os.path.isabs(shared) else Path.home() / ".cache") / "spacy-elmo"


def published_folder(name: str | os.PathLike[str]) -> Path:
    """Return the folder for the options.json and weights.hdf5 of a published biLM. It may be missing."""
    return cache_folder() / os.fspath(name)


def downloaded_folder(name: str | os.PathLike[str]) -> Path:
    """Return the folder of a published biLM. Raises SettingsError, with the command, if it was not downloaded."""
    folder = published_folder(name)
    if not all((folder / file).is_file() for file in ("options.json", "weights.hdf5")):
        raise SettingsError(Errors.NOT_DOWNLOADED.format(name=os.fspath(name), folder=folder, variable=CACHE))
    return folder
