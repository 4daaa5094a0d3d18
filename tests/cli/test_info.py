"""`elmo info`: what is told of files, and what is wrong with them."""

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import commands
import h5py
import numpy as np
import pytest
import spacy
import torch
from embedded_case import WORDS, make_package, model_of
from embedded_case import embed as embed_bilm
from spacy.tokens import DocBin
from weight_files import make_heap_cycle

import spacy_elmo
from spacy_elmo.corpus import embed
from spacy_elmo.errors import SettingsError
from spacy_elmo.formats import VectorsWriter, read_options, read_weights, write_options, write_weights
from spacy_elmo.formats.names import OFFICIAL_MODELS
from spacy_elmo.modules.loading import load_arrays
from spacy_elmo.pretraining.language_model import write_output_layer
from spacy_elmo.pretraining.softmax import Softmax

SMALL = "747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229"
EN_CORE = Path(spacy_elmo.__file__).parent / "bilms" / "en_core"
run = partial(commands.run, "elmo", "info")


@pytest.fixture
def model(golden: Path, tmp_path: Path) -> Path:
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(golden / "random_a" / name, tmp_path / name)
    return tmp_path


# Options and weights


def test_options_and_weights_in_any_order(model: Path) -> None:
    files = [model / "options.json", model / "weights.hdf5"]
    output = run(*files)
    assert run(*files[::-1]) == run(model) == output
    for path in files:
        assert str(path) in output
        assert f"{path.stat().st_size:,} bytes" in output
        assert hashlib.sha256(path.read_bytes()).hexdigest() in output
    for told in (
        "character vectors 4 ",
        "4 of width 1, 8 of width 2, 16 of width 3, 32 of width 4, 64 of width 5",
        "filters together 124, relu",
        "highway layers 2",
        "LSTM dim 64",
        "LSTM projection dim 16",
        "LSTM layers 2 in each",
        "clips cell 3, projection 3",
        "skip connections yes",
        "vectors 3 layers of 32",
        "parameters 105,120",
        "weights all there",
        "read by this package, AllenNLP, bilm-tf",
        "not an official model",
    ):
        assert told in output, told


def test_one_of_both(model: Path) -> None:
    output = run(model / "weights.hdf5")
    assert "char_embed 261 x 4" in output
    assert "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0 64 x 16" in output
    assert "give the options.json" in output
    changed = replace(read_options(model / "options.json"), use_skip_connections=False, max_characters=25)
    write_options(model / "options.json", changed)
    output = run(model / "options.json")
    assert "vectors 3 layers of 32" in output
    assert "read by this package, bilm-tf not by AllenNLP no skip connections" in output
    assert "not by AllenNLP 25 characters a token, not 50" in output
    contents = json.loads((EN_CORE / "options.json").read_text())
    del contents["char_cnn"]["n_highway"]
    contents["char_cnn"]["n_characters"] = 261
    (model / "options.json").write_text(json.dumps(contents))
    told = run(model / "options.json")
    assert "not by AllenNLP no char_cnn.n_highway in options.json" in told
    assert "not by bilm-tf char_cnn.n_characters is not 262" in told


def test_a_warning_comes_after_the_table(model: Path) -> None:
    contents = json.loads((model / "options.json").read_text())
    del contents["lstm"]["use_skip_connections"]
    (model / "options.json").write_text(json.dumps(contents))
    output = run(model)
    assert output.index("SHA-256") < output.index("use_skip_connections is missing")
    assert "UserWarning" not in output


def test_official_models(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(model.name, round(model.options.n_parameters / 1e6, 1)) for model in OFFICIAL_MODELS]
    assert sizes == [("small", 13.6), ("medium", 28.0), ("original (and 5.5B)", 93.6)]
    for official in OFFICIAL_MODELS[::-1]:
        write_options(model / "options.json", official.options)
        assert f"the sizes of the official {official.name} model" in run(model / "options.json")
    from spacy_elmo.cli import info

    monkeypatch.setattr(info, "read_weights", lambda path, options: {"all": np.zeros(16)})
    for sha256, told in (
        (SMALL, "the official small model, by the SHA-256 that is quoted for it"),
        ("0" * 64, "the sizes of the official small model; the SHA-256 is not one that this version knows"),
    ):
        monkeypatch.setattr(
            info, "sha256_of", lambda path, sha256=sha256: sha256 if path == model / "weights.hdf5" else "1" * 64
        )
        assert f"model {told}" in run(model)


@pytest.mark.slow
def test_several_models(model: Path, golden: Path) -> None:
    both = [model / "options.json", golden / "random_b" / "options.json"]
    assert "2 options files were given with weights" in run(model / "weights.hdf5", *both, code=1)
    assert run(*both).count("LSTM dim") == 2
    output = run(golden / "random_a", golden / "random_b", EN_CORE, "en_core")
    assert output.count("weights all there") == 4
    assert output.count("en_core, the embedded one") == 2  # told of weights alone
    assert "language en model card" in output
    assert "model the sizes of en_core, and of others" in run(EN_CORE / "options.json")


@pytest.mark.slow
def test_the_weights_of_en_core_in_another_file(tmp_path: Path) -> None:
    options = read_options(EN_CORE / "options.json")
    write_options(tmp_path / "options.json", options)
    write_weights(tmp_path / "weights.hdf5", options, read_weights(EN_CORE / "weights.hdf5", options))
    assert "model en_core, the embedded one" in run(tmp_path)


# What is wrong


def test_weights_that_can_not_be_used(model: Path, golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = run(model / "weights.hdf5", golden / "random_b" / "options.json", code=1)
    assert "450,528 bytes" in output
    assert "Expected the weights of a biLM with the sizes of its options" in output
    with h5py.File(model / "other", "w") as file:
        file["values"] = np.zeros(3, np.float32)
    assert "missing datasets: char_embed" in run(model / "other", code=1)
    weights = model / "weights.hdf5"
    weights.write_bytes(weights.read_bytes()[:-1000])
    # the hash of a large file takes minutes, and it may be refused by its size
    hashed: list[Path] = []
    monkeypatch.setattr("spacy_elmo.cli.info.sha256_of", lambda path: hashed.append(path) or "0" * 64)
    for paths in ([model], [weights]):
        output = run(*paths, code=1)
        assert "449,528 bytes" in output
        assert "not an HDF5 file, or one cut short" in output
    assert weights not in hashed
    weights.unlink()
    output = run(model, code=1)
    assert "parameters 105,120" in output
    assert "weights.hdf5: no such file" in output


def test_what_can_not_be_read(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "a folder without options.json and weights.hdf5" in run(tmp_path / "empty", code=1)
    for name, told in (("gone.hdf5", "no such file"), ("numpy", "names no biLM")):  # a package, and no pipeline
        assert told in run(name, code=1)
    assert "elmo download https://example.org/a" in run("https://example.org/a", code=1)
    path = tmp_path / "o\x1b[31m\udcff.json"
    path.write_text("{}", encoding="utf8")
    output = run(path, tmp_path / "gone\x1b[31m", code=1)
    assert "\x1b[31m" not in output  # colours of the command itself are others
    assert "o\\x1b[31m\\udcff.json" in output.replace(" ", "")
    (model / "options.json").write_text("{", encoding="utf8")
    output = run(model, code=1)
    assert "not valid JSON" in output
    assert "not compared with its options" in output
    for name in ("fifo", "fifo.hdf5"):
        os.mkfifo(tmp_path / name)
        assert "a folder or a special file" in run(tmp_path / name, code=1)


def run_with(setting: str, path: Path) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own, with a smaller limit."""
    program = "import sys; from spacy.cli._util import setup_cli; from spacy_elmo.cli.info import info\n"
    program += f"sys.modules['spacy_elmo.cli.info'].{setting}; setup_cli()"
    command = [sys.executable, "-c", program, "elmo", "info", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_a_file_on_which_hdf5_takes_memory_without_end(model: Path) -> None:
    make_heap_cycle(model / "weights.hdf5")
    done = run_with("MAX_BYTES = 0", model)
    assert done.returncode == 1
    assert "get it again" in done.stdout + done.stderr


def test_a_pipeline_that_takes_too_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spacy.blank("en").to_disk(tmp_path / "pipeline")
    monkeypatch.setattr(spacy, "load", lambda path: np.empty(2**62, np.int8))
    assert "reading this takes far more memory" in run(tmp_path / "pipeline", code=1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_file_that_hdf5_reads_without_end(tmp_path: Path) -> None:
    """The size of an object in a global heap, and 16 bytes more, is 0 in 64 bits: HDF5 reads that object for ever."""
    path = tmp_path / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        writer.write("a b", np.zeros((3, 2, 8)))
    content = bytearray(path.read_bytes())
    at = content.index(b"GCOL")
    assert struct.unpack_from("<H", content, at + 16) == (1,)
    struct.pack_into("<Q", content, at + 24, 2**64 - 16)
    path.write_bytes(content)
    done = run_with("_SECONDS = 1", path)
    assert done.returncode == -signal.SIGXCPU
    assert str(path) in done.stdout  # by which one knows the file


def test_the_limits_end_with_the_command(model: Path) -> None:
    before = [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]
    run(model)
    assert [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)] == before


# Pipelines


@pytest.mark.slow
def test_saved_and_installed_pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed one has the files of `spacy package` and pip."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", name="mine")
    package = tmp_path / "en_with_elmo"
    package.mkdir()
    nlp.to_disk(package / "en_pipeline-0.0.0")
    shutil.copy(package / "en_pipeline-0.0.0" / "meta.json", package)
    (package / "__init__.py").write_text(
        "from spacy.util import load_model_from_init_py\ndef load(**settings):\n"
        "    return load_model_from_init_py(__file__, **settings)\n"
    )
    (tmp_path / "en_with_elmo-0.0.0.dist-info").mkdir()
    (tmp_path / "en_with_elmo-0.0.0.dist-info" / "METADATA").write_text("Name: en_with_elmo\nVersion: 0.0.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    limited, limit = list[int](), resource.setrlimit
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: (limited.append(kind), limit(kind, both)))
    for name in (str(package / "en_pipeline-0.0.0"), "en_with_elmo"):
        output = run(name)
        for told in (f"{name}, pipe mine", "3 layers of 512", "model en_core, the embedded one"):
            assert told.replace(" ", "") in output.replace(" ", "")
    assert limited.count(resource.RLIMIT_CPU) == 2 * 2  # for a while
    shim = nlp.get_pipe("mine").model.shims[0]
    with torch.no_grad():
        shim.unfreeze().char_cnn.projection.bias[0] += 1  # as training changes a weight
    nlp.to_disk(tmp_path / "tuned")
    output = run(tmp_path / "tuned")
    assert "the embedded one" not in output
    assert "model the sizes of en_core, and of others" in output
    spacy.blank("en").to_disk(tmp_path / "without")
    assert "no elmo pipe" in run(tmp_path / "without", code=1)


# Vectors


def test_embedded_sentences(tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        writer.write("a b", np.zeros((3, 2, 8)))
        writer.write("c", np.zeros((3, 1, 8)))
    assert "embedded sentences 2 shape of the first (3, 2, 8) sentence_to_index yes" in run(path)
    with h5py.File(path, "a") as file:
        del file["sentence_to_index"]
    assert "sentence_to_index no" in run(path)
    with h5py.File(path, "a") as file:
        file["3"] = np.zeros((2, 8), np.float32)
    assert "the dataset 2 is missing" in run(path, code=1)
    with VectorsWriter(path, index=False) as writer:
        for sentence in ("a b", "c"):
            writer.write(sentence, np.ones((3, len(sentence.split()), 4)), key=sentence)
    assert "2, each named by its text" in run(path)
    with h5py.File(path, "w") as file:  # the cache of e2e-coref has a group for each document
        file["bn:abc:00_0/0"] = np.zeros((3, 8, 3), np.float32)
    assert "those in groups, such as a group for each document, are not read" in run(path, code=1)


@pytest.mark.slow
def test_docs(golden: Path, text: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.spacy"
    for layers, expected in (
        ("all", "doc._.elmo_layers, 3 layers of 32, float32"),
        ("mean", "doc._.elmo, width 32, float32"),
    ):
        embed(text, path, bilm=str(golden / "random_a"), layers=layers, tokenized=True)
        told = run(path)
        assert hashlib.sha256(path.read_bytes()).hexdigest() in told
        assert f"docs 4 tokens 18 ELMo vectors {expected}" in told
        assert "of the docs" not in told
    embedded = next(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))
    plain = spacy.blank("en")("A bank .")
    plain.user_data["elmo"] = 3
    DocBin(docs=[plain]).to_disk(path)
    assert "docs 1 tokens 3 ELMo vectors none" in run(path)
    DocBin(docs=[plain, embedded], store_user_data=True).to_disk(path)
    assert "width 32, float32, on 1 of the docs" in run(path)
    path.write_bytes(b"\xff" * 100)
    assert "damaged, cut short or unreadable" in run(path, code=1)


# A softmax


@pytest.fixture
def language_model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    return tmp_path / "model"


def test_a_softmax(language_model: Path) -> None:
    path = language_model / "softmax.hdf5"
    output = run(language_model)
    assert f"{path.stat().st_size:,} bytes" in output
    told = "softmax one vector for each word words 8 vectors 16 parameters 136 vocabulary.txt 8 words"  # 8 x (16 + 1)
    assert told in output
    assert told in run(path)  # by itself, too
    assert "weights all there" in output
    with (language_model / "vocabulary.txt").open("a", encoding="utf8") as file:
        file.write("newt\n")
    assert "8 rows of 16 values. Expected a row for each of the vocabulary's 9 words" in run(language_model, code=1)
    (language_model / "vocabulary.txt").unlink()
    assert "can't be used without its words" in run(language_model)
    wide = Softmax(len(WORDS), 32)
    wide.reset_parameters()
    write_output_layer(path, wide, "float32")
    assert "rows of 32 values. Expected a row for each of the vocabulary's 8 words, of 16 values" in run(
        language_model, code=1
    )
    path.write_bytes(path.read_bytes()[:-100])
    assert "cut short" in run(language_model, code=1)


def test_en_core_with_and_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bilm = embed_bilm(monkeypatch, tmp_path / "bilms" / "en_core")
    assert "softmax" not in run("en_core")
    name = f"softmax_package_{tmp_path.name.replace('-', '_')}"
    package = make_package(monkeypatch, tmp_path / "site" / name, bilm / "weights.hdf5")
    assert "softmax one vector for each word" in run("en_core")
    (package / "bilm.sha256").write_text("0" * 64, encoding="utf8")
    assert "en_core" in run("en_core", code=1)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ("config.json char.dic word.dic encoder.pkl", "a model of ELMoForManyLangs, whose network is another"),
        (
            "options.json checkpoint model.ckpt-9.index",
            "a checkpoint of TensorFlow. Expected what bilm-tf exports of it",
        ),
        ("saved_model.pb variables/variables.index", "a model of TensorFlow, such as a module of TensorFlow Hub"),
        ("config.json weights.th", "a model of AllenNLP. Expected the biLM that it was trained on"),
        ("config.json model-00001-of-00002.safetensors", "a model of Hugging Face's transformers, no biLM"),
        ("config.json pytorch_model.bin", "a model of Hugging Face's transformers, no biLM"),
    ],
)
def test_folders_of_other_programs(tmp_path: Path, files: str, told: str) -> None:
    for name in files.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    if "options.json" in files:
        shutil.copy(EN_CORE / "options.json", tmp_path)
    else:
        assert told in run(tmp_path, code=1)
    with pytest.raises(SettingsError, match=re.escape(f"{tmp_path}: {told}")):
        load_arrays(bilm=tmp_path)
