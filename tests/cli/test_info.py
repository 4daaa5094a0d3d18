"""`elmo info`: what is told of files, and what is wrong with them."""

import hashlib
import json
import os
import shutil
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
from embedded_case import OPTIONS, WORDS, make_package, model_of
from embedded_case import embed as embed_bilm
from spacy.tokens import DocBin
from weight_files import make_heap_cycle

import spacy_elmo
from spacy_elmo.corpus import embed
from spacy_elmo.formats import VectorsWriter, read_options, write_options
from spacy_elmo.formats.names import OFFICIAL_MODELS
from spacy_elmo.modules.softmax import AdaptiveSoftmax
from spacy_elmo.pretraining.language_model import LanguageModel, write_output_layer

SMALL = "747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229"
EN_MINI = Path(spacy_elmo.__file__).parent / "bilms" / "en_mini"


run = partial(commands.run, "elmo", "info")


def test_paths_that_a_terminal_can_not_show(tmp_path: Path) -> None:
    path = tmp_path / "o\x1b[31m\udcff.json"
    path.write_text("{}", encoding="utf8")
    for paths in ([path], [path, tmp_path / "gone\x1b[31m"]):
        output = run(*paths, code=1)
        assert "\x1b[31m" not in output  # colours of the command itself are others
        assert "o\\x1b[31m\\udcff.json" in output.replace(" ", "")


@pytest.fixture
def model(golden: Path, tmp_path: Path) -> Path:
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(golden / "random_a" / name, tmp_path / name)
    return tmp_path


def test_a_warning_comes_after_the_table(model: Path) -> None:
    with h5py.File(model / "weights.hdf5", "r+") as file:
        values = file["char_embed"][()]
        del file["char_embed"]
        file["char_embed"] = values.astype(np.float64)
    output = run(model)
    assert output.index("all there, with the sizes of the options") < output.index("float64")
    assert "UserWarning" not in output
    assert output.index(hashlib.sha256((model / "weights.hdf5").read_bytes()).hexdigest()) < output.index("float64")


def test_a_file_is_hashed_after_its_checks(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes minutes for a file of many GB, which may be refused by its size."""
    hashed: list[str] = []

    def sha256_of(path: Path) -> str:
        if path.parent == model:
            hashed.append(path.name)
        return "0" * 64

    monkeypatch.setattr(sys.modules["spacy_elmo.cli.info"], "sha256_of", sha256_of)  # the package has the command
    with h5py.File(model / "weights.hdf5", "r+") as file:
        del file["char_embed"]
    for paths in ([model], [model / "weights.hdf5"]):
        run(*paths, code=1 if paths == [model] else 0)
    assert hashed == ["options.json", "weights.hdf5"]


def test_options_and_weights_in_any_order(model: Path) -> None:
    files = [model / "options.json", model / "weights.hdf5"]
    output = run(*files)
    assert run(*files[::-1]) == output
    assert run(model) == output
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


def test_an_options_file_alone(model: Path) -> None:
    assert "vectors 3 layers of 32" in run(model / "options.json")
    changed = replace(read_options(model / "options.json"), use_skip_connections=False, max_characters=25)
    write_options(model / "options.json", changed)
    output = run(model / "options.json")
    assert "read by this package, bilm-tf not by AllenNLP no skip connections" in output
    assert "not by AllenNLP 25 characters a token, not 50" in output


def test_weights_alone(model: Path) -> None:
    output = run(model / "weights.hdf5")
    assert "char_embed 261 x 4" in output
    assert "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0 64 x 16" in output
    assert "give the options.json" in output


def test_embedded_sentences(tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        writer.write("a b", np.zeros((3, 2, 8)))
        writer.write("c", np.zeros((3, 1, 8)))
    output = run(path)
    for told in ("embedded sentences 2", "(3, 2, 8), (layers, tokens, width)", "sentence_to_index yes"):
        assert told in output
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


def test_official_sizes(tmp_path: Path) -> None:
    sizes = [(model.name, round(model.options.n_parameters / 1e6, 1)) for model in OFFICIAL_MODELS]
    assert sizes == [("small", 13.6), ("medium", 28.0), ("original (and 5.5B)", 93.6)]
    assert OFFICIAL_MODELS[0].n_bytes == 54_402_456
    assert OFFICIAL_MODELS[0].options.n_parameters * 4 < 54_402_456
    for official in OFFICIAL_MODELS:
        write_options(tmp_path / "options.json", official.options)
        assert f"the sizes of the official {official.name} model" in run(tmp_path / "options.json")


@pytest.mark.parametrize(
    ("sha256", "told"),
    [
        (SMALL, "the official small model, by the SHA-256 that is quoted for it"),
        ("0" * 64, "the sizes of the official small model; the SHA-256 is not one that this version knows"),
    ],
)
def test_official_weights(model: Path, monkeypatch: pytest.MonkeyPatch, sha256: str, told: str) -> None:
    info = sys.modules["spacy_elmo.cli.info"]  # the package has the command
    write_options(model / "options.json", OFFICIAL_MODELS[0].options)
    monkeypatch.setattr(info, "read_weights", lambda path, options, *, untrusted: {"all": np.zeros(16)})
    monkeypatch.setattr(info, "sha256_of", lambda path: sha256 if path == model / "weights.hdf5" else "1" * 64)
    assert f"model {told}" in run(model)


def test_weights_of_other_sizes(model: Path, golden: Path) -> None:
    output = run(model / "weights.hdf5", golden / "random_b" / "options.json", code=1)
    assert "450,528 bytes" in output
    assert "Expected the weights of a biLM with the sizes of its options" in output


def test_a_weight_file_that_was_cut_short(model: Path) -> None:
    weights = model / "weights.hdf5"
    weights.write_bytes(weights.read_bytes()[:-1000])
    for paths in ([model], [weights]):
        output = run(*paths, code=1)
        assert "449,528 bytes" in output
        assert "not an HDF5 file, or one cut short" in output


def test_an_hdf5_file_of_something_else(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other", "w") as file:
        file["values"] = np.zeros(3, np.float32)
    assert "missing datasets: char_embed" in run(tmp_path / "other", code=1)


def test_bad_options(model: Path) -> None:
    (model / "options.json").write_text("{", encoding="utf8")
    output = run(model, code=1)
    assert "not valid JSON" in output
    assert "not compared with its options" in output


def test_what_is_missing(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "a folder without options.json and weights.hdf5" in run(tmp_path / "empty", code=1)
    assert "no such file" in run(tmp_path / "gone.json", code=1)
    assert "no such file" in run(tmp_path / "gone.hdf5", code=1)
    for kind in ("options.json", "weights.hdf5", "softmax.hdf5", "embed wrote", "run", "saved pipeline", "en_mini"):
        assert kind in run(tmp_path / "gone", code=1)
    assert "elmo download https://example.org/a" in run("https://example.org/a", code=1)
    assert "no such file or folder" in run("numpy", code=1)  # a package, and no pipeline
    (model / "weights.hdf5").unlink()
    output = run(model, code=1)
    assert "parameters 105,120" in output
    assert "weights.hdf5: no such file" in output


def test_saved_pipelines(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", name="mine")
    nlp.to_disk(tmp_path / "saved")
    output = run(tmp_path / "saved")
    for told in ("pipe mine", "3 layers of 256", "model en_mini, the embedded one"):
        assert told in output
    shim = nlp.get_pipe("mine").model.shims[0]
    with torch.no_grad():
        shim.unfreeze().char_cnn.projection.bias[0] += 1  # as training changes a weight
    nlp.to_disk(tmp_path / "tuned")
    output = run(tmp_path / "tuned")
    assert "en_mini" not in output
    assert "model a biLM of your own, not an official model" in output
    spacy.blank("en").to_disk(tmp_path / "without")
    assert "no elmo pipe" in run(tmp_path / "without", code=1)


def test_an_installed_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of `spacy package` and pip."""
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
    output = run("en_with_elmo")
    assert "en_with_elmo, pipe mine" in output
    assert "model en_mini, the embedded one" in output


def test_two_options_with_weights(model: Path, golden: Path) -> None:
    both = [model / "options.json", golden / "random_b" / "options.json"]
    assert "2 options files were given with weights" in run(model / "weights.hdf5", *both, code=1)
    assert run(*both).count("LSTM dim") == 2
    output = run(golden / "random_a", golden / "random_b", EN_MINI, "en_mini")
    assert output.count("weights all there") == 4
    assert output.count("en_mini, the embedded one") == 4


@pytest.mark.slow
def test_sentences_in_groups(tmp_path: Path) -> None:
    """The cache of e2e-coref has a group for each document."""
    path = tmp_path / "elmo_cache.hdf5"
    with h5py.File(path, "w") as file:
        file["bn:abc:00_0/0"] = np.zeros((3, 8, 3), np.float32)
        file["bn:abc:00_1/0"] = np.zeros((2, 8, 3), np.float32)
    message = run(path, code=1)
    assert "no sentence_to_index at its root" in message
    assert "those in groups, such as a group for each document, are not read" in message


@pytest.mark.slow
def test_a_file_that_hdf5_reads_without_end(model: Path) -> None:
    make_heap_cycle(model / "weights.hdf5")
    for paths in ([model], [model / "weights.hdf5"]):
        assert "get it again" in run(*paths, code=1)


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    for name in ("fifo", "fifo.hdf5"):
        os.mkfifo(tmp_path / name)
        assert "a folder or a special file" in run(tmp_path / name, code=1)


@pytest.mark.parametrize("name", ["a.parquet", "a.safetensors", "a.npy"])
def test_vectors_that_are_not_read(name: str, tmp_path: Path) -> None:
    """Nothing is told of the file before it is refused."""
    (tmp_path / name).write_bytes(b"\xff" * 100)
    told = run(tmp_path / name, code=1)
    assert "Of files that spacy elmo embed wrote it reads HDF5 and .spacy" in told
    assert "100 bytes" not in told


@pytest.mark.parametrize(
    ("layers", "expected"),
    [("all", "doc._.elmo_layers, 3 layers of 32, float32"), ("mean", "doc._.elmo, width 32, float32")],
)
def test_docs_that_embed_wrote(layers: str, expected: str, golden: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the river bank\na bank\n", encoding="utf8")
    embed(tmp_path / "text.txt", tmp_path / "a.spacy", bilm=str(golden / "random_a"), layers=layers)
    told = run(tmp_path / "a.spacy")
    assert hashlib.sha256((tmp_path / "a.spacy").read_bytes()).hexdigest() in told
    assert f"docs 2 tokens 5 ELMo vectors {expected}" in told
    assert "of the docs" not in told


def test_docs_without_vectors(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    plain, embedded = nlp.make_doc("A bank ."), nlp("A bank .")
    plain.user_data["elmo"] = 3
    DocBin(docs=[plain]).to_disk(tmp_path / "a.spacy")
    assert "docs 1 tokens 3 ELMo vectors none" in run(tmp_path / "a.spacy")
    DocBin(docs=[plain, embedded], store_user_data=True).to_disk(tmp_path / "a.spacy")
    assert "3 layers of 256, float32, on 1 of the docs" in run(tmp_path / "a.spacy")
    (tmp_path / "a.spacy").write_bytes(b"\xff" * 100)
    assert "damaged, cut short or unreadable" in run(tmp_path / "a.spacy", code=1)


def test_readers_of_an_options_file_that_leaves_out_keys(tmp_path: Path) -> None:
    contents = json.loads((EN_MINI / "options.json").read_text())
    del contents["char_cnn"]["n_highway"]
    contents["char_cnn"]["n_characters"] = 261
    (tmp_path / "options.json").write_text(json.dumps(contents))
    told = run(tmp_path / "options.json")
    assert "not by AllenNLP no char_cnn.n_highway in options.json" in told
    assert "not by bilm-tf char_cnn.n_characters is not 262" in told


# A softmax


@pytest.fixture
def language_model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    return tmp_path / "model"


def adaptive(width: int, cutoff: int = 4) -> AdaptiveSoftmax:
    layer = AdaptiveSoftmax(len(WORDS), width, [cutoff])
    layer.reset_parameters(generator=torch.Generator().manual_seed(1))
    return layer


def test_a_folder_with_its_softmax(language_model: Path) -> None:
    output = run(language_model)
    assert f"{(language_model / 'softmax.hdf5').stat().st_size:,} bytes" in output
    told = "softmax one vector for each word words 8 vectors 16 parameters 136 vocabulary.txt 8 words"  # 8 x (16 + 1)
    assert told in output
    assert told in run(language_model / "softmax.hdf5")  # by itself, too
    assert "weights all there" in output


def test_an_adaptive_one(language_model: Path) -> None:
    plain = model_of()
    LanguageModel(plain.bilm, adaptive(OPTIONS.projection_dim), plain.vocabulary).save(language_model)
    assert "softmax adaptive, clusters from word 4 words 8 vectors 16" in run(language_model)


def test_one_of_another_width(language_model: Path) -> None:
    write_output_layer(language_model / "softmax.hdf5", adaptive(32), "float32")
    output = run(language_model, code=1)
    assert "32" in output
    assert "16" in output
    assert "softmax.hdf5" in output


def test_other_words(language_model: Path) -> None:
    with (language_model / "vocabulary.txt").open("a", encoding="utf8") as file:
        file.write("newt\n")
    assert "9 words" in run(language_model, code=1)
    (language_model / "vocabulary.txt").unlink()
    assert "can't be used without its words" in run(language_model)


def test_damage(language_model: Path) -> None:
    path = language_model / "softmax.hdf5"
    path.write_bytes(path.read_bytes()[:-100])
    assert "cut short" in run(language_model, code=1)


def test_en_mini_with_and_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bilm = embed_bilm(monkeypatch, tmp_path / "bilms" / "en_mini")
    assert "softmax" not in run("en_mini")
    name = f"softmax_package_{tmp_path.name.replace('-', '_')}"
    package = make_package(monkeypatch, tmp_path / "site" / name, bilm / "weights.hdf5")
    assert "softmax one vector for each word" in run("en_mini")
    (package / "bilm.sha256").write_text("0" * 64, encoding="utf8")
    assert "en_mini" in run("en_mini", code=1)
