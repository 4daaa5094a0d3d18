"""Settings and words of a biLM: options.json, configs and vocabularies."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

import numpy as np

from spacy_elmo.formats import read_options
from spacy_elmo.pretraining.config_file import read_config, to_config, to_text
from spacy_elmo.pretraining.vocabulary import Vocabulary

from .mutate import JSON_VALUES, ODD_VALUES, changed_tree, mutated
from .pool import Target
from .samples import bilm_files

_CONFIG = Path(__file__).parents[3] / "configs" / "pretrain.cfg"


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


def _changed_json(data: bytes, random: Random) -> bytes:
    if random.random() < 0.4:
        return mutated(data, random)
    return json.dumps(changed_tree(json.loads(data), random, JSON_VALUES)).encode("utf8", "surrogatepass")
