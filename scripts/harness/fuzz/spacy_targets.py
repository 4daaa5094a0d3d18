"""The elmo pipe of a saved pipeline, as bytes and as a folder."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import spacy
import srsly
from spacy.language import Language

from spacy_elmo.pipeline.elmo import ElmoPipe

from .mutate import changed_tree, mutated
from .pool import Target
from .samples import bilm_files, files_in, write_files


@cache
def _nlp() -> Language:
    return spacy.blank("en")


def _pipe() -> ElmoPipe:
    options_file, weight_file = bilm_files()
    files = {"options_file": str(options_file), "weight_file": str(weight_file)}
    pipe = _nlp().create_pipe("elmo", config={"model": files})
    assert isinstance(pipe, ElmoPipe)
    return pipe


def pipeline_bytes() -> Target:
    """What ElmoPipe.to_bytes returned."""
    valid = _pipe().to_bytes()

    def make(folder: Path, random: Random) -> None:
        (folder / "pipe.bin").write_bytes(_changed_message(valid, random))

    return Target(make, lambda folder: _use(_pipe().from_bytes((folder / "pipe.bin").read_bytes())))


def pipeline_folders() -> Target:
    """What ElmoPipe.to_disk wrote."""
    with tempfile.TemporaryDirectory() as name:
        _pipe().to_disk(Path(name, "elmo"))
        valid = files_in(Path(name))

    def make(folder: Path, random: Random) -> None:
        files = dict(valid)
        name = random.choice(list(files))
        kind = random.randrange(8)
        files[name] = _changed_message(files[name], random) if kind else files[random.choice(list(files))]
        write_files(folder, files)
        if kind == 1:
            (folder / name).unlink()
        elif kind == 2:
            (folder / name).unlink()
            (folder / name).mkdir()

    return Target(make, lambda folder: _use(_pipe().from_disk(folder / "elmo")))


def _use(pipe: ElmoPipe) -> None:
    """Read a doc: what loaded must also run."""
    docs = [_nlp().make_doc("One two .")]
    pipe.set_annotations(docs, pipe.predict(docs))


def _changed_message(data: bytes, random: Random) -> bytes:
    """Return msgpack with another tree, also inside of bytes that are msgpack themselves, or with other bytes."""
    if random.random() < 0.4:
        return mutated(data, random)
    try:
        tree = _unpacked(srsly.msgpack_loads(data))
    except Exception:
        return mutated(data, random)
    try:
        return bytes(srsly.msgpack_dumps(_packed(changed_tree(tree, random))))
    except Exception:  # msgpack has no such values
        return mutated(data, random)


def _unpacked(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _unpacked(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_unpacked(value) for value in tree]
    if isinstance(tree, bytes) and tree[:1] in (b"\x81", b"\x82", b"\x83", b"\x84", b"\x85", b"\x86", b"\x92", b"\x93"):
        try:
            return {"msgpack inside": _unpacked(srsly.msgpack_loads(tree))}
        except Exception:
            return tree
    return tree


def _packed(tree: Any) -> Any:
    if isinstance(tree, dict):
        if set(tree) == {"msgpack inside"}:
            return srsly.msgpack_dumps(_packed(tree["msgpack inside"]))
        return {key: _packed(value) for key, value in tree.items()}
    return [_packed(value) for value in tree] if isinstance(tree, list) else tree
