"""Corpora with senses and lists of first senses."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fake_bilm import fake_bilm

from spacy_elmo.analysis.senses import (
    Instance,
    Lemma,
    SenseInventory,
    SenseScore,
    SenseSentence,
    all_together,
    evaluate,
    instance_vectors,
    read_first_senses,
    read_senses,
)
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.errors import CorpusError

TEXT = """# a comment
The\t\t\t-
natural gas\tnatural_gas\tn\tgas1
burns\tburn\tv\tburn1 burn2

No\tno\td\t-

#\t\t\t-
Bank\tbank\tn\tbank2
"""


def test_senses(tmp_path: Path) -> None:
    path, packed = tmp_path / "a.tsv", tmp_path / "a.tsv.gz"
    path.write_text(TEXT, encoding="utf8")
    packed.write_bytes(gzip.compress(TEXT.replace("\n", "\r\n").encode()))
    gas = Instance(1, 3, Lemma("natural_gas", "n"), ("gas1",))
    burn = Instance(3, 4, Lemma("burn", "v"), ("burn1", "burn2"))
    bank = Instance(1, 2, Lemma("bank", "n"), ("bank2",))
    expected = [SenseSentence(["The", "natural", "gas", "burns"], [gas, burn]), SenseSentence(["#", "Bank"], [bank])]
    assert read_senses(path) == read_senses(packed) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n", "line 1: 'a\\\\tb'. Expected a word, its lemma"),
        ("a\tb\tn\t-\n\nbank\tbank\tn\n", "line 3: "),
        ("\tbank\tn\tbank1\n", "line 1: "),
        ("bank\tbank\tn\t\n", "line 1: "),
        ("bank\t\tn\tbank1\n", "line 1: a sense without a lemma"),
        ("bank\tbank\t\tbank1\n", "line 1: a sense without a part of speech"),
        ("a\tb\tn\t-\n", "no word with a sense"),
        ("", "no word with a sense"),
        ("a\t\t\t-\n\udcff\t\t\t-\n", "line 2: not UTF-8"),
    ],
)
def test_bad_lines(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(text, encoding="utf8", errors="surrogateescape")
    with pytest.raises(CorpusError, match=message):
        read_senses(path)
    for path, kind in ((tmp_path / "gone", "gone: no such file"), (tmp_path, "a folder or a special file")):
        with pytest.raises(CorpusError, match=rf"{kind}\. Expected a text with tabs"):
            read_senses(path)


def test_first_senses(tmp_path: Path) -> None:
    path = tmp_path / "first.tsv"
    path.write_text("bank\tn\tbank1 \nbank\tv\tbank7\n\n", encoding="utf8")
    assert read_first_senses(path) == {Lemma("bank", "n"): "bank1", Lemma("bank", "v"): "bank7"}
    for text, message in (
        ("bank\tn\n", "line 1: .* Expected a lemma"),
        ("bank\tn\t\n", "line 1: "),
        ("bank\tn\t-\n", "line 1: .* and the first sense"),
        ("bank\tn\tbank1 bank2\n", "line 1: .* and the first sense"),
        ("\n", "no first senses"),
        ("bank\tn\ta\nbank\tn\ta\n", r"line 2: bank \(n\) again"),
    ):
        path.write_text(text, encoding="utf8")
        with pytest.raises(CorpusError, match=message):
            read_first_senses(path)


BANK, LAKE = Lemma("bank", "n"), Lemma("lake", "n")


def rows(*vectors: tuple[float, float]) -> np.ndarray:
    return np.array(vectors, np.float32)


def inventory() -> SenseInventory:
    """bank has money, twice, and river. Row 0 has their means (3, 0) and (0, 9), row 1 (0, 2) and (8, 1)."""
    made = SenseInventory()
    made.add(Instance(0, 1, BANK, ("river",)), rows((0, 9), (8, 1)))
    made.add(Instance(0, 1, BANK, ("money",)), rows((2, -1), (-1, 1)))
    made.add(Instance(0, 1, BANK, ("money",)), rows((4, 1), (1, 3)))
    return made


def test_inventory() -> None:
    made = inventory()
    assert BANK in made
    assert LAKE not in made
    assert (len(made), made.n_senses) == (1, 2)
    assert made.most_frequent(BANK) == "money"
    assert made.most_frequent(LAKE) is None
    # by length the second vector would be nearer to (0, 2); the cosine does not know lengths
    assert made.nearest(BANK, rows((2, 1), (1, 0.2))) == ["money", "river"]
    assert made.nearest(BANK, rows((0, 0), (0, 5))) == ["river", "money"]  # of equals the first


def test_several_senses_of_one_instance() -> None:
    made = SenseInventory()
    made.add(Instance(0, 1, BANK, ("a", "b")), rows((1, 0)))
    made.add(Instance(0, 1, BANK, ("b",)), rows((0, 1)))
    assert made.most_frequent(BANK) == "b"
    made.add(Instance(0, 1, LAKE, ("z",)), rows((1, 0)))
    made.add(Instance(0, 1, LAKE, ("a",)), rows((1, 0)))
    assert made.most_frequent(LAKE) == "z"  # of equals the first
    assert made.nearest(BANK, rows((1, 0))) == ["a"]
    assert made.nearest(BANK, rows((1, 1))) == ["b"]  # its mean is (1/2, 1/2)


def test_evaluation() -> None:
    made = inventory()
    instances = [
        (Instance(0, 1, BANK, ("money",)), rows((1, 0), (1, 0))),  # row 0: money, row 1: river
        (Instance(0, 1, BANK, ("river", "slope")), rows((0, 1), (0, 1))),  # row 0: river, row 1: money
        (Instance(0, 1, LAKE, ("water",)), rows((1, 0), (1, 0))),  # not in training
    ]
    result = evaluate(made, {}, instances, 2)
    assert result.unseen == 1
    assert result.first_sense == SenseScore(right=1, answered=2, instances=3)
    assert result.rows == [SenseScore(2, 2, 3), SenseScore(0, 2, 3)]
    listed = evaluate(made, {LAKE: "water", BANK: "river"}, instances, 2)
    assert listed.first_sense == SenseScore(2, 3, 3)  # river for both banks
    assert listed.rows == [SenseScore(3, 3, 3), SenseScore(1, 3, 3)]
    both = all_together([result, listed])
    assert both.unseen == 2
    assert both.first_sense == SenseScore(3, 5, 6)
    assert both.rows == [SenseScore(5, 5, 6), SenseScore(1, 5, 6)]


def test_scores() -> None:
    score = SenseScore(right=2, answered=4, instances=5)
    assert (score.precision, score.recall) == (0.5, 0.4)
    assert score.f1 == pytest.approx(2 * 0.5 * 0.4 / 0.9)
    assert SenseScore(3, 4, 4).f1 == 0.75
    assert SenseScore().f1 == SenseScore().precision == SenseScore().recall == 0


def test_vectors() -> None:
    """Layer 0 has the place, layer 1 the length of the word; the last row is their mean."""

    def vector(layer: int, words: Sequence[str], place: int) -> Sequence[float]:
        return [place, 0] if layer == 0 else [0, len(words[place])]

    gas = Instance(1, 3, Lemma("natural_gas", "n"), ("gas",))
    bank = Instance(0, 1, BANK, ("money",))
    sentences = [SenseSentence(["the", "natural", "gas"], [gas]), SenseSentence(["bank"], [bank])]
    told: list[int] = []
    found = dict(instance_vectors(fake_bilm(2, 2, vector), sentences, told.append))
    assert found[gas].tolist() == [[1.5, 0], [0, 5], [0.75, 2.5]]
    assert found[bank].tolist() == [[0, 0], [0, 4], [0, 2]]
    assert told == [2]


def test_instances_come_in_the_order_of_the_text(golden: Path) -> None:
    """Though the biLM reads long sentences first: of equally frequent senses the first one counts."""
    bilm = BiLMChoice(str(golden / "random_a")).load()
    for lengths in ((2, 9, 5), (9, 2, 5)):
        sentences = [
            SenseSentence(["bank", *["x"] * n], [Instance(0, 1, BANK, (str(place),))])
            for place, n in enumerate(lengths)
        ]
        found = [instance.senses for instance, _ in instance_vectors(bilm, sentences)]
        assert found == [("0",), ("1",), ("2",)]
