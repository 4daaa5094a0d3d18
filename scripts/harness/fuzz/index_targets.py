"""Indexes of the words of a corpus."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

from spacy_elmo import ElmoEmbedder, WordIndex, build_index

from .mutate import ODD_VALUES, changed_tree, mutated
from .pool import Target
from .samples import files_in, write_files

_JSON_VALUES = tuple(value for value in ODD_VALUES if not isinstance(value, bytes))


def index() -> Target:
    """The folder of an index: a changed file, or other values in its index.json. It is opened and searched."""
    embedder = ElmoEmbedder()
    with tempfile.TemporaryDirectory() as name:
        text = Path(name, "text.txt")
        text.write_text("".join(f"the {k} sentence é 東京 .\n" for k in range(40)), encoding="utf8")
        build_index(text, Path(name, "index"), embedder)
        valid = files_in(Path(name, "index"))

    def make(folder: Path, random: Random) -> None:
        files = dict(valid)
        changed = random.choice(list(files))
        files[changed] = mutated(files[changed], random)
        if random.random() < 0.1:
            tree = changed_tree(json.loads(valid["index.json"]), random, _JSON_VALUES)
            files["index.json"] = json.dumps(tree).encode("utf8", "surrogatepass")
        write_files(folder, files)

    def load(folder: Path) -> None:
        found = WordIndex(folder, embedder).neighbours("the first sentence .", "first", 240)
        for one in found:
            assert one.words[one.place], "a neighbour without a word"

    return Target(make, load)
