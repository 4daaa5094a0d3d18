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
import torch
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_elmo import ElmoEmbedder
from spacy_elmo.corpus import embed
from spacy_elmo.corpus.bilm import BiLMChoice
from spacy_elmo.corpus.manifest import LOCK, MANIFEST, SKIPPED, Manifest, ShardFacts, Summary
from spacy_elmo.corpus.writing import ParquetFile
from spacy_elmo.errors import CorpusError, NotEmbeddedError, SettingsError, VectorsError, WeightsError
from spacy_elmo.modules.loading import has_bfloat16
from spacy_elmo.pipeline.attributes import layers_of, mean_vector, token_vector, vectors_of

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
BILM = str(GOLDEN)
LINES = ["The cat sat on the mat.", "A dog isn't here.", "Yes.", "The river bank, and another bank."] * 5
WORDS = [["The", "cat", "sat", "on", "the", "mat", "."], ["A", "dog", "is", "n't", "here", "."], ["Yes", "."],
         ["The", "river", "bank", ",", "and", "another", "bank", "."]] * 5  # fmt: skip


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def expected() -> list[np.ndarray]:
    """The layers of each sentence."""
    return ElmoEmbedder(BILM).embed_batch(WORDS)


def contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def rows_of(folder: Path) -> list[dict]:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    return [row for path in sorted((folder / "shards").iterdir()) for row in parquet.read_table(path).to_pylist()]


@pytest.mark.parametrize(("language", "code"), [("de", "de"), ("xx", "xx"), ("English", "en"), ("not told", "en")])
def test_text_is_split_as_the_language_of_the_card_needs(tmp_path: Path, language: str, code: str) -> None:
    shutil.copytree(GOLDEN, tmp_path / "bilm")
    (tmp_path / "bilm" / "README.md").write_text(f"| size | 1 |\n| language | {language} |\n", encoding="utf8")
    text = tmp_path / "text.txt"
    text.write_text("Das geht z.B. heute, d.h. jetzt, isn't it?", encoding="utf8")
    embed(text, tmp_path / "out", format="spacy", bilm=str(tmp_path / "bilm"))
    [shard] = (tmp_path / "out" / "shards").iterdir()
    [doc] = DocBin().from_disk(shard).get_docs(Vocab())
    assert [token.text for token in doc] == [token.text for token in spacy.blank(code)(text.read_text("utf8"))]
    assert json.loads((tmp_path / "out" / MANIFEST).read_text("utf8").splitlines()[0])["tokenizer"] == code
    choice = BiLMChoice(options_file=str(tmp_path / "bilm" / "options.json"))
    assert choice.tokenizer(None)(text.read_text("utf8")) == [token.text for token in doc]


def test_parquet(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    summary = embed(text, tmp_path / "out", bilm=BILM, shard_size=100)
    assert (summary.sentences, summary.tokens, summary.skipped) == (20, sum(map(len, WORDS)), 0)
    assert summary.shards > 2
    rows = rows_of(tmp_path / "out")
    assert [row["line"] for row in rows] == list(range(1, 21))
    assert {row["source"] for row in rows} == {str(text)}
    for row, line, words, layers in zip(rows, LINES, WORDS, expected):
        assert (row["tokens"], row["text"]) == (words, line)
        assert [line[start:end] for start, end in zip(row["starts"], row["ends"])] == words
        np.testing.assert_allclose(row["vectors"], layers.mean(0), atol=1e-5)


def test_row_groups(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    module = sys.modules["spacy_elmo.corpus.writing"]
    monkeypatch.setattr(module, "ROW_GROUP_BYTES", 1)
    embed(text, tmp_path / "a.parquet", bilm=BILM, layers="all", dtype="float16")
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert file.num_row_groups == 20
    schema = file.schema_arrow
    assert str(schema.field("layer_2").type.value_type) == f"fixed_size_list<element: halffloat>[{width()}]"


def width() -> int:
    return int(ElmoEmbedder(BILM).options.width)


def test_mixes(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    (tmp_path / "mix.json").write_text(json.dumps([{"w": [0.0, 1.0, -1.0], "gamma": 2.0, "component": "ner"}]))
    embed(text, tmp_path / "a.npy", bilm=BILM, layers=tmp_path / "mix.json", sentence=True)
    weights = np.exp([0.0, 1.0, -1.0]) / np.exp([0.0, 1.0, -1.0]).sum()
    found = np.load(tmp_path / "a.npy")
    for vector, layers in zip(found, expected):
        np.testing.assert_allclose(vector, 2 * np.tensordot(weights, layers, 1).mean(0), atol=1e-5)
    before = (tmp_path / "a.npy").read_bytes()
    embed(text, tmp_path / "a.npy", bilm=BILM, layers={"w": (0.0, 1.0, -1.0), "gamma": 2.0}, sentence=True)
    assert (tmp_path / "a.npy").read_bytes() == before
    for layers, message in (
        ({}, r"layers: not the weights of a mix \(no object with \"w\"\)"),
        ({"w": [0, "a", 0]}, "layers: not the weights of a mix .*finite numbers"),
        ({"w": [1, 2]}, "the mix has 2 weights"),
        (2, "layers is 2, which is no file. Expected one of all, top, mean"),
    ):
        with pytest.raises(SettingsError, match=message):
            embed(text, tmp_path / "b.npy", bilm=BILM, layers=layers, sentence=True)  # type: ignore[arg-type]
    (tmp_path / "mix.json").write_text('{"w": [1, 2]}')
    with pytest.raises(SettingsError, match="the mix has 2 weights"):
        embed(text, tmp_path / "b.npy", bilm=BILM, layers=tmp_path / "mix.json", sentence=True)
    (tmp_path / "mix.json").write_text('{"w": ["a"]}')
    with pytest.raises(SettingsError, match="not the weights of a mix"):
        embed(text, tmp_path / "b.npy", bilm=BILM, layers=tmp_path / "mix.json", sentence=True)


def test_docbins(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    embed(text, tmp_path / "a.spacy", bilm=BILM, layers="all")
    embed(text, tmp_path / "b.spacy", bilm=BILM, layers="top")
    docs, tops = ([*DocBin().from_disk(tmp_path / f"{name}.spacy").get_docs(Vocab())] for name in "ab")
    for doc, top, line, layers in zip(docs, tops, LINES, expected):
        assert doc.text == line
        assert doc.user_data["source"] == str(text)
        np.testing.assert_allclose(layers_of(doc, attr="elmo"), layers, atol=1e-5)
        np.testing.assert_allclose(vectors_of(top, attr="elmo"), layers[-1], atol=1e-5)
        with pytest.raises(NotEmbeddedError, match=r"wrote without layers.* embed the text again with --layers all"):
            layers_of(top, attr="elmo")


def test_docbins_of_float16_give_float32(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    embed(text, tmp_path / "a.spacy", bilm=BILM, layers="top", dtype="float16")
    doc = next(DocBin().from_disk(tmp_path / "a.spacy").get_docs(Vocab()))
    for got, wanted in (
        (vectors_of(doc, attr="elmo"), expected[0][-1]),
        (vectors_of(doc[1:].as_doc(copy_user_data=True), attr="elmo"), expected[0][-1][1:]),
        (mean_vector(doc, attr="elmo"), expected[0][-1].mean(0)),
        (token_vector(doc[1], attr="elmo"), expected[0][-1][1]),
    ):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, atol=2e-3)


def test_sentences_that_a_header_of_safetensors_has_no_room_for(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    monkeypatch.setattr(sys.modules["spacy_elmo.corpus.writing"], "MOST_BYTES", 400)
    with pytest.raises(VectorsError, match=r"no room for the words of more than \d sentences"):
        embed(text, tmp_path / "a.safetensors", bilm=BILM, layers="top")
    assert not (tmp_path / "a.safetensors").exists()


def test_safetensors(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")
    embed(text, tmp_path / "a.safetensors", bilm=BILM, layers="top")
    with safetensors.safe_open(tmp_path / "a.safetensors", "numpy") as file:
        ends, vectors = file.get_tensor("ends"), file.get_tensor("vectors")
        sentences = json.loads(file.metadata()["sentences"])
    assert [sentence["tokens"] for sentence in sentences] == WORDS
    for array, layers in zip(np.split(vectors, ends[:-1]), expected):
        np.testing.assert_allclose(array, layers[-1], atol=1e-5)


def test_shards_of_hdf5(text: Path, tmp_path: Path, expected: list[np.ndarray]) -> None:
    embed(text, tmp_path / "out", format="hdf5", bilm=BILM, lang="en", shard_size=100)
    found = []
    for path in sorted((tmp_path / "out" / "shards").iterdir()):
        with h5py.File(path) as file:
            found += [file[str(i)][()] for i in range(len(file) - 1)]
    for array, layers in zip(found, expected, strict=True):
        np.testing.assert_allclose(array, layers, atol=1e-5)


def test_bad_lines_are_listed(text: Path, tmp_path: Path) -> None:
    text.write_bytes(b"good .\n\xff\n\n" + b"word\n" * 30 + b"a\0b\nlast")
    for _ in range(2):  # the second time nothing is left to do
        summary = embed(text, tmp_path / "out", format="spacy", bilm=BILM, shard_size=20)
        assert (summary.sentences, summary.blank, summary.skipped) == (32, 1, 2)
        rows = [json.loads(line) for line in (tmp_path / "out" / SKIPPED).read_text().splitlines()]
        assert [(row["file"], row["line"]) for row in rows] == [(str(text), 2), (str(text), 34)]
    with pytest.raises(CorpusError, match=r"text.txt, line 2: not UTF-8"):
        embed(text, tmp_path / "a.spacy", bilm=BILM)
    assert not (tmp_path / "a.spacy").exists()


def test_resuming_ends_in_the_same_files(text: Path, tmp_path: Path) -> None:
    """Shards are missing, a line of the manifest is cut, and a temporary file is left."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        embed(text, folder, format="spacy", bilm=BILM, shard_size=100)
    whole = contents(first)
    assert contents(second) == whole
    lines = (second / MANIFEST).read_bytes().splitlines(keepends=True)
    (second / MANIFEST).write_bytes(b"".join([*lines[:2], lines[3], lines[2][:30]]))
    (second / "shards" / "part-000002.spacy").unlink()
    (second / "shards" / f".part-000001.spacy.{'0' * 32}.tmp").write_text("")
    summary = embed(text, second, format="spacy", bilm=BILM, shard_size=100)
    assert summary.resumed == 1
    assert contents(second) == whole


def test_a_shard_that_was_cut_is_made_again(text: Path, tmp_path: Path) -> None:
    """As after a crash of the system: the manifest has a line for it, and the file is shorter."""
    out = tmp_path / "out"
    shards = embed(text, out, format="npy", sentence=True, bilm=BILM, shard_size=100).shards
    whole = contents(out)
    with (out / "shards" / "part-000001.npy").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 1)
    assert embed(text, out, format="npy", sentence=True, bilm=BILM, shard_size=100).resumed == shards - 1
    assert contents(out) == whole


def test_what_does_not_fit_is_refused(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    embed(text, out, format="spacy", bilm=BILM, shard_size=100)
    before = contents(out)
    with pytest.raises(CorpusError, match="made with layers"):
        embed(text, out, format="spacy", bilm=BILM, shard_size=100, layers="top")
    with pytest.raises(CorpusError, match="made with biLM"):
        embed(text, out, format="spacy", bilm=BiLMChoice("en_mini"), shard_size=100)
    text.write_text("other text\n" * 50)
    with pytest.raises(CorpusError, match="shard 0 was made of other text"):
        embed(text, out, format="spacy", bilm=BILM, shard_size=100)
    text.write_text("\n".join(LINES[:5]))
    with pytest.raises(CorpusError, match="was made of other text"):
        embed(text, out, format="spacy", bilm=BILM, shard_size=100)
    assert contents(out) == before
    summary = embed(text, out, format="spacy", bilm=BILM, shard_size=100, resume=False)
    assert (summary.sentences, summary.resumed) == (5, 0)
    with pytest.raises(CorpusError, match="which no earlier command"):
        embed(text, tmp_path, format="spacy", bilm=BILM)
    text.write_text("\n\n")
    with pytest.raises(CorpusError, match="no sentence"):
        embed(text, tmp_path / "none", format="spacy", bilm=BILM)
    text.write_bytes(b"\xff")
    with pytest.raises(CorpusError, match=r"1 bad \(.*text.txt, line 1: not UTF-8"):
        embed(text, tmp_path / "bad", format="spacy", bilm=BILM)


@pytest.mark.parametrize("name", ["workers", "shard_size"])
@pytest.mark.parametrize("number", [0, -1, True, 2.0, "2"])
def test_numbers_that_are_not_whole_are_refused(text: Path, tmp_path: Path, name: str, number: object) -> None:
    with pytest.raises(SettingsError, match=f"{name} is {number!r}. Expected a whole number, 1 or more"):
        embed(text, tmp_path / "out", format="spacy", bilm=BILM, **{name: number})  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["vectors.npy", "vectors.spacy", "vectors"])  # without a suffix, npy is one file too
def test_a_text_without_words_replaces_no_file(tmp_path: Path, name: str) -> None:
    text, out = tmp_path / "blank.txt", tmp_path / name
    text.write_text("\n\n")
    settings: dict = {"bilm": BILM, "sentence": True, "format": "npy"} if name != "vectors.spacy" else {"bilm": BILM}
    for earlier in (None, b"vectors of another text"):
        if earlier is not None:
            out.write_bytes(earlier)
        with pytest.raises(CorpusError, match="no sentence that can be read; 2 lines, 2 of them blank, 0 bad"):
            embed(text, out, **settings)
        assert (out.read_bytes() if out.exists() else None) == earlier
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["blank.txt", name])


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ({"layers": {"w": [0, 1, 2], "gamma": 3.0}}, "layers"),
        ({"layers": {"w": [0, 1, 3], "gamma": 2.0}}, "layers"),
        ({"dtype": "float16"}, "dtype"),
        ({"docs": True}, "docs"),
        ({"tokenized": False}, "tokenizer"),
        ({"shard_size": 200}, "shard_size"),
        ({"bilm": BiLMChoice("en_mini")}, "biLM"),
        pytest.param(
            {"bilm": BiLMChoice(BILM, precision="bfloat16")},
            "biLM",
            marks=pytest.mark.skipif(
                not has_bfloat16(torch.device("cpu")), reason="this machine multiplies no bfloat16"
            ),
        ),
    ],
)
def test_shards_of_other_settings_are_not_resumed(text: Path, tmp_path: Path, setting: dict, name: str) -> None:
    text.write_text("the cat")
    settings: dict = {"format": "npy", "sentence": True, "tokenized": True, "shard_size": 100, "bilm": BILM}
    settings["layers"] = {"w": [0, 1, 2], "gamma": 2.0}
    embed(text, tmp_path / "out", **settings)
    with pytest.raises(CorpusError, match=f"made with {name} "):
        embed(text, tmp_path / "out", **{**settings, **setting})
    assert embed(text, tmp_path / "out", **settings).resumed == 1


def test_a_folder_of_another_program_is_never_emptied(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "shards").mkdir(parents=True)
    (out / "shards" / "data").write_text("of somebody else")
    for manifest in (None, "", '{"another": "format"}\n', "[1]\n", "no JSON\n"):
        if manifest is not None:
            (out / MANIFEST).write_text(manifest)
        before = contents(out)
        for resume in (True, False):
            with pytest.raises(CorpusError, match="which no earlier command"):
                embed(text, out, format="spacy", bilm=BILM, resume=resume)
        assert contents(out) == before
        assert not (out / LOCK).exists()


@pytest.mark.parametrize(
    "damage",
    [{"file": 5}, {"shard": "x"}, {"tokens": "many"}, {"size": None}, {"skipped": 3}, {"skipped": [["a"]]}, {"new": 1}],
)
def test_damaged_manifests_are_refused(text: Path, tmp_path: Path, damage: dict) -> None:
    out = tmp_path / "out"
    embed(text, out, format="spacy", bilm=BILM, shard_size=100)
    settings, *rows = (out / MANIFEST).read_bytes().splitlines()
    row = json.dumps({**json.loads(rows[0]), **damage}).encode()
    (out / MANIFEST).write_bytes(b"\n".join([settings, row, *rows[1:], b""]))
    with pytest.raises(CorpusError, match=r"manifest.jsonl: damaged"):
        embed(text, out, format="spacy", bilm=BILM, shard_size=100)
    assert embed(text, out, format="spacy", bilm=BILM, shard_size=100, resume=False).resumed == 0


def test_progress_tells_all_tokens_and_bytes(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text.write_bytes(text.read_bytes() + b"\n\xff\n\n")
    monkeypatch.setattr(sys.modules["spacy_elmo.corpus.shards"], "WINDOW_TOKENS", 10)
    told: list[tuple[int, int]] = []
    embed(text, tmp_path / "out", format="spacy", bilm=BILM, progress=lambda *done: told.append(done))
    assert len(told) > 5
    assert np.sum(told, 0).tolist() == [sum(map(len, WORDS)), text.stat().st_size]
    text.write_text("\n".join(LINES))
    told.clear()
    embed(text, tmp_path / "a.hdf5", lang="en", bilm=BILM, progress=lambda *done: told.append(done))
    assert np.sum(told, 0).tolist() == [sum(map(len, WORDS)), text.stat().st_size]


def test_the_message_names_the_shard_that_cant_be_written(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5py.File, "create_dataset", no_space)
    with pytest.raises(VectorsError, match=r"shards/part-000000.hdf5: can't be written .*No space left"):
        embed(text, tmp_path / "out", format="hdf5", bilm=BILM, shard_size=100)


def test_damage_in_the_middle_leaves_finished_shards(text: Path, tmp_path: Path) -> None:
    (tmp_path / "z.txt.gz").write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(CorpusError, match=r"z.txt.gz: damaged"):
        embed([text, tmp_path / "z.txt.gz"], tmp_path / "out", format="spacy", bilm=BILM, shard_size=100)
    assert len([*(tmp_path / "out" / "shards").iterdir()]) > 2
    assert embed(text, tmp_path / "out", format="spacy", bilm=BILM, shard_size=100).resumed > 2


def test_a_full_disk_leaves_finished_shards(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["spacy_elmo.corpus.writing"]
    n_synced = 0

    def sync(path: Path) -> None:
        nonlocal n_synced
        n_synced += 1
        if n_synced == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_sync", sync)
    with pytest.raises(VectorsError, match="No space left"):
        embed(text, tmp_path / "out", format="spacy", bilm=BILM, shard_size=100)
    names = sorted(path.name for path in (tmp_path / "out" / "shards").iterdir())
    assert names == ["part-000000.spacy", "part-000001.spacy"]


def test_a_disk_that_is_full_while_vectors_are_written(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet writes long before the end. An OSError without a file's name would be taken for standard output's."""

    pytest.importorskip("pyarrow", reason="pyarrow is not installed")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ParquetFile, "add", full)
    for output in ("a.parquet", "out"):
        with pytest.raises(VectorsError, match=r"parquet: can't be written \(.*No space left"):
            embed(text, tmp_path / output, bilm=BILM)
    assert not (tmp_path / "a.parquet").exists()


def test_a_line_of_the_manifest_that_does_not_fit_leaves_no_part(tmp_path: Path) -> None:
    """Other processes finish their shards after that, and theirs may fit."""
    resource = pytest.importorskip("resource", reason="has no limit of a file's size")
    manifest, path = Manifest(tmp_path, {"biLM": "a"}, True), tmp_path / MANIFEST
    manifest.add(ShardFacts(0, "part-000000.spacy", 1, ""))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, hard))
    try:
        with pytest.raises(CorpusError, match=r"manifest.jsonl: can't be written"):
            manifest.add(ShardFacts(1, "part-000001.spacy", 1, ""))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    manifest.add(ShardFacts(2, "part-000002.spacy", 1, ""))
    assert [json.loads(line)["shard"] for line in path.read_text().splitlines()[1:]] == [0, 2]


@pytest.mark.parametrize("first", [VectorsError("the first"), KeyboardInterrupt("the first")])
def test_an_error_at_the_end_does_not_hide_the_first(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: BaseException
) -> None:
    """Incomplete files are deleted even if skipped.jsonl can't be written."""
    leftover = tmp_path / "out" / "shards" / f".part-000001.spacy.{'0' * 32}.tmp"

    def fail(*_: object) -> None:
        leftover.touch()
        raise first

    def full(*_: object) -> None:
        raise CorpusError("the second")

    monkeypatch.setattr(Manifest, "finish", fail)
    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "write_skipped", full)
        with pytest.raises(type(first), match="the first"):
            embed(text, tmp_path / "out", format="spacy", bilm=BILM)
    assert not leftover.exists()
    with pytest.raises(type(first), match="the first"):
        embed(text, tmp_path / "out", format="spacy", bilm=BILM)
    assert (tmp_path / "out" / SKIPPED).exists()


COMMAND = [sys.executable, "-m", "spacy", "elmo", "embed", "--format", "spacy", "--shard-size", "5000", "--quiet"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def not_killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text.txt, and with whole: the files of a command that was not killed."""
    folder = tmp_path_factory.mktemp("not_killed")
    text = folder / "text.txt"
    text.write_text("".join(f"Sentence {i} has some words, which aren't many.\n" for i in range(1_000)))
    subprocess.run([*COMMAND, text, folder / "whole"], check=True, env=ENVIRONMENT)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_kills_in_the_middle(not_killed: Path, tmp_path: Path, workers: str) -> None:
    """After a kill of the whole command it goes on, and ends in the files of a command that was not killed."""
    command = [*COMMAND, "--workers", workers, not_killed / "text.txt", tmp_path / "out"]
    process = subprocess.Popen(command, env=ENVIRONMENT)
    deadline = time.monotonic() + 300
    while not [*tmp_path.glob("out/shards/part*")] and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    n_done = len([*tmp_path.glob("out/shards/part*")])
    time.sleep(1)  # until the workers have seen it
    subprocess.run(command, check=True, env=ENVIRONMENT)
    assert 0 < n_done < len([*tmp_path.glob("out/shards/part*")])
    assert contents(tmp_path / "out") == contents(not_killed / "whole")


def test_values_that_are_not_finite(text: Path, tmp_path: Path) -> None:
    """Finite weights may be so large that the vectors are not. Then no format is written."""
    shutil.copytree(GOLDEN, tmp_path / "bilm")
    with h5py.File(tmp_path / "bilm" / "weights.hdf5", "r+") as file:
        for name in ("CNN_proj/W_proj", "CNN_proj/b_proj"):
            file[name][...] = 3e38
    for name in ("out.hdf5", "out.spacy"):
        with pytest.raises((WeightsError, VectorsError), match="NaN"):
            embed(text, tmp_path / name, bilm=str(tmp_path / "bilm"), lang="en")
        assert not (tmp_path / name).exists()


def test_a_summary_names_the_first_bad_line_of_all_shards(tmp_path: Path) -> None:
    summary = Summary(tmp_path, "npy")
    for shard, skipped in enumerate(([], [("a", 3, "bad"), ("a", 4, "bad")], [("b", 1, "worse")])):
        summary.add(ShardFacts(shard, "file", 0, "", tokens=shard, skipped=skipped))
    assert (summary.tokens, summary.skipped, str(summary.first_skipped)) == (3, 3, "a, line 3: bad")


def test_a_folder_of_version_0_1_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shards are known, and a shard that is deleted comes back with the same vectors."""
    shutil.copytree(GOLDEN.parent / "written_by_0_1", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"bilm": BILM, "format": "spacy", "shard_size": 400, "tokenized": True, "layers": "mean"}
    summary = embed("text.txt", "shards", **settings)
    assert (summary.shards, summary.resumed, summary.tokens) == (2, 2, 170)
    path = tmp_path / "shards" / "shards" / "part-000001.spacy"
    written = [vectors_of(doc, attr="elmo") for doc in DocBin().from_disk(path).get_docs(Vocab())]
    path.unlink()
    assert embed("text.txt", "shards", **settings).resumed == 1
    for doc, vectors in zip(DocBin().from_disk(path).get_docs(Vocab()), written):
        np.testing.assert_allclose(vectors_of(doc, attr="elmo"), vectors, atol=1e-5)
