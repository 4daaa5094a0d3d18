"""Finds a sentence in what `embed` has written, in one file or in shards, by its number."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from ..errors import CorpusError, ElmoError, NotEmbeddedError, shown
from ..formats.paths import expanded
from ..formats.vectors import read_vectors
from ..pipeline.attributes import layers_of, vectors_of
from .manifest import MANIFEST, SHARDS
from .writing import SUFFIXES, required


class FoundSentence(NamedTuple):
    """A sentence of an output, with None for what its format does not hold.

    vectors: *Shape:* (layers, tokens, width) or (tokens, width), or without tokens if there is one for the sentence.
    """

    vectors: npt.NDArray[Any]
    tokens: list[str] | None = None
    source: str | None = None
    line: int | None = None


def find_sentence(output: str | os.PathLike[str], number: int) -> FoundSentence:
    """Return a sentence of what `embed` has written: a file of any format, or a folder with all shards up to it.

    number: counted from 0 over all sentences of the output, in the order of the input.
    Raises CorpusError if there is no such sentence, and ElmoError if the output can't be read.
    """
    path, place, found = expanded(output), number, None
    try:
        if isinstance(number, int | np.integer) and number >= 0:
            if path.is_dir():
                path, place = _shard_of(path, number)
            readers = {"parquet": _parquet, "hdf5": _hdf5, "spacy": _docbin, "safetensors": _safetensors, "npy": _npy}
            reader = readers.get(SUFFIXES.get(path.suffix.lower(), ""))
            if reader is None or not path.is_file():
                raise CorpusError(f"{path}: no output of embed. Expected one of its files, or its folder of shards.")
            found = reader(path, place)
    except ElmoError:
        raise
    except Exception as error:  # each library has errors of its own
        reason = str(error) or type(error).__name__
        raise CorpusError(
            f"{path}: damaged, cut short, or not written by embed ({reason}). Expected its output: give the same "
            "command again to make it, for a folder with --no-resume."
        ) from error
    if found is None:
        raise CorpusError(f"{output}: no sentence {shown(number)}. Expected a whole number, counted from 0.")
    return found


def _shard_of(folder: Path, number: int) -> tuple[Path, int]:
    lines = (folder / MANIFEST).read_bytes().splitlines()[1:] if (folder / MANIFEST).exists() else []
    shards = sorted((json.loads(line) for line in lines), key=lambda facts: int(facts["shard"]))
    place = number
    for i, facts in enumerate(shards):
        if facts["shard"] != i:
            raise CorpusError(f"{folder}: the shard {i} is missing. Give the same command again, to make it.")
        if place < facts["sentences"]:
            return folder / SHARDS / facts["file"], place
        place -= facts["sentences"]
    raise CorpusError(f"{folder}: {number - place:,} sentences in {len(shards):,} shards, so there is no {number:,}.")


def _parquet(path: Path, place: int) -> FoundSentence | None:
    file = required("pyarrow.parquet").ParquetFile(path)
    for group in range(file.num_row_groups):
        n_rows = file.metadata.row_group(group).num_rows
        if place < n_rows:
            [row] = file.read_row_group(group).slice(place, 1).to_pylist()
            names = [name for name in row if name.startswith("layer_") or name in ("vector", "vectors")]
            arrays = [np.array(row[name], np.float32) for name in names]
            vectors = np.stack(arrays) if names[0].startswith("layer_") else arrays[0]
            return FoundSentence(vectors, row["tokens"], row["source"], row["line"])
        place -= n_rows
    return None


def _hdf5(path: Path, place: int) -> FoundSentence | None:
    for text, vectors in read_vectors(path, first=place):
        tokens = None if text is None else [word.replace("\u2423", " ") for word in text.split()]
        return FoundSentence(vectors, tokens)
    return None


def _docbin(path: Path, place: int) -> FoundSentence | None:
    for doc in DocBin().from_disk(path).get_docs(Vocab()):
        sentences = list(doc.sents)
        if place < len(sentences):
            sentence = sentences[place]
            try:
                vectors: Any = layers_of(sentence, attr="elmo")
            except NotEmbeddedError:
                vectors = vectors_of(sentence, attr="elmo")
            data: dict[Any, Any] = doc.user_data
            return FoundSentence(vectors, [token.text for token in sentence], data["source"], data["line"])
        place -= len(sentences)
    return None


def _safetensors(path: Path, place: int) -> FoundSentence | None:
    with required("safetensors").safe_open(path, "numpy") as file:
        sentences, ends = json.loads(file.metadata()["sentences"]), file.get_tensor("ends")
        if place >= len(sentences):
            return None
        names = sorted((name for name in file.keys() if name != "ends"), key=lambda name: (len(name), name))  # noqa: SIM118
        one = file.get_slice(names[0]).get_shape()[0] != ends[-1] or names == ["vector"]  # a row a sentence
        start, end = (place, place + 1) if one else (int(ends[place - 1]) if place else 0, int(ends[place]))
        arrays = [file.get_slice(name)[start:end] for name in names]
    vectors = np.stack(arrays) if names[0].startswith("layer_") else arrays[0]
    facts = sentences[place]
    return FoundSentence(vectors[..., 0, :] if one else vectors, facts["tokens"], facts["source"], facts["line"])


def _npy(path: Path, place: int) -> FoundSentence | None:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return FoundSentence(np.array(array[place])) if place < len(array) else None
