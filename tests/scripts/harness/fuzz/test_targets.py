"""Each target: a seed makes the same input again, changed inputs are read or refused, and what is valid is read."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from scripts.harness.fuzz import mutate
from scripts.harness.fuzz.samples import files_in
from scripts.harness.fuzz.targets import TARGETS
from spacy_elmo.errors import ElmoError

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_makes_an_input_again(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]()
    made = []
    for seed in (1, 2, 1):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        target.make(folder, Random(seed))
        made.append(files_in(folder))
    assert made[0] == made[2]
    assert made[0] != made[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in TARGETS if name not in ("cache", "config", "corpus", "sentences")])
def test_what_is_not_changed_is_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a generator that changes nothing. The four others add odd texts or tables in any case."""
    targets = ("hdf5_targets", "index_targets", "spacy_targets", "store_targets", "text_targets", "corpus_targets")
    for module in (*targets, "corpus_samples", "packings"):
        monkeypatch.setattr(f"scripts.harness.fuzz.{module}.mutated", lambda data, random: data)
    target = TARGETS[name]()
    read = 0
    for seed in range(30):
        folder = tmp_path / str(seed)
        folder.mkdir()
        target.make(folder, Random(seed))
        try:
            target.load(folder)
            read += 1
        except ElmoError:
            pass
    assert read >= 3


def test_changes_leave_the_original_alone() -> None:
    tree = {"a": [1, {"b": "c"}], "d": b"efg"}
    changed = [mutate.changed_tree(tree, Random(seed)) for seed in range(200)]
    assert tree == {"a": [1, {"b": "c"}], "d": b"efg"}
    assert sum(one != tree for one in changed) > 150
    data = bytes(range(100))
    assert sum(mutate.mutated(data, Random(seed)) != data for seed in range(200)) > 180
