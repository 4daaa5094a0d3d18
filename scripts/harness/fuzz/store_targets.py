"""Checkpoints, the layer cache and prepared text. They have checksums: what they give must be what was written."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import numpy as np

from spacy_elmo.inference.cache import LayersFile
from spacy_elmo.pretraining.checkpoint import Checkpoints
from spacy_elmo.pretraining.prepared import PreparedCorpus, prepare

from .mutate import mutated
from .pool import Target
from .samples import files_in, write_files

_TITLE = b"spacy-elmo checkpoint, SHA-256 of what follows: "
_BLOCK = 512


class WrongLoadError(Exception):
    """A damaged file was read, and gave something else than what was written."""


def checkpoints() -> Target:
    """A run's checkpoints. In half of the inputs the hash is right again, as an attacker would write it."""
    arrays = {"weights/a": np.arange(60, dtype=np.float32), "step": np.array(7), "text": np.arange(5, dtype=np.uint8)}
    with tempfile.TemporaryDirectory() as name:
        valid = Checkpoints(Path(name)).write(7, arrays).read_bytes()

    def make(folder: Path, random: Random) -> None:
        if random.random() < 0.5:
            data = mutated(valid, random)
        else:
            image = mutated(valid[_BLOCK:], random)
            data = (_TITLE + hashlib.sha256(image).hexdigest().encode()).ljust(_BLOCK, b"\0") + image
        (folder / "step-000000007.h5").write_bytes(data)

    def load(folder: Path) -> None:
        found = Checkpoints(folder).latest(lambda message: None)
        image = (folder / "step-000000007.h5").read_bytes()[_BLOCK:]
        if image[: len(valid)] == valid[_BLOCK:] and found is not None and found[0] != 7:
            raise WrongLoadError(found[0])

    return Target(make, load)


def prepared() -> Target:
    """A folder of prepared text."""
    with tempfile.TemporaryDirectory() as name:
        text = Path(name, "text.txt")
        text.write_text("".join(f"the {k} sentence é 東京 .\n" for k in range(40)), encoding="utf8")
        words = list(prepare(text, Path(name, "prepared")))
        valid = files_in(Path(name, "prepared"))

    def make(folder: Path, random: Random) -> None:
        files = dict(valid)
        changed = random.choice(list(files))
        files[changed] = mutated(files[changed], random)
        write_files(folder, files)
        if random.random() < 0.05:
            (folder / changed).unlink()

    def load(folder: Path) -> None:
        corpus = PreparedCorpus.open(folder)
        corpus.verify()
        got = list(corpus)
        if files_in(folder)["sentences.txt"] == valid["sentences.txt"] and got != words and len(got) == len(words):
            raise WrongLoadError("other words, and each sentence of the right length")

    return Target(make, load)


def cache() -> Target:
    """A file of layers: changed bytes, and tables that are views, have triggers, or hold other types and sizes."""
    random_layers = np.random.default_rng(0).normal(size=(3, 3, 4, 8)).astype(np.float32)
    keys = [bytes([k]) * 32 for k in range(3)]
    items = dict(zip(keys, random_layers))
    with tempfile.TemporaryDirectory() as name:
        LayersFile(Path(name, "cache")).write(items)
        valid = Path(name, "cache").read_bytes()

    def make(folder: Path, random: Random) -> None:
        path = folder / "cache"
        path.write_bytes(valid)
        if random.random() < 0.5:
            with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error, OverflowError):
                connection.executescript(random.choice(_SCRIPTS))
        if random.random() < 0.6:
            path.write_bytes(mutated(path.read_bytes(), random))

    def load(folder: Path) -> None:
        file = LayersFile(folder / "cache")
        for key, layers in file.read(keys).items():
            if not np.array_equal(layers, items[key]):
                raise WrongLoadError(f"other layers for {key!r}")
        new = b"n" * 32
        file.write({new: random_layers[0], **items})
        for key, layers in LayersFile(folder / "cache").read([new, *keys]).items():
            if not np.array_equal(layers, {new: random_layers[0], **items}[key]):
                raise WrongLoadError(f"other layers for {key!r} after writing")

    return Target(make, load)


_COUNTER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
_VIEW = "DROP TABLE layers; CREATE VIEW layers AS"
_SCRIPTS = (
    f"{_VIEW} {_COUNTER} SELECT x AS key, x AS shape, x AS crc, x AS data FROM n",
    f"{_VIEW} {_COUNTER} SELECT x AS key, x AS shape, x AS crc, zeroblob(500000000) AS data FROM n LIMIT 40",
    f"{_VIEW} SELECT zeroblob(32) AS key, zeroblob(24) AS shape, 0 AS crc, zeroblob(900000000) AS data",
    "CREATE TABLE other (x); CREATE TRIGGER t AFTER INSERT ON layers BEGIN INSERT INTO other "
    + f"{_COUNTER} SELECT x FROM n; END",
    "CREATE TRIGGER t BEFORE INSERT ON layers BEGIN SELECT RAISE(ABORT, 'x'); END",
    "CREATE TRIGGER t BEFORE DELETE ON layers BEGIN SELECT RAISE(IGNORE); END",
    "CREATE INDEX i ON layers (abs(randomblob(1000000000)))",
    "DROP TABLE layers",
    "DROP TABLE layers; CREATE TABLE layers (key BLOB PRIMARY KEY, shape BLOB, crc INTEGER)",
    "DROP TABLE layers; CREATE TABLE layers (key BLOB PRIMARY KEY, shape BLOB, crc INTEGER, data BLOB "
    + "GENERATED ALWAYS AS (zeroblob(500000000)))",
    "DROP TABLE layers; CREATE TABLE layers (key PRIMARY KEY, shape, crc, data, more) WITHOUT ROWID",
    "DROP TABLE layers; CREATE VIRTUAL TABLE layers USING fts5(key, shape, crc, data)",
    "UPDATE layers SET data = zeroblob(50000000) WHERE rowid = 1",
    "UPDATE layers SET shape = 'text', crc = 'text'",
    "UPDATE layers SET shape = NULL, crc = NULL, data = NULL",
    "UPDATE layers SET crc = 1e300",
    "UPDATE layers SET data = CAST(x'fffefd' AS TEXT)",
    "UPDATE layers SET shape = x'ffffffffffffff7fffffffffffffff7fffffffffffffff7f'",
    "UPDATE layers SET key = CAST(key AS TEXT)",
    "PRAGMA user_version = 9",
    "PRAGMA application_id = 9",
    "PRAGMA user_version = 0",
    "PRAGMA journal_mode = WAL",
    "PRAGMA encoding = 'UTF-16'; VACUUM",
)
