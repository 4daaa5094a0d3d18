"""`elmo similar`."""

import json
from functools import partial
from pathlib import Path

import commands
import numpy as np
import pytest
import spacy

from spacy_elmo import ElmoEmbedder
from spacy_elmo.cli.similar import marked

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
TEXT = """He sat on the bank of the river .

The bank raised its rates .
No such word here .
The bank , a bank of the old kind , closed .
The Bank lent him money .
"""
run = partial(commands.run, "elmo", "similar")
SMALL = ("-m", GOLDEN)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf8")
    return path


def test_marked_sentences() -> None:
    assert marked(["the", "bank", "."], 1) == "the *bank* ."
    assert marked(["bank"], 0) == "*bank*"
    joined, reordered = "a\N{ZERO WIDTH NON-JOINER}b\N{ZERO WIDTH JOINER}c", "a\N{RIGHT-TO-LEFT OVERRIDE}b"
    assert marked([joined, reordered], 0) == f"*{joined}* a\N{REPLACEMENT CHARACTER}b"
    shown = marked([f"w{i}" for i in range(100)], 50)
    assert shown.startswith("... w4")
    assert " w49 *w50* w51 " in shown
    assert shown.endswith(" ...")
    assert len(shown) < 90
    assert len(marked(["x" * 9_000] * 3, 1)) < 90


def test_the_table(text: Path) -> None:
    output = run(text, "--word", "bank")
    assert "line 1: He sat on the *bank* of the river . compared with 3 other occurrences" in output
    assert "layer 0 is left out" in output
    assert "layer 1 =" in output
    assert "layer 2 =" in output
    assert output.count("The *bank* raised its rates .") == 2
    assert output.count("*bank* , a bank of") == output.count("bank , a *bank* of") == 2
    assert "Bank" not in output
    output = run(text, *SMALL, "--word", "BANK", "--ignore-case", "--sentence", 5)
    assert "line 5: The *bank* , a bank" in output
    assert "layer 0 =" in output
    assert "left out" not in output
    assert "The *Bank* lent" in output
    assert "compared with 4 other" in output


def test_json(text: Path) -> None:
    printed = json.loads(run(text, *SMALL, "--word", "bank", "--top", "2", "--json"))
    lines = TEXT.splitlines()
    assert printed["query"] == {"word": "bank", "line": 1, "place": 4, "sentence": lines[0]}
    assert printed["others"] == 3
    assert [layer["layer"] for layer in printed["layers"]] == [1, 2]
    embedder = ElmoEmbedder(GOLDEN)
    query = embedder.embed_sentence(lines[0].split())[:, 4].astype(np.float64)
    words = lines[4].split()
    places = [(lines[2].split(), 1), (words, 1), (words, 4)]
    vectors = np.stack([embedder.embed_sentence(words)[:, place] for words, place in places]).astype(np.float64)
    cosines = (vectors * query).sum(2) / np.linalg.norm(vectors, axis=2) / np.linalg.norm(query, axis=1)
    for layer in printed["layers"]:
        for other in layer["occurrences"]:
            assert other["word"] == "bank"
            assert lines[other["line"] - 1] == other["sentence"]
        expected = np.sort(cosines[:, layer["layer"]])[::-1][:2]
        assert [other["cosine"] for other in layer["occurrences"]] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_pipelines_and_languages(text: Path, tmp_path: Path) -> None:
    """bank? is the word with punctuation if the text is split at blanks."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": str(GOLDEN)}, "store": "mix"})
    saved = tmp_path / "saved"
    nlp.to_disk(saved)
    text.write_text("The bank's old.\nA river-bank?\nNo   bank  .\n")
    output = run(text, "-m", saved, "--word", "bank")
    assert "line 1: The *bank* 's old . compared with 2 other" in output
    assert "A river - *bank* ?" in output
    assert "No *bank* ." in output
    assert run(text, *SMALL, "--word", "bank", "--lang", "en") == output
    assert "--pipe is 'x'" in run(text, "-m", saved, "--word", "bank", "--pipe", "x", code=1)
    assert "--lang" not in run(text, "-m", saved, "--word", "lake", code=1)


def test_the_line_of_a_json_object(text: Path) -> None:
    path = text.with_name("a.jsonl")
    path.write_text("".join(json.dumps({"text": line}) + "\n" for line in TEXT.splitlines()))
    assert run(path, *SMALL, "--word", "bank") == run(text, *SMALL, "--word", "bank")


def test_refusals(text: Path, tmp_path: Path) -> None:
    for arguments, part in (
        ((text, "--word", "lake"), "the word 'lake' does not occur"),
        ((text, "--word", "river"), "occurs once, in line 1"),
        ((text, "--word", "river", "--tokenized"), "leave out --tokenized"),
        ((text, "--word", "bank", "--sentence", 4), "has no 'bank'. Expected one of the lines 1, 3, 5"),
        ((GOLDEN, "--word", "bank"), "files. Expected one"),
        ((text, "--word", "bank", "-m", tmp_path), "options.json: no such file"),
    ):
        assert part in run(*SMALL, *arguments, code=1)
    assert "--top" in run(text, "--word", "bank", "--top", 0, code=2)
    text.write_bytes(b"the bank\nthe bank \xff\n")
    assert "line 2: not UTF-8" in run(text, *SMALL, "--word", "bank", code=1)
