"""`elmo embed`: one HDF5 file as AllenNLP writes it, and corpora."""

import gzip
import json
import shutil
import sys
from functools import partial
from pathlib import Path

import commands
import h5py
import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_elmo import ElmoEmbedder

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
FILES = ("--options-file", str(GOLDEN / "options.json"), "--weight-file", str(GOLDEN / "weights.hdf5"))
LINES = ["the cat sat .", "a dog ran", "the cat sat .", "yes"]
invoke = partial(commands.invoke, "elmo", "embed")
run = partial(commands.run, "elmo", "embed")
embed = partial(run, "--model", GOLDEN)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES), encoding="utf8")
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "vectors.hdf5"


@pytest.fixture(scope="module")
def embedder() -> ElmoEmbedder:
    return ElmoEmbedder(GOLDEN)


def arrays_in(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: dataset[()] for name, dataset in file.items() if name != "sentence_to_index"}


# One HDF5 file


def test_the_options_of_allennlps_command(text: Path, output: Path, embedder: ElmoEmbedder) -> None:
    """AllenNLP 0.9 declares --vocab-path, and reads it nowhere. Its logs have no carriage returns."""
    options = ["--all", "--vocab-path", output.parent / "vocab.txt", "--file-friendly-logging", "--cuda-device", -1]
    shown = invoke(text, output, *options, "--include-package", "a", "--include-package", "b", *FILES).output
    assert "\r" not in shown
    assert any("4/4" in line for line in shown.splitlines())
    assert "--vocab-path and --include-package do nothing" in " ".join(shown.split())
    assert not (output.parent / "vocab.txt").exists()
    for number, vectors in enumerate(embedder.embed_batch([line.split() for line in LINES])):
        np.testing.assert_allclose(arrays_in(output)[str(number)], vectors, atol=1e-5)


@pytest.mark.parametrize("option", ["--all", "--top", "--average", None])
def test_layers(text: Path, output: Path, embedder: ElmoEmbedder, option: str | None) -> None:
    result = invoke(text, output, *FILES, *([option] if option else []), "--batch-size", 3)
    assert "4 sentences," in " ".join(result.stdout.split())
    assert "\r" not in result.stderr  # no progress bar if it is not a terminal
    found = arrays_in(output)
    assert sorted(found) == ["0", "1", "2", "3"]
    for i, line in enumerate(LINES):
        layers = embedder.embed_sentence(line.split())
        expected = {"--top": layers[-1], "--average": layers.mean(0)}.get(option or "", layers)
        np.testing.assert_allclose(found[str(i)], expected, atol=1e-5)
    with h5py.File(output) as file:
        assert json.loads(file["sentence_to_index"][0]) == {"the cat sat .": "2", "a dog ran": "1", "yes": "3"}


def test_standard_input_and_sentence_keys(output: Path, embedder: ElmoEmbedder) -> None:
    """AllenNLP's command writes HDF5 whatever the name is."""
    stdin, output = "\ufeffnaïve words\r\n東京 .\r\n".encode(), output.with_suffix("")
    options = ("--format", "hdf5", "--use-sentence-keys", "--top", "--quiet")
    assert run("-", output, *FILES, *options, stdin=stdin) == ""
    found = arrays_in(output)
    assert set(found) == {"naïve words", "東京 ."}
    np.testing.assert_allclose(found["東京 ."], embedder.embed_sentence(["東京", "."])[-1], atol=1e-5)
    assert "standard input, line 2: not UTF-8" in run("-", output, *FILES, *options, stdin=b"a\n\xff\n", code=1)


def test_stateful(text: Path, output: Path) -> None:
    run(text, output, *FILES, "--stateful", "--batch-size", 2)
    embedder = ElmoEmbedder(GOLDEN, stateful=True)
    expected = list(embedder.embed_sentences([line.split() for line in LINES], 2))
    found = arrays_in(output)
    for i, array in enumerate(expected):
        np.testing.assert_allclose(found[str(i)], array, atol=1e-5)
    assert np.abs(found["0"] - found["2"]).max() > 1e-3


@pytest.mark.slow
def test_what_is_told(text: Path, output: Path, tmp_path: Path) -> None:
    warning = "--lang is de, but the biLM was trained on the language en"
    assert warning in run(text, output, "--lang", "de")
    for options in (["--lang", "en"], ["--lang", "de", *FILES]):  # these files have no card
        assert "was trained on" not in run(text, output, *options)
    text.write_text("a " + "b" * 60 + "\nc " + "d" * 60)
    assert "tokens with more bytes than the biLM reads, of which it did not see the rest: 2" in embed(text, output)
    empty = "texts without a word, such as empty lines, which were left out: 2"
    text.write_text("a b.\n\n \na dog.\n")
    assert empty in run(text, output, "--lang", "en", "--quiet", *FILES)
    assert sorted(arrays_in(output)) == ["0", "1"]  # numbered without them
    assert arrays_in(output)["1"].shape[1] == 3  # a, dog, .
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": ""}\n{"tokens": []}\n{"text": "b"}\n')
    assert empty in embed(tmp_path / "a.jsonl", output)
    assert "line 2: empty, and the vectors are numbered by lines. With --lang" in embed(text, output, code=1)


# Which biLM


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved pipelines: with no elmo pipe, with one, and with two."""
    folder = tmp_path_factory.mktemp("pipelines")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(folder / "none")
    nlp.tokenizer.add_special_case("raining", [{"ORTH": "rain"}, {"ORTH": "ing"}])
    nlp.add_pipe("elmo", config={"model": {"bilm": str(GOLDEN)}})
    nlp.to_disk(folder / "one")
    nlp.add_pipe("elmo", name="second", config={"attr": "second"})
    nlp.to_disk(folder / "two")
    return folder


@pytest.mark.slow
def test_models(pipelines: Path, text: Path, output: Path, tmp_path: Path, embedder: ElmoEmbedder) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run" / "model-best")
    (tmp_path / "run" / "config.cfg").write_text("")
    for arguments in (
        ("--model", tmp_path / "run"),
        ("--model", pipelines / "one"),
        ("--pipeline", pipelines / "two", "--pipe", "elmo"),
    ):
        run(text, output, *arguments)
        np.testing.assert_allclose(arrays_in(output)["0"], embedder.embed_sentence(LINES[0].split()), atol=1e-5)
    run(text, output, "--pipeline", pipelines / "two", "--pipe", "second")
    assert arrays_in(output)["0"].shape == (3, 4, 512)
    text.write_text("It isn't raining.\n")
    for options, expected in (
        ((), ["It", "is", "n't", "rain", "ing", "."]),
        (("--tokenized",), ["It", "isn't", "raining."]),
        (("--lang", "en"), ["It", "is", "n't", "raining", "."]),
    ):
        run(text, output, "--pipeline", pipelines / "one", *options)
        assert sentences_in(output) == [" ".join(expected)]


@pytest.mark.slow
def test_models_that_are_refused(pipelines: Path, text: Path, output: Path, tmp_path: Path) -> None:
    for arguments, part in (
        (("--model", GOLDEN, "--pipeline", pipelines / "one"), "--model and --pipeline"),
        (("--model", GOLDEN, "--pipe", "elmo"), "no pipeline was given"),
        (("--model", "en_core_web_sm"), "Most commands also take a saved pipeline"),
        (("--model", tmp_path), "options.json: no such file"),
        (("--pipeline", pipelines / "none"), "no elmo pipe; the pipeline has sentencizer"),
        (("--pipeline", pipelines / "two"), "several elmo pipes, elmo, second"),
        (("--pipeline", pipelines / "two", "--pipe", "third"), "--pipe is 'third'"),
        (("--pipeline", pipelines / "gone"), "can't be loaded"),
        (FILES[:2], "weight_file is not"),
    ):
        assert part in run(text, output, *arguments, code=1)
    assert list(output.parent.iterdir()) == []


# What is refused


def test_refusals(text: Path, output: Path, tmp_path: Path) -> None:
    for arguments, part in (
        ((text, output, "--all", "--top"), "--all and --top were given together"),
        ((text, output, "--all", "--layers", "top"), "Expected one of --layers, --all, --top and --average"),
        ((text, output.with_suffix(""), "--top"), "--top was given, as in AllenNLP. Expected --format hdf5"),
        ((output.parent, output), "a folder without files"),
        ((text, tmp_path), "no earlier command"),
        ((text, tmp_path / "a.npz"), "the end of its name tells no format"),
        ((text, "-"), "the output is '-'. Expected the name of a file"),
        ((text, output, "--workers", 2), "is one file, which one process writes"),
        ((text, output, "--engine", "foo"), "engine is 'foo'. Expected one of local, ray"),
        ((text, output, "--sentence"), "which hdf5 can't hold"),
        ((text, output.parent, "--stateful"), "--stateful is for one HDF5 file"),
        ((text, GOLDEN / "weights.hdf5", *FILES), "the file to write are the same"),
        ((text, output, "--cuda-device", 99), "the GPU 99 was asked for"),
        ((text, output, "--use-sentence-keys"), "sentence 3 can't be the key of its vectors: it is sentence 1, too"),
        ((text, output, "--lang", "de", "--tokenized"), "lang is 'de', but tokenized says"),
    ):
        assert part in run(*arguments, code=1)
    for option in ("--batch-size", "--gpu-id"):
        assert option in run(text, output, option, -2, code=2)
    text.write_text("")
    assert "empty. Expected text" in run(text, output, code=1)
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_was_there_stays(
    text: Path, output: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    output.write_text("before")

    def fail(*arguments: object, **options: object) -> None:
        raise error() if error is KeyboardInterrupt else error("on the way")  # Ctrl-C gives no arguments

    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    message = embed(text, output, code=130 if error is KeyboardInterrupt else 1)
    assert ("Earlier files stay" if error is KeyboardInterrupt else "on the way") in message
    assert output.read_text() == "before"
    assert list(output.parent.iterdir()) == [output]


# Corpora


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


def test_a_folder_of_shards(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (files / "e.txt").write_bytes(b"bad \xff\n")
    arguments = (files, out, "--format", "spacy", "--docs", "--layers", "top", "--shard-size", 30)
    said = embed(*arguments)
    assert "5 documents, 6 sentences, 16 tokens, " in said
    assert "/93.0" in said  # the progress bar; how far it is when it is drawn depends on the time
    assert "%" not in embed(*arguments, "--no-resume", "--quiet")
    assert "left out and listed in" in said
    assert len((out / "skipped.jsonl").read_text(encoding="utf8").splitlines()) == 1
    docs = [doc for path in sorted(out.glob("shards/*")) for doc in DocBin().from_disk(path).get_docs(Vocab())]
    assert [doc.text.strip() for doc in docs[2:]] == ["The river. A boat.", "isn't", "Yes"]
    assert [len(list(doc.sents)) for doc in docs] == [1, 1, 2, 1, 1]
    assert "of them made before" in embed(*arguments)
    assert "made before" not in embed(*arguments, "--no-resume")


def test_one_hdf5_file_of_any_input(files: Path, tmp_path: Path) -> None:
    embed(files, tmp_path / "a.hdf5")
    assert sentences_in(tmp_path / "a.hdf5") == ["It isn't raining.", "A bank.", "The river. A boat.", "isn't", "Yes"]
    embed(files, tmp_path / "b.hdf5", "--lang", "en", "--docs")
    split = ["It is n't raining .", "A bank .", "The river .", "A boat .", "isn't", "Yes"]
    assert sentences_in(tmp_path / "b.hdf5") == split
    (files / "e.jsonl").write_text("{\n", encoding="utf8")
    assert "e.jsonl, line 1: not JSON" in embed(files, tmp_path / "c.hdf5", code=1)
    assert not (tmp_path / "c.hdf5").exists()


def test_columns_and_fields(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,a bank\n", encoding="utf8")
    (tmp_path / "b.jsonl").write_text('{"title": "the river"}\n', encoding="utf8")
    options = ("--text-column", "body", "--text-field", "title")
    for name, text in (("a.csv", "a bank"), ("b.jsonl", "the river")):
        embed(tmp_path / name, tmp_path / f"{name}.hdf5", *options)
        assert sentences_in(tmp_path / f"{name}.hdf5") == [text]


@pytest.mark.filterwarnings("always::spacy_elmo.errors.StandardInputWarning")
def test_vectors_of_sentences_from_standard_input(tmp_path: Path) -> None:
    embed("-", tmp_path / "a.npy", "--sentence", "--layers", "all", "--tokenized", stdin=b"a b\nc\n")
    expected = [layers.mean(1) for layers in ElmoEmbedder(GOLDEN).embed_batch([["a", "b"], ["c"]])]
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), expected, atol=1e-5)
    assert "an .npy file has one vector a sentence" in embed("-", tmp_path / "b.npy", code=1)
    assert "standard input is read as text" in embed("-", tmp_path / "a.hdf5", stdin=b'{"text": "a"}\n')


@pytest.mark.parametrize(("ending", "package"), [("parquet", "pyarrow.parquet"), ("safetensors", "safetensors.numpy")])
def test_a_format_whose_package_is_missing(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, package: str
) -> None:
    """It is said before anything is written, so that the folder can be used with another format."""
    monkeypatch.setitem(sys.modules, package, None)
    for output in (tmp_path / "out", tmp_path / f"out.{ending}"):
        told = embed(files, output, "--format", ending, "--sentence", code=1)
        assert f"{package.partition('.')[0]} is missing" in told
        assert "needs no other package: hdf5 or spacy, or npy for vectors of sentences" in told
        assert not output.exists()
