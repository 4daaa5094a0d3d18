"""`elmo neighbours`."""

import json
from pathlib import Path

import pytest
from commands import invoke

from spacy_elmo import ElmoEmbedder, WordIndex, build_index

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
LINES = [
    "He sat on the bank of the river .",
    "The bank raised its rates .",
    "The Bank lent him money .",
    "The bank raised its rates .",
]
SMALL = ("-m", GOLDEN)
QUERY = ("-q", "She saw the bank of a bank .", "-w", "bank", *SMALL)


def run(*arguments: object, code: int = 0, stdin: str | None = None) -> str:
    result = invoke("elmo", "neighbours", *arguments, code=code, stdin=stdin)
    return result.stdout if code == 0 else " ".join(result.output.split())


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf8")
    return path


def test_values_and_order(text: Path, tmp_path: Path) -> None:
    printed = json.loads(run(text, *QUERY, "-n", 99, "--occurrence", 2, "--json"))
    assert printed["query"] == {"word": "bank", "place": 6, "sentence": QUERY[1]}
    n = sum(len(line.split()) for line in LINES)
    assert printed["corpus"] == {"words": n, "sentences": 4, "bad_lines": 0}
    assert printed["layer"] == 2
    build_index(text, tmp_path / "index", ElmoEmbedder(GOLDEN))
    found = WordIndex(tmp_path / "index", ElmoEmbedder(GOLDEN)).neighbours(QUERY[1], "bank", 99, occurrence=2)
    names = ("cosine", "number", "sentence", "place", "word")
    expected = [(one.cosine, one.sentence, " ".join(one.words), one.place, one.words[one.place]) for one in found]
    assert [tuple(one[name] for name in names) for one in printed["neighbours"]] == expected


def test_table_and_choices(text: Path) -> None:
    with text.open("ab") as file:
        file.write(b"the \xff bank\n")
    output = " ".join(run(text, *QUERY, "-n", 2).split())
    assert "query: She saw the *bank* of a bank ." in output
    assert "compared with 27 words in 4 sentences, by the cosine of their vectors in layer 2" in output
    assert "1 bad lines" in output
    assert "1 He sat on the *bank* of the river ." in output
    assert output.count("*") == 2 * 3
    others = json.loads(run(text, *QUERY, "-n", 99, "--other-words", "--one-per-sentence", "--json"))["neighbours"]
    assert {one["number"] for one in others} == {1, 2, 3}
    assert "bank" not in {one["word"].lower() for one in others}


@pytest.mark.slow
def test_the_index_is_written_once(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (*QUERY, "--json")
    expected = run(text, *arguments, "--layer", "mix")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
    index = tmp_path / "index"
    assert run(text, *arguments, "-i", index, "--layer", "mix") == expected
    with monkeypatch.context() as patch:
        patch.delattr("spacy_elmo.cli.neighbours.build_index")
        assert run(text, *arguments, "-i", index) == expected
        assert run(index, *arguments) == expected
    assert "another biLM" in run(index, *QUERY, "-m", "en_core", code=1)
    assert "--lang was given" in run(index, *arguments, "--lang", "en", code=1)
    assert "layer mix" in run(text, *arguments, "-i", index, "--layer", 1, code=1)
    text.write_text("Another bank .\n", encoding="utf8")
    assert "not of" in run(text, *arguments, "-i", index, code=1)
    found = json.loads(run(text, *arguments, "-i", index, "--force"))["neighbours"]
    assert {one["sentence"] for one in found} == {"Another bank ."}


def test_refusals(text: Path, tmp_path: Path) -> None:
    for arguments, part in (
        ((text, "-q", "the river bank.", "-w", "bank", "--tokenized", *SMALL), "'bank' does not occur in the query"),
        ((text, *QUERY, "--tokenized", "--lang", "en"), "lang is 'en', but tokenized says"),
        ((text, *QUERY, "--occurrence", 3), "the query has 'bank' 2 times"),
        ((text, *QUERY, "--layer", "top"), "the layer is 'top'"),
        ((tmp_path / "gone.txt", *QUERY), "no such file"),
        ((tmp_path, *QUERY, "-i", tmp_path / "index"), "inside"),
    ):
        assert part in run(*arguments, code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
    run(text, "-w", "bank", code=2)


def test_sentences(text: Path, tmp_path: Path) -> None:
    query = ("--sentences", "-q", "The bank raised its prices .", *SMALL, "-i", tmp_path / "index")
    vectors = ElmoEmbedder(GOLDEN).encode([query[2], *LINES], lang=None, normalize_embeddings=True)
    printed = json.loads(run(text, *query, "--no-center", "--json"))
    assert printed["layer"] == "mix"
    for one in printed["neighbours"]:
        assert one["sentence"] == LINES[one["number"] - 1]
        assert one["score"] == pytest.approx(vectors[one["number"]] @ vectors[0], abs=1e-5)
    output = " ".join(run(tmp_path / "index", *query[1:-2], "-n", 1).split())
    assert "compared with 4 sentences, by the cosine of their vectors, from which the mean" in output
    assert "2 The bank raised its rates ." in output
    assert "dot product" in run(text, *query, "--no-normalize")
    assert "--sentences asks for sentences" in run(text, *QUERY, "-i", tmp_path / "index", code=1)
    assert "--word was given with --sentences" in run(text, *QUERY, "--sentences", code=1)
    assert "--no-center was given without --sentences" in run(text, *QUERY, "--no-center", code=1)
    assert "--word is missing" in run(text, "-q", "a bank", code=2)
