"""Texts: options.json, configs, vocabularies, corpora, and the sentences of `elmo embed`."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import spacy
import zstandard
from spacy.tokens import DocBin

from spacy_elmo.formats import read_options
from spacy_elmo.formats.sentences import read_sentences as read_embed_sentences
from spacy_elmo.pretraining.settings.config_file import read_config, to_config, to_text
from spacy_elmo.pretraining.text.reading import read_sentences
from spacy_elmo.pretraining.text.vocabulary import Vocabulary

from .mutate import ODD_TEXTS, ODD_VALUES, changed_tree, mutated
from .pool import Target
from .samples import bilm_files

_CONFIG = Path(__file__).parents[3] / "configs" / "pretrain.cfg"
_PIECE = 2**24
_TEXT = "The river bank .\nHe sat by the bank of the river .\n\nÉté à Tōkyō 東京 🙂 !\n" * 20
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, 1),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
}


def options() -> Target:
    """A biLM's options.json."""
    valid = bilm_files()[0].read_bytes()

    def make(folder: Path, random: Random) -> None:
        (folder / "options.json").write_bytes(_changed_json(valid, random))

    return Target(make, lambda folder: read_options(folder / "options.json"))


def config() -> Target:
    """The settings of a pretraining."""
    valid = to_text(to_config(read_config(_CONFIG))).encode()
    names = [line.partition(" = ")[0] for line in valid.decode().splitlines() if " = " in line]

    def make(folder: Path, random: Random) -> None:
        data = valid
        for _ in range(random.choice((0, 1, 2))):
            value = random.choice(
                (*map(str, ODD_VALUES), "${x.y}", "${paths.train}", "[", '{"@loggers": "x"}', "%(x)s")
            )
            lines = data.decode("utf8", "surrogatepass").splitlines()
            place = random.randrange(len(lines))
            lines[place] = f"{random.choice(names)} = {value}"
            data = "\n".join(lines).encode("utf8", "surrogatepass")
        (folder / "pretrain.cfg").write_bytes(mutated(data, random) if random.random() < 0.6 else data)

    return Target(make, lambda folder: read_config(folder / "pretrain.cfg"))


def vocabulary() -> Target:
    """vocabulary.txt and vocabulary.counts.npy."""
    with tempfile.TemporaryDirectory() as name:
        words = ["<S>", "</S>", "<UNK>", *(f"word{k}" for k in range(40)), "é", "東京"]
        path = Path(name, "vocabulary.txt")
        path.write_text("\n".join(words) + "\n", encoding="utf8")
        counts = path.with_name("vocabulary.counts.npy")
        np.save(counts, np.arange(len(words), dtype=np.int64)[::-1].copy())
        valid = {file.name: file.read_bytes() for file in (path, counts)}

    def make(folder: Path, random: Random) -> None:
        changed = random.choice(list(valid))
        for name, data in valid.items():
            (folder / name).write_bytes(mutated(data, random) if name == changed else data)

    return Target(make, lambda folder: Vocabulary.read(folder / "vocabulary.txt"))


def corpus() -> Target:
    """A text for pretraining in any format, packed or not."""
    nlp = spacy.blank("en")
    texts = [_TEXT.encode(), _json_lines(Random(0)), DocBin(docs=[nlp(_TEXT), nlp("")]).to_bytes()]
    formats = dict(zip((".txt", ".jsonl", ".spacy"), texts))

    def make(folder: Path, random: Random) -> None:
        kind, packing = random.choice(list(formats)), random.choice(list(_PACKERS))
        data = formats[kind]
        if kind == ".jsonl" and random.random() < 0.7:
            data = _json_lines(random)
        elif kind == ".txt" and random.random() < 0.5:
            data = random.choice(ODD_TEXTS).encode("utf8", "surrogatepass").join([data, data[::-1]])
        if random.random() < 0.5:
            data = mutated(data, random)
        is_bomb = packing and random.random() < 0.02
        packed = _bomb(packing) if is_bomb else _PACKERS[packing](data)
        (folder / f"corpus{kind}{packing}").write_bytes(mutated(packed, random) if random.random() < 0.3 else packed)

    def load(folder: Path) -> None:
        for path in folder.iterdir():
            language = "en" if path.stat().st_size % 2 and path.stat().st_size < 10_000 else None
            for words in read_sentences(path, language):
                assert words, "a sentence without words"

    return Target(make, load)


def sentences() -> Target:
    """A text for `elmo embed`."""

    def make(folder: Path, random: Random) -> None:
        data = random.choice((_TEXT, *ODD_TEXTS)).encode("utf8", "surrogatepass")
        (folder / "text.txt").write_bytes(mutated(data, random))

    def load(folder: Path) -> None:
        with (folder / "text.txt").open(encoding="utf8") as file:
            read_embed_sentences(file, "text.txt", keys=True)

    return Target(make, load)


def _changed_json(data: bytes, random: Random) -> bytes:
    if random.random() < 0.4:
        return mutated(data, random)
    return json.dumps(changed_tree(json.loads(data), random, _JSON_VALUES)).encode("utf8", "surrogatepass")


def _json_lines(random: Random) -> bytes:
    lines: list[Any] = [{"text": "The river bank ."}, {"tokens": ["The", "bank"]}, {"text": "x", "tokens": ["y"]}]
    changed = [json.dumps(changed_tree(line, random, _JSON_VALUES)) for line in lines * 5]
    return "\n".join([*changed, "[" * random.choice((1, 100_000)), *map(json.dumps, lines)]).encode()


_JSON_VALUES = tuple(value for value in ODD_VALUES if not isinstance(value, bytes))


@cache
def _bomb(packing: str) -> bytes:
    """Return a small file of 2.5 GB of one letter: one line."""
    piece = _PACKERS[packing](b"a" * _PIECE)
    return io.BytesIO(b"".join(islice(iter(lambda: piece, None), 150))).getvalue()
