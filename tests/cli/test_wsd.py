"""`elmo wsd`, through spaCy's own app."""

import json
from pathlib import Path

import pytest
from commands import invoke, run

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
TRAIN = [["He|-", "banks|bank v save"], ["the|-", "bank|bank n river"], ["a|-", "bank|bank n money"]]
# The first is the first sentence of the training corpus again, so every layer finds it; so is the third.
# "lake" is not in the training corpus.
TEST = [
    ["He|-", "banks|bank v save"],
    ["the|-", "bank|bank n money"],
    ["a|-", "bank|bank n money"],
    ["lake|lake n water"],
]


def write(path: Path, sentences: list[list[str]]) -> Path:
    lines = []
    for sentence in sentences:
        for token in sentence:
            word, tag = token.split("|")
            lines.append("\t".join([word, *(["", "", "-"] if tag == "-" else tag.split())]))
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf8")
    return path


@pytest.fixture
def corpora(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "train.tsv", TRAIN), write(tmp_path / "first.tsv", TEST)


def test_table(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    """Layer 0 knows the word alone: both senses of "bank" have the same vector there.

    Layers 1 and 2 see "the" and "a", so they answer river and money: 2 of 3 answers are right, of 4 instances.
    """
    (tmp_path / "other").mkdir()
    second = write(tmp_path / "other" / "first.tsv", TEST[2:3])  # of the same name
    output = run("elmo", "wsd", *corpora, second, "--model", GOLDEN)
    assert "training corpus: 3 senses of 2 lemmas" in output
    assert "F1 in % first first all" in output
    assert "instances 4 1 5" in output
    assert "not in the training corpus 1 0 1" in output
    assert "first sense 28.6 0.0 22.2" in output  # river comes first: 1 right of 3 answers and 4; of 4 and 5
    assert "layer 1 57.1 100.0 66.7" in output
    assert "layer 2 57.1 100.0 66.7" in output
    assert "the most frequent one in the training corpus" in output
    assert "TRAIN is a test set too" not in output
    assert "without an answer, because no first sense is known: 1" in output


def test_listed_first_senses(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    listed = tmp_path / "listed.tsv"
    listed.write_text("lake\tn\twater\nbank\tn\tmoney\n", encoding="utf8")
    arguments = ["elmo", "wsd", *map(str, corpora), "-m", str(GOLDEN), "--first-senses", str(listed), "--json"]
    printed = json.loads(invoke(*arguments).stdout)
    assert (printed["lemmas"], printed["senses"], printed["first_senses"]) == (2, 3, "listed")
    [test] = printed["tests"]
    assert test == {"test": str(corpora[1])} | printed["all"]
    assert (test["instances"], test["not_in_training"]) == (4, 1)
    assert test["first_sense"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert [row["layer"] for row in test["layers"]] == [0, 1, 2, "mean"]
    assert test["layers"][1] == {"layer": 1, "precision": 0.75, "recall": 0.75, "f1": 0.75}


def test_refusals(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    again = tmp_path / ".." / tmp_path.name / corpora[1].name
    assert "are the same file" in run("elmo", "wsd", *corpora, again, code=1)
    assert "Expected a lemma" in run("elmo", "wsd", *corpora, "--first-senses", corpora[0], code=1)
    assert "options.json" in run("elmo", "wsd", *corpora, "--model", tmp_path, code=1)


def test_the_training_corpus_as_a_test_set(corpora: tuple[Path, Path]) -> None:
    assert "TRAIN is a test set too" in run("elmo", "wsd", corpora[0], corpora[0], "--model", GOLDEN)
