"""Whole corpora: right vectors in every format, bad lines, resuming after kills, and errors that leave what is done."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo import ElmoEmbedder
from spacy_elmo.corpus import EmbedColumns, embed, find_sentence, writing
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.shards import MANIFEST, SKIPPED, Summary
from spacy_elmo.errors import CorpusError, ElmoError, NotEmbeddedError, SettingsError, VectorsError, WeightsError
from spacy_elmo.models.doc_layers import layers_of, vectors_of

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
BILM = str(GOLDEN)
LINES = ["The cat sat on the mat.", "A dog isn't here.", "Yes.", "The river bank, and another bank."] * 5
WORDS = [["The", "cat", "sat", "on", "the", "mat", "."], ["A", "dog", "is", "n't", "here", "."], ["Yes", "."],
         ["The", "river", "bank", ",", "and", "another", "bank", "."]] * 5  # fmt: skip
N_TOKENS = sum(map(len, WORDS))
COLUMNS = ["id", "source", "line", "sentence", "text", "tokens", "starts", "ends", "meta", "vectors"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(map(" ".join, WORDS)), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def expected() -> list[np.ndarray]:
    """The layers of each sentence."""
    return ElmoEmbedder(BILM).embed_batch(WORDS)


def run(inputs: Any, output: Path, **settings: Any) -> Summary:
    """Embed texts whose words are separated by blanks."""
    return embed(inputs, output, **{"bilm": BILM, "tokenized": True, **settings})


def shard(text: Path, output: Path, **settings: Any) -> Summary:
    """Embed a text into a folder of about ten shards."""
    return run(text, output, **{"format": "spacy", "shard_size": 100, **settings})


def contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def docs_of(path: Path) -> list[Any]:
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def no_space(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("language", "code"), [("de", "de"), pytest.param("not told", "en", marks=pytest.mark.slow)])
def test_text_is_split_as_the_language_of_the_card_needs(tmp_path: Path, language: str, code: str) -> None:
    shutil.copytree(GOLDEN, tmp_path / "bilm")
    (tmp_path / "bilm" / "README.md").write_text(f"| size | 1 |\n| language | {language} |\n", encoding="utf8")
    text = tmp_path / "text.txt"
    text.write_text("Das geht z.B. heute, d.h. jetzt, isn't it?", encoding="utf8")
    embed(text, tmp_path / "out", format="spacy", bilm=str(tmp_path / "bilm"))
    [shard] = (tmp_path / "out" / "shards").iterdir()
    [doc] = docs_of(shard)
    assert [token.text for token in doc] == [token.text for token in spacy.blank(code)(text.read_text("utf8"))]
    assert json.loads((tmp_path / "out" / MANIFEST).read_text("utf8").splitlines()[0])["tokenizer"] == code
    choice = BiLMChoice(options_file=str(tmp_path / "bilm" / "options.json"))
    assert choice.tokenizer(None)(text.read_text("utf8")) == [token.text for token in doc]


def test_parquet(text: Path, tmp_path: Path, expected: list[np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    text.write_text("\n".join(LINES), encoding="utf8")
    summary = run(text, tmp_path / "out", tokenized=False, lang="en", shard_size=100)
    assert (summary.sentences, summary.tokens, summary.skipped) == (20, N_TOKENS, 0)
    assert summary.shards > 2
    tables = [parquet.read_table(path) for path in sorted((tmp_path / "out" / "shards").iterdir())]
    rows = [row for table in tables for row in table.to_pylist()]
    assert [row["line"] for row in rows] == list(range(1, 21))
    assert {row["source"] for row in rows} == {str(text)}
    assert {(row["id"], row["sentence"], row["meta"]) for row in rows} == {(None, 0, None)}
    for row, line, words, layers in zip(rows, LINES, WORDS, expected):
        assert (row["tokens"], row["text"]) == (words, line)
        assert [line[start:end] for start, end in zip(row["starts"], row["ends"])] == words
        np.testing.assert_allclose(row["vectors"], layers.mean(0), atol=1e-5)
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 1)
    run(text, tmp_path / "a.parquet", layers="all", dtype="float16")
    file, width = parquet.ParquetFile(tmp_path / "a.parquet"), expected[0].shape[-1]
    assert file.num_row_groups == 20
    assert str(file.schema_arrow.field("layer_2").type.value_type) == f"fixed_size_list<element: halffloat>[{width}]"
    types = [str(field.type) for field in tables[0].schema]
    assert tables[0].schema.names == COLUMNS
    assert types[:5] == ["string", "string", "int64", "int32", "string"]
    assert types[5:9] == ["list<element: string>", "list<element: int32>", "list<element: int32>", "string"]


def test_mixes(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    (tmp_path / "mix.json").write_text(json.dumps([{"w": [0.0, 1.0, -1.0], "gamma": 2.0, "component": "ner"}]))
    run(text, tmp_path / "a.npy", layers=tmp_path / "mix.json", sentence=True)
    weights = np.exp([0.0, 1.0, -1.0]) / np.exp([0.0, 1.0, -1.0]).sum()
    vectors = [2 * np.tensordot(weights, layers, 1).mean(0) for layers in expected]
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), vectors, atol=1e-5)
    with pytest.raises(SettingsError, match="the mix has 2 weights"):
        run(text, tmp_path / "b.npy", layers={"w": [1, 2]}, sentence=True)


def test_docbins(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    """What is read of them is float32, also if float16 is stored."""
    run(text, tmp_path / "a.spacy", layers="top", dtype="float16")
    for doc, words, layers in zip(docs_of(tmp_path / "a.spacy"), WORDS, expected):
        assert doc.text == " ".join(words)
        assert doc.user_data["source"] == str(text)
        for part, wanted in ((doc, layers[-1]), (doc[1:].as_doc(copy_user_data=True), layers[-1, 1:])):
            got = vectors_of(part, attr="elmo")
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, wanted, atol=2e-3)
    with pytest.raises(
        NotEmbeddedError, match=r"not the layers that they were made of\..*mbed the text again with --layers all"
    ):
        layers_of(doc, attr="elmo")


def test_safetensors(text: Path, tmp_path: Path, expected: list[np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")
    run(text, tmp_path / "a.safetensors", layers="top")
    with safetensors.safe_open(tmp_path / "a.safetensors", "numpy") as file:
        ends, vectors = file.get_tensor("ends"), file.get_tensor("vectors")
        sentences = json.loads(file.metadata()["sentences"])
    assert [sentence["tokens"] for sentence in sentences] == WORDS
    for array, layers in zip(np.split(vectors, ends[:-1]), expected):
        np.testing.assert_allclose(array, layers[-1], atol=1e-5)
    monkeypatch.setattr(writing, "MOST_BYTES", 400)
    with pytest.raises(VectorsError, match=r"no room for the words of more than \d sentences"):
        run(text, tmp_path / "b.safetensors", layers="top")
    assert not (tmp_path / "b.safetensors").exists()


TOKENS = ["I", "live", "in", "New York", "\n", "25\xa0785"]


@pytest.mark.parametrize("kind", [".spacy", ".conllu", ".jsonl"])
def test_a_token_with_blanks_has_the_vector_of_the_pipeline(kind: str, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": BILM}})
    doc, path = nlp(Doc(nlp.vocab, words=TOKENS)), tmp_path / f"a{kind}"
    words = [token.text for token in doc if not token.is_space]
    expected = doc._.elmo_layers[:, [not token.is_space for token in doc]]
    if kind == ".spacy":
        DocBin(docs=[Doc(Vocab(), words=TOKENS)]).to_disk(path)
    elif kind == ".conllu":
        path.write_text("".join(f"{i}\t{word}\t_\n" for i, word in enumerate(words, 1)), encoding="utf8")
    else:
        path.write_text(json.dumps({"tokens": TOKENS}), encoding="utf8")
    for name in ("all.hdf5", "all.spacy"):
        run(path, tmp_path / name, layers="all")
    with h5py.File(tmp_path / "all.hdf5") as file:
        np.testing.assert_allclose(file["0"], expected, atol=1e-5)
        assert json.loads(file["sentence_to_index"][0]) == {"I live in New\u2423York 25\u2423785": "0"}
    [embedded] = docs_of(tmp_path / "all.spacy")
    assert [token.text for token in embedded] == words
    np.testing.assert_allclose(layers_of(embedded, attr="elmo"), expected, atol=1e-5)
    vectors = EmbedColumns(bilm=BILM, layers="top")({"text": [TOKENS]})["vectors"][0]
    np.testing.assert_allclose(vectors, expected[-1], atol=1e-5)


@pytest.mark.parametrize(
    ("format", "settings"),
    [
        ("hdf5", {}),
        ("spacy", {"layers": "all"}),
        ("spacy", {"layers": "top"}),
        ("parquet", {"layers": "all"}),
        ("parquet", {"layers": "top"}),
        ("safetensors", {"layers": "all"}),
        ("safetensors", {"layers": "top"}),
        ("safetensors", {"layers": "all", "sentence": True}),
        ("npy", {"layers": "all", "sentence": True}),
    ],
)
def test_a_sentence_is_found_by_its_number(
    text: Path, tmp_path: Path, expected: list[np.ndarray], format: str, settings: dict[str, Any]
) -> None:
    pytest.importorskip(writing.FORMATS[format].needs or "numpy")
    run(text, tmp_path / f"a.{format}", **settings)
    shard(text, tmp_path / "out", format=format, **settings)
    for output in (tmp_path / f"a.{format}", tmp_path / "out"):
        for number in (0, 1, 13, 19):
            found = find_sentence(output, number)
            layers = expected[number][-1] if settings.get("layers") == "top" else expected[number]
            np.testing.assert_allclose(
                found.vectors, layers.mean(-2) if settings.get("sentence") else layers, atol=1e-5
            )
            assert found.tokens in (
                [WORDS[number]] if format in ("spacy", "parquet", "safetensors") else [WORDS[number], None]
            )
            assert found.line in ([number + 1] if format in ("spacy", "parquet", "safetensors") else [None])
        for number in (20, -1, "3", None):
            with pytest.raises(CorpusError, match="no"):
                find_sentence(output, number)  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", ["all", "top"])
@pytest.mark.parametrize("sentence", [False, True])
def test_sentences_of_one_word_in_safetensors(layers: str, sentence: bool, tmp_path: Path) -> None:
    """As many rows are vectors of tokens or of sentences."""
    pytest.importorskip("safetensors")
    (tmp_path / "a.txt").write_text("Yes\nNo\nYes\n")
    run(tmp_path / "a.txt", tmp_path / "a.safetensors", layers=layers, sentence=sentence)
    for number, array in enumerate(ElmoEmbedder(BILM).embed_batch([["Yes"], ["No"], ["Yes"]])):
        wanted = array if layers == "all" else array[-1]
        found = find_sentence(tmp_path / "a.safetensors", number).vectors
        np.testing.assert_allclose(found, wanted.mean(-2) if sentence else wanted, atol=1e-5)


@pytest.mark.parametrize("format", ["hdf5", "spacy", "parquet", "safetensors", "npy"])
def test_a_damaged_output(text: Path, tmp_path: Path, format: str) -> None:
    pytest.importorskip(writing.FORMATS[format].needs or "numpy")
    path = tmp_path / f"a.{format}"
    run(text, path, layers="all", sentence=format == "npy")
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:10], b"", b"{}\n" * 99):
        path.write_bytes(damaged)
        with pytest.raises(ElmoError, match=rf"a\.{format}: .*Expected"):
            find_sentence(path, 13)


def test_damaged_manifests(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shard(text, out)
    settings = (out / MANIFEST).read_bytes().splitlines()[0]
    for line in (b"{", b"null", b'{"shard": 0, "new": 1}'):
        (out / MANIFEST).write_bytes(b"\n".join([settings, line, b""]))
        with pytest.raises(CorpusError, match=r"out: damaged, .*Expected its output"):
            find_sentence(out, 0)
        with pytest.raises(CorpusError, match=r"manifest.jsonl: damaged .* Begin anew with --no-resume"):
            shard(text, out)
    mine = out / "shards" / "part-of-mine.txt"
    mine.touch()
    assert shard(text, out, resume=False).resumed == 0
    assert mine.exists()


def test_a_folder_without_a_finished_shard_binds_nothing(text: Path, tmp_path: Path) -> None:
    """Without a size of shards, the one of the folder is kept."""
    shard(text, tmp_path / "out")
    for path in (tmp_path / "out" / "shards").iterdir():
        path.rename(path.with_name(f".{path.name}.{'0' * 32}.tmp"))
    n_shards = shard(text, tmp_path / "out", shard_size=200, format="npy", sentence=True).shards
    assert {path.suffix for path in (tmp_path / "out" / "shards").iterdir()} == {".npy"}
    assert shard(text, tmp_path / "out", shard_size=None, format="npy", sentence=True).resumed == n_shards


def test_bad_lines_are_listed(text: Path, tmp_path: Path) -> None:
    text.write_bytes(b"good .\n\xff\n\n" + b"word\n" * 30 + b"a\0b\nlast")
    for _ in range(2):  # the second time nothing is left to do
        summary = shard(text, tmp_path / "out", shard_size=20)
        assert (summary.sentences, summary.blank, summary.skipped) == (32, 1, 2)
        assert str(summary.first_skipped).startswith(f"{text}, line 2: not UTF-8")
        rows = [json.loads(line) for line in (tmp_path / "out" / SKIPPED).read_text().splitlines()]
        assert [(row["file"], row["line"]) for row in rows] == [(str(text), 2), (str(text), 34)]
    with pytest.raises(CorpusError, match=r"text.txt, line 2: not UTF-8"):
        run(text, tmp_path / "a.spacy")
    assert not (tmp_path / "a.spacy").exists()


def test_resuming_ends_in_the_same_files(text: Path, tmp_path: Path) -> None:
    """Shards are missing, one is cut as by a crash, a line of the manifest is cut, and a temporary file is left."""
    out = tmp_path / "out"
    shard(text, out)
    whole = contents(out)
    lines = (out / MANIFEST).read_bytes().splitlines(keepends=True)
    (out / MANIFEST).write_bytes(b"".join([*lines[:2], lines[3], lines[4], lines[2][:30]]))
    (out / "shards" / "part-000002.spacy").unlink()
    (out / "shards" / f".part-000001.spacy.{'0' * 32}.tmp").write_text("")
    with (out / "shards" / "part-000003.spacy").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 1)
    assert shard(text, out).resumed == 1
    assert contents(out) == whole


@pytest.mark.slow
def test_shards_of_other_settings_or_text_are_not_resumed(text: Path, tmp_path: Path) -> None:
    other = tmp_path / "bilm"
    shutil.copytree(GOLDEN, other)
    with h5py.File(other / "weights.hdf5", "r+") as file:
        file["char_embed"][0, 0] += 1
    out = tmp_path / "out"
    settings: dict[str, Any] = {"format": "npy", "sentence": True, "layers": {"w": [0, 1, 2], "gamma": 2.0}}
    shard(text, out, **settings)
    before = contents(out)
    changes: list[tuple[str, dict[str, Any]]] = [
        ("layers", {"layers": {"w": [0, 1, 2], "gamma": 3.0}}),
        ("layers", {"layers": {"w": [0, 1, 3], "gamma": 2.0}}),
        ("dtype", {"dtype": "float16"}),
        ("docs", {"docs": True}),
        ("tokenizer", {"tokenized": False, "lang": "xx"}),
        ("shard_size", {"shard_size": 200}),
        ("biLM", {"bilm": str(other)}),
    ]
    for name, change in changes:
        with pytest.raises(CorpusError, match=f"made with {name} "):
            shard(text, out, **{**settings, **change})
    text.write_text("other text\n" * 50)
    with pytest.raises(CorpusError, match="shard 0 was made of other text"):
        shard(text, out, **settings)
    text.write_text("\n".join(map(" ".join, WORDS[:5])))
    with pytest.raises(CorpusError, match="was made of other text"):
        shard(text, out, **settings)
    assert contents(out) == before
    summary = shard(text, out, **settings, resume=False)
    assert (summary.sentences, summary.resumed) == (5, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({"workers": number}, f"workers is {number!r}. Expected a whole number, 1 or more") for number in (0, True)),
        *(({"shard_size": number}, f"shard_size is {number!r}. Expected a whole number") for number in (-1, 2.0, "2")),
        ({"engine": "spark"}, "engine is 'spark'"),
        ({"address": "auto"}, "only the engine ray"),
        ({"format": "npy", "engine": "ray", "sentence": True}, "one file, which one process writes"),
        ({"format": "csv"}, "format is 'csv'. Expected one of parquet, hdf5"),
        ({"format": "spacy", "sentence": True}, "which spacy can't hold"),
        ({"format": "npy"}, "vectors of tokens were asked for. Add --sentence"),
        ({"format": "hdf5", "dtype": "float16"}, "HDF5 in AllenNLP's layout is float32"),
        ({"lang": "en"}, "Expected one of the two"),
        ({"layers": 2}, "layers is 2, which is no file. Expected one of all, top, mean"),
    ],
)
def test_settings_that_can_not_be_used(text: Path, tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        run(text, tmp_path / "out", **settings)
    assert os.listdir(tmp_path) == ["text.txt"]


@pytest.mark.parametrize("name", ["vectors.npy", "vectors.spacy", "vectors"])  # without a suffix, npy is one file too
def test_a_text_without_words_replaces_no_file(tmp_path: Path, name: str) -> None:
    text, out = tmp_path / "blank.txt", tmp_path / name
    text.write_text("\n\n")
    settings: dict[str, Any] = {} if name == "vectors.spacy" else {"sentence": True, "format": "npy"}
    for earlier in (None, b"vectors of another text"):
        if earlier is not None:
            out.write_bytes(earlier)
        with pytest.raises(CorpusError, match="no sentence that can be read; 2 lines, 2 of them blank, 0 bad"):
            run(text, out, **settings)
        assert (out.read_bytes() if out.exists() else None) == earlier
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["blank.txt", name])
    text.write_bytes(b"\xff")
    with pytest.raises(CorpusError, match=r"1 bad \(.*blank.txt, line 1: not UTF-8"):
        shard(text, tmp_path / "bad")


def test_a_folder_of_another_program_is_never_emptied(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "shards").mkdir(parents=True)
    (out / "shards" / "data").write_text("of somebody else")
    for manifest in (None, '{"another": "format"}\n', "[1]\n", "no JSON\n"):
        if manifest is not None:
            (out / MANIFEST).write_text(manifest)
        before = contents(out)
        with pytest.raises(CorpusError, match="no earlier command of this kind has written it"):
            shard(text, out, resume=False)
        assert contents(out) == before
    with pytest.raises(CorpusError, match=r"holds out, text\.txt, but no manifest"):
        shard(text, tmp_path)


@pytest.mark.parametrize("format", ["hdf5", "parquet"])
def test_a_disk_that_is_full_while_vectors_are_written(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    """An OSError without a file's name would be taken for standard output's."""
    owner: Any = h5py.File if format == "hdf5" else pytest.importorskip("pyarrow.parquet").ParquetWriter
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 1)  # else Parquet writes at the end
    monkeypatch.setattr(owner, "create_dataset" if format == "hdf5" else "write_table", no_space)
    with pytest.raises(VectorsError, match=rf"a\.{format}: can't be written \(.*No space left"):
        run(text, tmp_path / f"a.{format}")
    with pytest.raises(VectorsError, match=rf"shards/part-000000\.{format}: can't be written \(.*No space left"):
        shard(text, tmp_path / "out", format=format)
    assert sorted(os.listdir(tmp_path)) == ["out", "text.txt"]


def test_an_error_in_the_middle_leaves_finished_shards(text: Path, tmp_path: Path) -> None:
    (tmp_path / "z.txt.gz").write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(CorpusError, match=r"z.txt.gz: damaged"):
        shard([text, tmp_path / "z.txt.gz"], tmp_path / "out")  # type: ignore[arg-type]
    assert len([*(tmp_path / "out" / "shards").iterdir()]) > 2
    assert shard(text, tmp_path / "out").resumed > 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal")
def test_a_kill_of_several_processes(tmp_path: Path) -> None:
    """After a kill the command goes on, and ends in the files of one process that was not killed."""
    (tmp_path / "text.txt").write_text("".join(f"Sentence {i} has some words, not many.\n" for i in range(1_000)))
    start = [sys.executable, "-m", "spacy", "elmo", "embed", tmp_path / "text.txt", "--quiet"]
    start += ["--format", "spacy", "--shard-size", "5000"]
    command = [*start, tmp_path / "out", "--workers", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment)
    deadline = time.monotonic() + 300
    while not [*tmp_path.glob("out/shards/part*")] and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    n_done = len([*tmp_path.glob("out/shards/part*")])
    time.sleep(1)  # until the workers have seen it
    subprocess.run(command, check=True, env=environment)
    assert 0 < n_done < len([*tmp_path.glob("out/shards/part*")])
    subprocess.run([*start, tmp_path / "whole"], check=True, env=environment)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_values_that_are_not_finite(text: Path, tmp_path: Path) -> None:
    """Finite weights may be so large that the vectors are not."""
    shutil.copytree(GOLDEN, tmp_path / "bilm")
    with h5py.File(tmp_path / "bilm" / "weights.hdf5", "r+") as file:
        for name in ("CNN_proj/W_proj", "CNN_proj/b_proj"):
            file[name][...] = 3e38
    with pytest.raises(WeightsError, match="NaN"):
        run(text, tmp_path / "out.spacy", bilm=str(tmp_path / "bilm"))
    assert not (tmp_path / "out.spacy").exists()


def test_a_folder_of_version_0_1_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shards are known, and a shard that is deleted comes back with the same vectors."""
    shutil.copytree(GOLDEN.parent / "written_by_0_1", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"format": "spacy", "shard_size": 400, "layers": "mean"}
    summary = run("text.txt", Path("shards"), **settings)
    assert (summary.shards, summary.resumed, summary.tokens) == (2, 2, 170)
    path = tmp_path / "shards" / "shards" / "part-000001.spacy"
    written = [vectors_of(doc, attr="elmo") for doc in docs_of(path)]
    path.unlink()
    assert run("text.txt", Path("shards"), **settings).resumed == 1
    for doc, vectors in zip(docs_of(path), written):
        np.testing.assert_allclose(vectors_of(doc, attr="elmo"), vectors, atol=1e-5)
