"""`elmo probe`, through spaCy's own app."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import invoke, run
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"


@pytest.fixture
def corpora(tmp_path: Path) -> tuple[Path, Path]:
    """Words with a capital are N; so layer 0, which sees the characters, should learn more than nothing."""
    random = np.random.default_rng(0)
    words = ["Ada", "Bob", "Cyd", "runs", "sits", "eats"]
    paths = (tmp_path / "train.spacy", tmp_path / "dev.spacy")
    for path, n in zip(paths, (30, 10)):
        docs = DocBin()
        for _ in range(n):
            text = [words[i] for i in random.integers(0, len(words), 4)]
            tags = ["N" if word.istitle() else "V" for word in text]
            docs.add(Doc(Vocab(), words=text, tags=tags, ents=["B-PER" if tag == "N" else "O" for tag in tags]))
        docs.to_disk(path)
    return paths


def test_table(corpora: tuple[Path, Path]) -> None:
    output = run("elmo", "probe", *corpora, "--attr", "tag", "--model", GOLDEN, "--random", "--iterations", 20)
    assert "tag: 2 labels 120 tokens to train on, 40 to score" in output
    assert "% right biLM random weights" in output
    assert "most frequent label of the word 100.0" in output
    assert "layer 0 100.0 100.0" in output
    assert "mean of the layers" in output
    assert "F1" not in output


def test_what_is_told_of_labels(corpora: tuple[Path, Path]) -> None:
    docs = DocBin().from_disk(corpora[1])
    docs.add(Doc(Vocab(), words=["so"], ents=["B-X"]))
    docs.to_disk(corpora[1])
    options = ("--attr", "ent", "--model", GOLDEN, "--iterations", 1)
    output = run("elmo", "probe", *corpora, *options, "--limit", 20)
    assert "80 tokens to train on, 41 to score" in output
    assert "F1: of the labels other than O" in output
    assert "tokens whose label the training part lacks, so they count as wrong: 1" in output
    assert "TRAIN and DEV are the same file" in run("elmo", "probe", corpora[1], corpora[1], *options)


def test_json(corpora: tuple[Path, Path]) -> None:
    options = ("-a", "ent", "-m", GOLDEN, "--random", "--json", "--iterations", 20)
    printed = json.loads(invoke("elmo", "probe", *corpora, *options).stdout)
    layers = printed.pop("layers")
    assert printed == {
        "model": str(GOLDEN),
        "attribute": "ent",
        "labels": 2,
        "train_tokens": 120,
        "dev_tokens": 40,
        "dev_tokens_with_unknown_labels": 0,
        "majority": {"accuracy": 1.0, "f1": 1.0},
    }
    assert [row["layer"] for row in layers] == [0, 1, 2, "mean"]
    assert layers[0]["trained"] == layers[0]["random"] == {"accuracy": 1.0, "f1": 1.0}


def test_refusals(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    for arguments, part in (
        ((*corpora, "--attr", "vector"), "Expected a text, a number or a truth value"),
        ((*corpora, "--attr", "colour"), "--attr is 'colour'"),
        ((tmp_path / "a.csv", corpora[1]), "such as a table, write the docs to a .spacy file with spaCy's DocBin"),
        ((*corpora, "--attr", "tag", "--model", tmp_path), "options.json"),
    ):
        assert part in run("elmo", "probe", *arguments, code=1)
