"""`elmo embed` on other inputs than plain text and to other outputs than one HDF5 file."""

import gzip
import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo import ElmoEmbedder
from spacy_elmo.pipeline.attributes import register

embed_command = sys.modules["spacy_elmo.cli.embed"]  # spacy_elmo.cli.embed is the function
BILM = str(Path(__file__).parents[1] / "golden" / "random_a")


def run(*arguments: object, code: int = 0, stdin: bytes | None = None) -> str:
    command = ["elmo", "embed", "--model", BILM, *map(str, arguments)]
    result = CliRunner().invoke(app, command, input=stdin)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def sentences_in(path: Path) -> list[str]:
    with h5py.File(path) as file:
        index = json.loads(file["sentence_to_index"][0])
    return sorted(index, key=lambda sentence: int(index[sentence]))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("It isn't raining.\n", encoding="utf8")
    (folder / "b.txt.gz").write_bytes(gzip.compress(b"A bank.\n"))
    (folder / "c.jsonl").write_text('{"text": "The river. A boat."}\n{"tokens": ["isn\'t"]}\n', encoding="utf8")
    (folder / "d.conllu").write_text("1\tYes\t_\n\n", encoding="utf8")
    return folder


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("out", ("--format", "npy", "--sentence"), "If there was a file of that name before, it is unchanged"),
        ("out", (), "The finished shards stay in"),
        ("out.npy", ("--sentence", "--shard-size", 100), "The finished shards stay in"),
    ],
)
def test_what_is_left_of_a_stopped_command(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: tuple[object, ...], message: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(embed_command, "embed_corpus", stop)
    assert message in run(files, tmp_path / name, *arguments, code=130)


def test_a_folder_of_shards(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (files / "e.txt").write_bytes(b"bad \xff\n")
    arguments = (files, out, "--format", "spacy", "--docs", "--layers", "top", "--shard-size", 30)
    said = run(*arguments)
    assert "5 documents, 6 sentences, 16 tokens, " in said
    assert "left out and listed in" in said
    assert len((out / "skipped.jsonl").read_text(encoding="utf8").splitlines()) == 1
    register("elmo")  # as an elmo pipe does
    docs = [doc for path in sorted(out.glob("shards/*")) for doc in DocBin().from_disk(path).get_docs(Vocab())]
    assert [[token.text for token in doc] for doc in docs] == [
        ["It", "is", "n't", "raining", "."],
        ["A", "bank", "."],
        ["The", "river", ".", "A", "boat", "."],
        ["isn't"],
        ["Yes"],
    ]
    assert [len(list(doc.sents)) for doc in docs] == [1, 1, 2, 1, 1]
    for doc in docs:
        words = [[token.text for token in sentence] for sentence in doc.sents]
        expected = np.concatenate([layers[-1] for layers in ElmoEmbedder(BILM).embed_batch(words)])
        np.testing.assert_allclose(doc._.elmo, expected, atol=1e-5)
    assert "of them made before" in run(*arguments)
    assert "made before" not in run(*arguments, "--no-resume")


def test_quiet(files: Path, tmp_path: Path) -> None:
    assert run(files, tmp_path / "out", "--format", "spacy", "--quiet") == ""
    assert run(files, tmp_path / "a.hdf5", "--quiet") == ""


def test_one_hdf5_file_of_any_input(files: Path, tmp_path: Path) -> None:
    run(files, tmp_path / "a.hdf5")
    assert sentences_in(tmp_path / "a.hdf5") == ["It isn't raining.", "A bank.", "The river. A boat.", "isn't", "Yes"]
    run(files, tmp_path / "b.hdf5", "--lang", "en", "--docs")
    split = ["It is n't raining .", "A bank .", "The river .", "A boat .", "isn't", "Yes"]
    assert sentences_in(tmp_path / "b.hdf5") == split
    (files / "e.jsonl").write_text("{\n", encoding="utf8")
    assert "e.jsonl, line 1: not JSON" in run(files, tmp_path / "c.hdf5", code=1)
    assert not (tmp_path / "c.hdf5").exists()


@pytest.mark.parametrize("name", ["a.hdf5", "a.parquet", "out"])
def test_a_language_for_words_that_are_separated_by_blanks(files: Path, tmp_path: Path, name: str) -> None:
    output = run(files, tmp_path / name, "--lang", "de", "--tokenized", code=1)
    assert "lang is 'de', but tokenized says" in output
    assert not (tmp_path / name).exists()


@pytest.mark.slow
def test_the_tokenizer_of_a_pipeline(files: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.tokenizer.add_special_case("raining", [{"ORTH": "rain"}, {"ORTH": "ing"}])
    nlp.add_pipe("elmo", config={"model": {"bilm": BILM}})
    nlp.to_disk(tmp_path / "pipeline")
    for options, expected in (
        (("--pipeline", tmp_path / "pipeline"), "It is n't rain ing ."),
        (("--pipeline", tmp_path / "pipeline", "--tokenized"), "It isn't raining."),
        (("--pipeline", tmp_path / "pipeline", "--lang", "en"), "It is n't raining ."),
    ):
        result = CliRunner().invoke(
            app, ["elmo", "embed", str(files / "a.txt"), str(tmp_path / "a.hdf5"), *map(str, options)]
        )
        assert result.exit_code == 0, result.output
        assert sentences_in(tmp_path / "a.hdf5") == [expected]


def test_the_files_of_killed_commands_are_deleted(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / f".a.hdf5.{'0' * 32}.tmp").write_text("")
    (out / f".b.hdf5.{'0' * 32}.tmp").write_text("")
    run(files / "a.txt", out / "a.hdf5")
    assert sorted(path.name for path in out.iterdir()) == [f".b.hdf5.{'0' * 32}.tmp", "a.hdf5"]


def test_vectors_of_sentences_from_standard_input(tmp_path: Path) -> None:
    run("-", tmp_path / "a.npy", "--sentence", "--layers", "all", "--tokenized", stdin=b"a b\nc\n")
    expected = [layers.mean(1) for layers in ElmoEmbedder(BILM).embed_batch([["a", "b"], ["c"]])]
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), expected, atol=1e-5)
    assert "an .npy file has one vector a sentence" in run("-", tmp_path / "b.npy", code=1)


@pytest.mark.filterwarnings("always::spacy_elmo.errors.StandardInputWarning")
@pytest.mark.parametrize("options", [("a.npy", "--sentence"), ("a.hdf5",), ("b.hdf5", "--lang", "en")])
def test_json_lines_from_standard_input(options: tuple[str, ...], tmp_path: Path) -> None:
    told = run("-", tmp_path / options[0], *options[1:], stdin=b'{"text": "a"}\n')
    assert "standard input is read as text" in told
    assert "StandardInputWarning" not in told


@pytest.mark.parametrize("ending", ["hdf5", "parquet", "spacy", "safetensors"])
def test_names_that_are_not_utf8(tmp_path: Path, ending: str) -> None:
    """Python holds the other bytes as halves of surrogate pairs, which no format can store."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    text, out = tmp_path / "t\udcff.txt", tmp_path / f"o\udcff.{ending}"
    text.write_text("A bank .\n", encoding="utf8")
    run(text, out, "--tokenized")
    assert out.stat().st_size > 100
    if ending == "parquet":
        with out.open("rb") as file:
            assert parquet.read_table(file)["source"].to_pylist() == [f"{tmp_path}/t\\xff.txt"]
    elif ending == "spacy":
        [doc] = DocBin().from_disk(out).get_docs(Vocab())
        assert doc.user_data["source"] == f"{tmp_path}/t\\xff.txt"


@pytest.mark.parametrize(("ending", "package"), [("parquet", "pyarrow.parquet"), ("safetensors", "safetensors.numpy")])
def test_a_format_whose_package_is_missing(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str
) -> None:
    """It is said before anything is written, so that the folder can be used with another format."""
    monkeypatch.setitem(sys.modules, package, None)
    for output in (tmp_path / "out", tmp_path / f"out.{ending}"):
        told = run(files, output, "--format", ending, code=1)
        assert f"{package.partition('.')[0]} is missing" in told
        assert not output.exists()
    run(files, tmp_path / "out", "--format", "hdf5")
