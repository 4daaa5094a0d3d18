"""`elmo similar`, through spaCy's own app."""

import gzip
import json
import shutil
from functools import partial
from pathlib import Path

import commands
import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_elmo import ElmoEmbedder
from spacy_elmo.cli.similar import BATCH, marked, most_alike

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
TEXT = """He sat on the bank of the river .

The bank raised its rates .
No such word here .
The bank , a bank of the old kind , closed .
The Bank lent him money .
"""


run = partial(commands.run, "elmo", "similar")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf8")
    return path


def test_the_text_in_the_place_of_the_model(text: Path, golden: Path) -> None:
    for model in ("en_mini", "en_midi", "small", golden / "random_a"):
        output = run(text, model, "--word", "bank", code=1)
        assert f"similar {model} {text} --word WORD".replace(" ", "") in output.replace(" ", "")


# Ranking


def test_ranking() -> None:
    query = np.array([[1, 0], [0, 2]], np.float32)
    others = np.array([[[0, 1], [0, 1]], [[3, 0], [1, 1]], [[1, 1], [0, -1]], [[0, 0], [0, 5]]], np.float32)
    order, cosines = most_alike(query, others, 9)
    assert order.tolist() == [[1, 2, 0, 3], [0, 3, 1, 2]]  # equal ones in the order of the text
    np.testing.assert_allclose(cosines, [[1, 0.5**0.5, 0, 0], [1, 1, 0.5**0.5, -1]])
    order, cosines = most_alike(query, others, 1)
    assert order.tolist() == [[1], [0]]
    assert cosines.shape == (2, 1)


@settings(max_examples=50, deadline=None)
@given(
    # eighths: the square of a number near 0 would be lost in float32, and with it the direction
    arrays(np.float32, (6, 2, 3), elements=st.integers(-800, 800).map(lambda n: n / 8)),
    st.floats(0.5, 100),
)
def test_ranking_knows_no_length(vectors: np.ndarray, factor: float) -> None:
    query, others = vectors[0], vectors[1:]
    order, cosines = most_alike(query, others, 5)
    assert (np.sort(order, axis=1) == np.arange(5)).all()
    assert (np.diff(cosines, axis=1) <= 0).all()
    assert (np.abs(cosines) <= 1).all()
    _, scaled = most_alike(query * np.float32(factor), others, 5)
    np.testing.assert_allclose(scaled, cosines, atol=1e-5)


# Sentences


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


# Commands


def test_embedded_bilm(text: Path) -> None:
    output = run("en_mini", text, "--word", "bank")
    assert "line 1: He sat on the *bank* of the river . compared with 3 other occurrences" in output
    assert "layer 0 is left out" in output
    assert "layer 1 =" in output
    assert "layer 2 =" in output
    assert output.count("The *bank* raised its rates .") == 2
    assert output.count("*bank* , a bank of") == output.count("bank , a *bank* of") == 2
    assert "Bank" not in output


def test_values_and_order(text: Path) -> None:
    output = run(GOLDEN, text, "--word", "bank", "--top", 1)
    lines = [(line.split(), line.split().index("bank")) for line in TEXT.splitlines() if "bank" in line]
    lines.append((lines[2][0], 4))
    embedder = ElmoEmbedder(GOLDEN / "options.json", GOLDEN / "weights.hdf5")
    query, *others = [embedder.embed_sentence(words)[:, place] for words, place in lines]
    for layer in (1, 2):
        cosine = max(a[layer] @ query[layer] / np.linalg.norm(a[layer]) / np.linalg.norm(query[layer]) for a in others)
        assert f"layer {layer} " in output
        assert f"{cosine:.3f}" in output
    assert output.count("0.") == 2


def test_json(text: Path) -> None:
    printed = json.loads(run(GOLDEN, text, "--word", "bank", "--top", "2", "--json"))
    lines = TEXT.splitlines()
    assert printed["query"] == {"word": "bank", "line": 1, "place": 4, "sentence": lines[0]}
    assert printed["others"] == 3
    assert [layer["layer"] for layer in printed["layers"]] == [1, 2]
    embedder = ElmoEmbedder(GOLDEN / "options.json", GOLDEN / "weights.hdf5")
    query = embedder.embed_sentence(lines[0].split())[:, 4]
    for layer in printed["layers"]:
        assert len(layer["occurrences"]) == 2
        for other in layer["occurrences"]:
            assert other["word"] == "bank"
            assert lines[other["line"] - 1] == other["sentence"]
            vector = embedder.embed_sentence(other["sentence"].split())[layer["layer"], other["place"]]
            a, b = query[layer["layer"]].astype(np.float64), vector.astype(np.float64)
            assert other["cosine"] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-4)


def test_other_query_and_case(text: Path) -> None:
    assert "line 5: The *bank* , a bank" in run("en_mini", text, "--word", "bank", "--sentence", 5)
    output = run("en_mini", text, "--word", "BANK", "--ignore-case")
    assert "layer 0 =" in output
    assert "left out" not in output
    assert "The *Bank* lent" in output
    assert "compared with 4 other" in output


def test_standard_input_in_several_batches() -> None:
    n = 2 * BATCH + 3
    output = run(GOLDEN, "-", "--word", "bank", "--sentence", n, stdin="\n".join(f"bank {i}" for i in range(n)))
    assert f"line {n}: *bank* {n - 1} compared with {n - 1} other" in output


def test_pipeline(text: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    files = {"options_file": str(GOLDEN / "options.json"), "weight_file": str(GOLDEN / "weights.hdf5")}
    nlp.add_pipe("elmo", config={"model": files, "store": "mix"})
    nlp.to_disk(tmp_path / "saved")
    text.write_text("The bank's old.\nA river-bank.\nNo   bank  .\n")
    output = run(tmp_path / "saved", text, "--word", "bank")
    assert "line 1: The *bank* 's old . compared with 2 other" in output
    assert "A river - *bank* ." in output
    assert "No *bank* ." in output
    assert "no such" in run(tmp_path / "saved", tmp_path / "gone", "--word", "bank", code=1)
    assert "--pipe is 'x'" in run(tmp_path / "saved", text, "--word", "bank", "--pipe", "x", code=1)


def test_the_tokenizer_of_a_language(tmp_path: Path) -> None:
    """bank? and bank, are the word with punctuation if the text is split at blanks."""
    path = tmp_path / "text.txt"
    path.write_text("Where is the bank? The bank, of course.\nA bank .\n", encoding="utf8")
    found = json.loads(run("en_mini", path, "--word", "bank", "--lang", "en", "--json"))
    assert (found["query"]["line"], found["query"]["place"], found["others"]) == (1, 3, 2)
    words = [token.text for token in spacy.blank("en")("Where is the bank? The bank, of course.")]
    vectors = ElmoEmbedder("en_mini").embed_batch([words, ["A", "bank", "."]])
    one, other = vectors[0][2, 3], vectors[1][2, 1]
    cosine = one @ other / np.sqrt((one @ one) * (other @ other))
    (last,) = [layer for layer in found["layers"] if layer["layer"] == 2]
    (of_line_2,) = [each for each in last["occurrences"] if each["line"] == 2]
    assert of_line_2["cosine"] == pytest.approx(float(cosine), abs=1e-5)
    pipeline = tmp_path / "pipeline"
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.to_disk(pipeline)
    told = run(pipeline, path, "--word", "bank", "--lang", "en", code=1)
    assert "splits text with its own tokenizer" in told
    assert "--lang" not in run(pipeline, path, "--word", "lake", code=1)


def test_the_folder_of_a_run(text: Path, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run" / "model-best")
    (tmp_path / "run" / "config.cfg").write_text("")
    assert run(tmp_path / "run", text, "--word", "bank") == run(GOLDEN, text, "--word", "bank")


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt.gz"])
def test_other_kinds_of_text(name: str, text: Path) -> None:
    """The line of an object or of a packed file is told, too."""
    path = text.with_name(name)
    records = "".join(json.dumps({"text": line}) + "\n" for line in TEXT.splitlines())
    path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith(".gz") else records.encode())
    assert run(GOLDEN, path, "--word", "bank") == run(GOLDEN, text, "--word", "bank")


def test_refusals(text: Path, tmp_path: Path, golden: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "half").mkdir()
    shutil.copy(GOLDEN / "options.json", tmp_path / "half")
    for arguments, part in (
        (("en_mini", text, "--word", "lake"), "the word 'lake' does not occur"),
        (("en_mini", text, "--word", "lake"), "Without --lang, a biLM splits a text at blanks"),
        (("en_mini", text, "--word", "river"), "--lang en splits it"),
        (("en_mini", text, "--word", "bank", "--lang", "zz"), "zz"),
        (("en_mini", text, "--word", "river"), "occurs once, in line 1"),
        (
            ("en_mini", text, "--word", "bank", "--sentence", 4),
            "--sentence is 4, but that line has no 'bank'. Expected one of the lines 1, 3, 5",
        ),
        (("en_mini", tmp_path / "gone", "--word", "bank"), "no such file"),
        (("en_mini", golden / "random_a", "--word", "bank"), "files. Expected one"),
        (("en_mini", text, "--word", "bank", "--pipe", "elmo"), "no pipeline was given"),
        ((tmp_path / "empty", text, "--word", "bank"), "options.json: no such file"),
        ((tmp_path / "half", text, "--word", "bank"), "weights.hdf5: no such file"),
        ((tmp_path / "gone", text, "--word", "bank"), "is no folder, no installed pipeline"),
    ):
        assert part in run(*arguments, code=1)
    assert "--top" in run("en_mini", text, "--word", "bank", "--top", 0, code=2)
    assert "--word" in run("en_mini", text, code=2)
    commands = {text: f"en_mini {text}", "-": "en_mini -", "en_mini": "en_mini TEXT", tmp_path: f"{tmp_path} TEXT"}
    for alone, command in commands.items():
        told = run(alone, "--word", "bank", code=1).replace(" ", "")
        assert f"similar {command} --word WORD".replace(" ", "") in told
    text.write_bytes(b"the bank\nthe bank \xff\n")
    assert "line 2: not UTF-8" in run("en_mini", text, "--word", "bank", code=1)
