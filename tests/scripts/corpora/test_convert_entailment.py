"""Pairs of each kind of source become docs; the development part shares no premise with the training part."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from scripts.corpora.convert_entailment import Pair, divide, main, read_pairs
from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.entailment.pairs import pair_of

EXPECTED = [Pair("neutral", "A man sleeps .", "He is old ."), Pair("entailment", "Two dogs", '" A dog')]


def test_tabs(tmp_path: Path) -> None:
    source = tmp_path / "x.tsv"
    source.write_text('neutral\tA man sleeps . \tHe is old .\nentailment\tTwo  dogs\t" A dog\n', encoding="utf-8")
    assert read_pairs(source) == EXPECTED


def test_json(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(
        '{"premise": "A man sleeps .", "hypothesis": "He is old . ", "label": "neutral"}\n'
        '{"premise": "Two  dogs", "hypothesis": "\\" A dog", "label": "entailment", "more": 1}\n',
        encoding="utf-8",
    )
    assert read_pairs(source) == EXPECTED


def test_columns_of_sick(tmp_path: Path) -> None:
    source = tmp_path / "SICK_x.txt"
    source.write_text(
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
        '1\tA man sleeps .\tHe is old .\t4.5\tNEUTRAL\r\n2\tTwo  dogs\t" A dog\t3\tENTAILMENT\r\n',
        encoding="utf-8",
    )
    assert read_pairs(source) == EXPECTED


def parallel(folder: Path, labels: str) -> Path:
    (folder / "labels.dev").write_text(labels, encoding="utf-8")
    (folder / "s1.dev").write_text("A man sleeps . \nTwo  dogs \n", encoding="utf-8")
    (folder / "s2.dev").write_text('He is old . \n" A dog \n', encoding="utf-8")
    return folder / "labels.dev"


def test_parallel_files(tmp_path: Path) -> None:
    assert read_pairs(parallel(tmp_path, "neutral\nentailment\n")) == EXPECTED
    with pytest.raises(CorpusError, match="it and the files s1 and s2 beside it have 3, 2 and 2 lines"):
        read_pairs(parallel(tmp_path, "neutral\nentailment\nneutral\n"))


@pytest.mark.parametrize(("number", "kept"), [(1, 4), (2, 2), (3, 2), (4, 1), (5, 0), (9, 0)])
def test_premises_stay_together(number: int, kept: int) -> None:
    pairs = [Pair("neutral", premise, "h") for premise in "abccd"]
    first, last = divide(pairs, number)
    assert len(first) == kept
    assert [*first, *last] == pairs


def test_docs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, more = tmp_path / "x.tsv", tmp_path / "y.tsv"
    source.write_text("".join(f"{label}\t{text}\th\n" for label, text in zip(("neutral", "neutral"), "ab")))
    more.write_text("neutral\tIt's c\tHe can't\nentailment\td\th\n")
    main(tmp_path / "train.spacy", [source, more], tmp_path / "dev.spacy", 1)
    vocab = spacy.blank("en").vocab
    train, dev = (list(DocBin().from_disk(tmp_path / f"{name}.spacy").get_docs(vocab)) for name in ("train", "dev"))
    assert [doc.text for doc in dev] == ["b\nh"]
    assert [doc.text for doc in train] == ["a\nh", "It's c\nHe can't", "d\nh"]
    assert train[1].cats == {"contradiction": 0.0, "entailment": 0.0, "neutral": 1.0}
    pair = pair_of(train[1])
    assert pair is not None
    assert [[token.text for token in part] for part in pair] == [["It", "'s", "c"], ["He", "ca", "n't"]]
    assert "always neutral, the most frequent class, would be 66.7% right" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.tsv", "neutral\ta\n", "line 1: .*Expected a class, a premise and a hypothesis"),
        ("x.tsv", "neutral\ta\tb\nneutral\t \tb\n", "line 2: .*none of them empty"),
        ("x.tsv", "maybe\ta\tb\n", "line 1: the class is 'maybe'. Expected one of contradiction, entailment, neutral"),
        ("x.tsv", "", "no sentences in it"),
        ("x.jsonl", "{}\n", "line 1: .*Expected a class"),
        ("x.jsonl", "no\n", "line 1: .*Expected a class"),
        ("x.jsonl", "[1]\n", "line 1: .*Expected a class"),
        ("SICK_x.txt", "pair_ID\tsentence_A\n1\ta\n", "line 2: .*Expected a class"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    source = tmp_path / name
    source.write_text(text)
    with pytest.raises(CorpusError, match=message) as error:
        main(tmp_path / "out.spacy", [source])
    assert name in str(error.value)
    assert not (tmp_path / "out.spacy").exists()


def test_files_that_would_be_lost(tmp_path: Path) -> None:
    source, target = tmp_path / "x.tsv", tmp_path / "x.spacy"
    source.write_text("neutral\tA man sits .\tA man reads .\n", encoding="utf8")
    for arguments in ((source, [source]), (target, [source], target), (target, [source], source)):
        with pytest.raises(CorpusError, match="would be replaced by its own conversion"):
            main(*arguments)
    assert not target.exists()
    assert source.read_text().startswith("neutral")
