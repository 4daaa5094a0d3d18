"""AllenNLP's ElmoEmbedder: its values, its shapes, its refusals."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import spacy
import torch
import torch.nn.functional as F
from elmo_cases import SENTENCES
from golden_files import GOLDEN_NAMES, Golden, read_golden

from spacy_elmo import ElmoEmbedder, batch_to_ids
from spacy_elmo.allennlp.embedder import device_of
from spacy_elmo.errors import CommandError, CorpusError, ElmoError, SettingsError, TruncatedWordsWarning
from spacy_elmo.inference import Engine, dtype_of
from spacy_elmo.inference.linear import Precision
from spacy_elmo.modules import load_bilm

CLOSE = 1e-5


@pytest.fixture(scope="module", params=GOLDEN_NAMES)
def known(request: pytest.FixtureRequest, golden: Path) -> Golden:
    return read_golden(golden / request.param)


@pytest.fixture(scope="module")
def embedder(golden: Path) -> ElmoEmbedder:
    folder = golden / "random_a"
    return ElmoEmbedder(folder / "options.json", folder / "weights.hdf5")


# Values


@pytest.mark.filterwarnings("ignore::spacy_elmo.errors.TruncatedWordsWarning")
def test_zero_state(known: Golden) -> None:
    embedder = ElmoEmbedder.from_arrays(known.bilm.options, known.bilm.to_arrays())
    for _ in range(2):
        for i, array in enumerate(embedder.embed_batch(known.sentences)):
            assert array.dtype == np.float32
            np.testing.assert_allclose(array, known.expected[f"zero_state/{i}"], atol=CLOSE)


def test_carried_state(known: Golden) -> None:
    embedder = ElmoEmbedder.from_arrays(known.bilm.options, known.bilm.to_arrays(), stateful=True)
    for _ in range(2):
        embedder.reset_states()
        for k, batch in enumerate(known.carry_batches):
            for i, array in enumerate(embedder.embed_batch(batch)):
                np.testing.assert_allclose(array, known.expected[f"carried_state/{k}/{i}"], atol=CLOSE)


def test_batch_to_embeddings(embedder: ElmoEmbedder) -> None:
    batch = [["a", "b", "c"], [], ["d"]]
    activations, mask = embedder.batch_to_embeddings(batch)
    assert activations.shape == (3, 3, 3, 32)
    assert activations.dtype == torch.float32
    assert mask.tolist() == [[True, True, True], [False, False, False], [True, False, False]]
    for row, array in enumerate(embedder.embed_batch(batch)):
        np.testing.assert_allclose(activations[row, :, : array.shape[1]].numpy(), array, atol=CLOSE)
    assert not activations[~mask[:, None].expand(3, 3, 3)].any()


@pytest.mark.parametrize("length", [None, 2, 5])
@pytest.mark.parametrize("output_format", ["all", "top", "average"])
def test_padded(embedder: ElmoEmbedder, output_format: Any, length: int | None) -> None:
    batch = [["a", "b", "c"], [], ["d"]]
    vectors, mask = embedder.embed_padded(batch, output_format, length, batch_size=2)
    tokens = length or 3
    assert vectors.shape == (3, *([3] if output_format == "all" else []), tokens, 32)
    assert mask.sum(1).tolist() == [min(3, tokens), 0, 1]
    for row, kept, array in zip(vectors, mask, embedder.embed_batch(batch), strict=True):
        expected = {"all": array, "top": array[-1], "average": array.mean(0)}[output_format]
        np.testing.assert_allclose(row[..., kept, :], expected[..., :tokens, :], atol=CLOSE)
        assert not row[..., ~kept, :].any()
    assert [part.shape[0] for part in embedder.embed_padded([], output_format, length)] == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_torchs_defaults_make_no_difference(embedder: ElmoEmbedder, dtype: torch.dtype, device: str) -> None:
    expected = embedder.embed_sentence(["a", "b"])
    try:
        torch.set_default_dtype(dtype)
        with torch.device(device):
            activations, mask = embedder.batch_to_embeddings([["a", "b"]])
    finally:
        torch.set_default_dtype(torch.float32)
    assert activations.dtype == torch.float32
    np.testing.assert_allclose(activations[0].numpy(), expected, atol=CLOSE)
    assert mask.tolist() == [[True, True]]


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("batch", [[], [[]], [[], []]], ids=str)
def test_no_words(known: Golden, batch: list[list[str]], stateful: bool) -> None:
    options = known.bilm.options
    embedder = ElmoEmbedder.from_arrays(options, known.bilm.to_arrays(), stateful=stateful)
    expected = embedder.embed_sentence(["one", "word"])
    embedder.reset_states()
    found = embedder.embed_batch(batch)
    assert [array.shape for array in found] == [(options.layers, 0, options.width)] * len(batch)
    activations, mask = embedder.batch_to_embeddings(batch)
    assert activations.shape == (len(batch), options.layers, 0, options.width)
    assert mask.shape == (len(batch), 0)
    # the state is where it was
    np.testing.assert_allclose(embedder.embed_sentence(["one", "word"]), expected, atol=CLOSE)


# Streams


def test_embed_sentences_is_lazy(embedder: ElmoEmbedder) -> None:
    taken: list[int] = []

    def stream() -> Iterator[list[str]]:
        for i in range(10):
            taken.append(i)
            yield [str(i)] * (i + 1)

    found = embedder.embed_sentences(stream(), batch_size=3)
    assert taken == []
    assert next(found).shape == (3, 1, 32)
    assert taken == [0, 1, 2]
    assert [array.shape[1] for array in found] == list(range(2, 11))


# Refusals


def test_strings_and_other_words(embedder: ElmoEmbedder) -> None:
    for call in (
        lambda: embedder.embed_sentence("The cat"),
        lambda: embedder.embed_batch(["The", "cat"]),
        lambda: embedder.batch_to_embeddings("The cat"),
        lambda: next(embedder.embed_sentences(["The cat"])),
    ):
        with pytest.raises(ElmoError, match="Expected a list of words"):
            call()
    for word in (3, None, ["a"], b"a"):
        with pytest.raises(ElmoError, match="a word is"):
            embedder.embed_sentence(["a", word])


def test_docs_and_their_parts(embedder: ElmoEmbedder) -> None:
    docs: Any = list(spacy.blank("xx").pipe(["The bank", "A ."]))
    doors: list[Callable[[Any], Any]] = [embedder.encode, embedder.embed_batch, embedder.embed_padded, batch_to_ids]
    for given, kind in ((docs, "Doc"), (docs[0], "Token"), ([doc[:1] for doc in docs], "Span")):
        for door in doors:
            with pytest.raises(ElmoError, match=rf"the {kind} '.* of a doc \[token\.text for token in doc\]"):
                door(given)


def test_bad_settings(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    for batch_size in (0, -1, "3"):
        with pytest.raises(SettingsError, match="batch_size is"):
            embedder.embed_sentences([["a"]], batch_size=batch_size)
    with pytest.raises(SettingsError, match="Expected one of all, top, average"):
        embedder.embed_file(io.StringIO("a"), tmp_path / "x.hdf5", "mean")
    with pytest.raises(SettingsError, match="weight_file is not"):
        ElmoEmbedder("options.json")
    with pytest.raises(SettingsError, match="the GPU 99 was asked for"):
        ElmoEmbedder(cuda_device=99)
    assert list(tmp_path.iterdir()) == []


def test_long_words_are_counted(golden: Path) -> None:
    embedder = ElmoEmbedder(golden / "random_a")
    with pytest.warns(TruncatedWordsWarning, match="reads the first 48 of a token"):
        embedder.embed_sentence(["a" * 49, "東" * 17, "a" * 48])
    embedder.embed_sentence(["a" * 49])  # said once
    embedder.encode([["a" * 50, "b"]])
    assert embedder.n_truncated == 4


def test_precision(golden: Path) -> None:
    folder, batch = golden / "random_a", [["A", "dog", "ran", "."], ["Yes"]]
    bilm = load_bilm(folder / "options.json", folder / "weights.hdf5")
    precisions: tuple[Precision, ...] = ("float32", "auto")
    for precision in precisions:
        expected = Engine(bilm, dtype_of(precision, torch.device("cpu"))).run(batch)
        for got, wanted in zip(ElmoEmbedder(folder, precision=precision).embed_batch(batch), expected, strict=True):
            assert np.array_equal(got, wanted)
    with pytest.raises(SettingsError, match="float32, bfloat16, auto"):
        ElmoEmbedder(precision="fp16")  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_the_network_has_the_weights_of_the_files(precision: Precision, golden: Path) -> None:
    files = golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"
    embedder, expected = ElmoEmbedder(*files, precision=precision), load_bilm(*files).to_arrays()
    before = embedder.embed_sentence(["Hello", "."])
    network = embedder.elmo_bilm
    assert network is embedder.elmo_bilm
    assert network.bilm.options == embedder.options
    for name, values in network.bilm.to_arrays().items():
        assert values.tobytes() == expected.pop(name).tobytes()
    assert not expected
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert np.array_equal(embedder.embed_sentence(["Hello", "."]), before)


@pytest.mark.parametrize(
    ("precision", "stateful"), [("float32", False), pytest.param("auto", True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda embedder: pickle.loads(pickle.dumps(embedder))])
def test_copies(
    golden: Path, copied: Callable[[ElmoEmbedder], ElmoEmbedder], stateful: bool, precision: Precision
) -> None:
    files = golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"
    sentences = [["The", "river"], ["a"]]
    embedder = ElmoEmbedder(*files, stateful=stateful, precision=precision)
    embedder.embed_batch(sentences)
    other = copied(embedder)
    for name, array in embedder.to_arrays().items():
        assert other.to_arrays()[name].tobytes() == array.tobytes()
    expected = embedder.embed_batch(sentences)  # a copy goes on from the same state, and has a state of its own
    for got, wanted in zip(other.embed_batch(sentences), expected, strict=True):
        assert np.array_equal(got, wanted)
    assert other.elmo_bilm is not embedder.elmo_bilm


TEXT = "the cat sat .\n a  dog\tran \nthe cat sat .\nyes\n"


@pytest.mark.parametrize("output_format", ["all", "top", "average"])
def test_embed_file(embedder: ElmoEmbedder, tmp_path: Path, output_format: str) -> None:
    path = tmp_path / "vectors.hdf5"
    embedder.embed_file(io.StringIO(TEXT), str(path), output_format, batch_size=3)
    expected = embedder.embed_batch([line.split() for line in TEXT.splitlines()])
    with h5py.File(path) as file:
        assert set(file) == {"0", "1", "2", "3", "sentence_to_index"}
        assert json.loads(file["sentence_to_index"][0]) == {"the cat sat .": "2", "a  dog\tran": "1", "yes": "3"}
        for i, layers in enumerate(expected):
            wanted = {"all": layers, "top": layers[-1], "average": layers.mean(0)}[output_format]
            assert file[str(i)].dtype == np.float32
            assert file[str(i)].shape == wanted.shape
            np.testing.assert_allclose(file[str(i)], wanted, atol=CLOSE)


def test_forget_sentences_and_sentence_keys(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"
    embedder.embed_file(io.StringIO(TEXT), path, forget_sentences=True)
    with h5py.File(path) as file:
        assert set(file) == {"0", "1", "2", "3"}
    embedder.embed_file(io.StringIO("a b\nc: d.\n0\n"), path, "top", use_sentence_keys=True)
    with h5py.File(path) as file:
        assert set(file) == {"a b", "c: d.", "0"}
        np.testing.assert_allclose(file["c: d."], embedder.embed_sentence(["c:", "d."])[-1], atol=CLOSE)


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("a\n\nb\n \t\n", False, "these lines are empty: 2, 4. Expected"),
        ("a\n" + "\n" * 13, False, "2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more"),
        ("a\nb\nc\n b\n", True, "sentence 4 can't be the key.*it is sentence 2, too.*--use-sentence-keys"),
        ("x\ny/z", True, "sentence 2 can't be the key.*a slash.*--use-sentence-keys"),
        ("x\ny\0", True, "sentence 2 can't be the key.*NUL"),
        ("x\n.", True, "sentence 2 can't be the key.*dot"),
        ("x\n\ud800", True, "sentence 2 can't be the key.*surrogate"),
    ],
)
def test_texts_that_are_refused(
    embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, keys: bool, message: str
) -> None:
    monkeypatch.setattr(embedder, "embed_batch", lambda batch: pytest.fail("embedded"))
    with pytest.raises(CommandError, match=f"(?s){message}"):
        embedder.embed_file(io.StringIO(text), tmp_path / "x.hdf5", use_sentence_keys=keys)
    with pytest.raises(CommandError, match="Expected an open text file"):
        embedder.embed_file("text.txt", tmp_path / "x.hdf5")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", [1, 5_000])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_text_that_is_not_utf8(embedder: ElmoEmbedder, tmp_path: Path, before: int, newline: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(f"naïve words{newline}".encode() * before + b"caf\xe9 .\n" + b"more\n" * 9_000)
    with path.open(encoding="utf8") as file, pytest.raises(CommandError, match=f"line {before + 1} is not UTF-8"):
        embedder.embed_file(file, tmp_path / "x.hdf5")
    with path.open("rb") as file, pytest.raises(CommandError, match="without the b in its mode"):
        embedder.embed_file(file, tmp_path / "x.hdf5")
    assert list(tmp_path.iterdir()) == [path]


def test_the_text_is_not_overwritten(embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, link = tmp_path / "text.txt", tmp_path / "link.hdf5"
    text.write_text("a b\n")
    link.symlink_to(text)
    for output in (text, str(text), link):
        with text.open(encoding="utf8") as file, pytest.raises(CommandError, match="to write are the same"):
            embedder.embed_file(file, output)
    monkeypatch.setattr(sys, "stdin", io.StringIO("a b"))
    before = os.dup(0)
    with text.open() as file:
        os.dup2(file.fileno(), 0)
    try:
        with pytest.raises(CommandError, match="to write are the same"):
            embedder.embed_file(sys.stdin, text)
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert text.read_text() == "a b\n"
    with text.open(encoding="utf8") as file:
        embedder.embed_file(file, tmp_path / "x.hdf5")


# The state, and vectors of texts


def top(embedder: ElmoEmbedder) -> list[np.ndarray]:
    return [layers[-1] for layers in embedder.embed_batch(SENTENCES)]


def same(got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return all(np.allclose(a, b, atol=1e-5) for a, b in zip(got, expected, strict=True))


def test_the_interface_of_allennlp(golden: Path) -> None:
    """The network and its state are the embedder's, as AllenNLP's users write it."""
    stateful = ElmoEmbedder(golden / "random_a", stateful=True)
    first, second = top(stateful), top(stateful)
    assert not same(first, second)
    network = stateful.elmo_bilm
    assert (network.num_layers, network.get_output_dim(), stateful.cuda_device) == (3, 32, -1)
    assert network._elmo_lstm._states is not None
    network._elmo_lstm._states = None
    for expected in (first, second):  # the network carries the state on, and so does the embedder after it
        layers = network(batch_to_ids(SENTENCES))["activations"][2].numpy()
        assert same([row[1 : len(words) + 1] for row, words in zip(layers, SENTENCES)], expected)
    stateful.reset_states()
    network(batch_to_ids(SENTENCES))
    assert same(top(stateful), second)
    network._elmo_lstm.reset_states()
    network._elmo_lstm.stateful = False
    assert not stateful.stateful
    for _ in range(2):
        assert same(top(stateful), first)


TEXTS = ["He sat on the bank of the river.", "", "A bank raises its rates; others don't.", " \n", "Yes"]


def test_means_of_the_tokenizers_words(embedder: ElmoEmbedder) -> None:
    tokenizer = spacy.blank("en").tokenizer
    vectors = embedder.encode(TEXTS)  # English is the default
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, embedder.options.width)
    for text, vector in zip(TEXTS, vectors):
        words = [token.text for token in tokenizer(text) if not token.is_space]
        tokens = embedder.embed_sentence(words).astype(np.float64).mean(0)
        np.testing.assert_allclose(vector, tokens.sum(0) / max(1, len(words)), atol=1e-5)
    assert not vectors[[1, 3]].any()
    assert vectors[[0, 2, 4]].any(1).all()


def test_texts_words_and_batches(embedder: ElmoEmbedder, capsys: pytest.CaptureFixture[str]) -> None:
    expected = embedder.encode(TEXTS, lang=None)
    assert capsys.readouterr().err == ""
    for size in (1, np.int64(2)):
        found = embedder.encode(iter(TEXTS), batch_size=size, lang=None, show_progress_bar="lines")
        np.testing.assert_allclose(found, expected, atol=CLOSE)
        shown = capsys.readouterr().err
        assert "5/5" in shown
        assert "\r" not in shown
    np.testing.assert_allclose(embedder.encode(TEXTS[0], lang=None), expected[0], atol=CLOSE)
    np.testing.assert_allclose(embedder.encode([TEXTS[0].split()], lang=None)[0], expected[0], atol=CLOSE)
    assert np.abs(embedder.encode([TEXTS[0]])[0] - expected[0]).max() > 1e-3  # "river." is two tokens of English
    assert embedder.encode([], lang=None).shape == (0, embedder.options.width)


@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.parametrize("stderr", [io.StringIO, lambda: None])  # no terminal; pythonw on Windows has none
def test_no_bar_without_a_terminal(
    embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch, progress: bool, stderr: Callable[[], Any]
) -> None:
    stream = stderr()
    monkeypatch.setattr(sys, "stderr", stream)
    embedder.encode(TEXTS, lang=None, show_progress_bar=progress)
    assert not stream or not stream.getvalue()


def test_a_stateful_embedder_carries_nothing(golden: Path, embedder: ElmoEmbedder) -> None:
    stateful = ElmoEmbedder(golden / "random_a", stateful=True)
    expected = embedder.embed_sentence(["a", "b"])
    vectors = stateful.encode(TEXTS, lang=None)
    np.testing.assert_allclose(stateful.embed_sentence(["a", "b"]), expected, atol=1e-5)
    np.testing.assert_allclose(vectors, embedder.encode(TEXTS, lang=None), atol=1e-5)


def test_arguments_of_sentence_transformers(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = ElmoEmbedder(golden / "random_a")
    expected = embedder.encode(TEXTS)
    assert embedder.get_sentence_embedding_dimension() == expected.shape[1]
    for options in ({"convert_to_tensor": True, "device": "cpu"}, {"convert_to_numpy": False}):
        tensor = embedder.encode(TEXTS, normalize_embeddings=True, show_progress_bar=None, **options)
        assert isinstance(tensor, torch.Tensor)
        normalized = F.normalize(torch.from_numpy(expected.astype(np.float64)), dim=1)  # zeros stay zeros
        np.testing.assert_allclose(tensor, normalized, atol=1e-6)
    assert embedder.encode(TEXTS[0], convert_to_tensor=True).shape == expected[0].shape
    with pytest.raises(SettingsError, match=r"the GPU 7 was asked for .* but torch finds"):
        embedder.encode(TEXTS, device="cuda:7")
    monkeypatch.setattr("spacy_elmo.allennlp.embedder.device_of", lambda number: torch.device("cpu"))
    engine = embedder._embedder.engine
    np.testing.assert_array_equal(embedder.encode(TEXTS, device="cuda"), expected)
    assert embedder._embedder.engine is not engine


def test_refusals(embedder: ElmoEmbedder) -> None:
    for texts, part in (
        ([3], r"texts\[0\]: 3, which is not a text"),
        ([["a", 1]], "1"),
        (None, "the texts are None"),
        (b"a", r"texts\[0\]: 97"),
        (["a", "b \ud800"], r"texts\[1\]: half a surrogate"),
        (["a" * 1_000_001], r"texts\[0\]: more than 1,000,000 characters"),
    ):
        with pytest.raises(ElmoError, match=part):
            embedder.encode(texts, lang="xx")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="batch_size is 0"):
        embedder.encode(TEXTS, batch_size=0)
    with pytest.raises(CorpusError, match="language"):
        embedder.encode(TEXTS, lang="none such")


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_numbers(monkeypatch: pytest.MonkeyPatch, seen: int) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: seen)
    assert device_of(-1) == torch.device("cpu")
    for number in range(seen):
        assert device_of(number) == torch.device("cuda", number)
    for number in (seen, seen + 1):
        with pytest.raises(SettingsError, match=f"the GPU {number} was asked for"):
            device_of(number)
