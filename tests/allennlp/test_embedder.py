"""AllenNLP's ElmoEmbedder: its values, its shapes, its refusals."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import shutil
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from golden_files import GOLDEN_NAMES, Golden, read_golden

from spacy_elmo import ElmoEmbedder
from spacy_elmo.allennlp import embedder as module
from spacy_elmo.errors import ElmoError, SettingsError, TruncatedWordsWarning
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.inference import Engine, dtype_of
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules.loading import Precision

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
    embedder = ElmoEmbedder.from_bilm(known.bilm)
    for _ in range(2):
        for i, array in enumerate(embedder.embed_batch(known.sentences)):
            assert array.dtype == np.float32
            np.testing.assert_allclose(array, known.expected[f"zero_state/{i}"], atol=CLOSE)


def test_carried_state(known: Golden) -> None:
    embedder = ElmoEmbedder.from_bilm(known.bilm, stateful=True)
    for _ in range(2):
        embedder.reset_states()
        for k, batch in enumerate(known.carry_batches):
            for i, array in enumerate(embedder.embed_batch(batch)):
                np.testing.assert_allclose(array, known.expected[f"carried_state/{k}/{i}"], atol=CLOSE)


def test_carried_state_through_embed_sentences(known: Golden) -> None:
    batches = [batch for batch in known.carry_batches if len(batch) == 3][:2]
    embedder = ElmoEmbedder.from_bilm(known.bilm, stateful=True)
    found = list(embedder.embed_sentences([sentence for batch in batches for sentence in batch], batch_size=3))
    for place, array in enumerate(found):
        np.testing.assert_allclose(array, known.expected[f"carried_state/{place // 3}/{place % 3}"], atol=CLOSE)


def test_embedded_bilm() -> None:
    assert ElmoEmbedder().embed_sentence(["Hello", "."]).shape == (3, 2, 256)


def test_one_word_names_a_bilm(golden: Path, embedder: ElmoEmbedder, tmp_path: Path) -> None:
    words = ["Hello", "."]
    expected = ElmoEmbedder(golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5").embed_sentence(
        words
    )
    shutil.copytree(golden / "random_a", tmp_path / "run" / "model-best")
    for folder in (golden / "random_a", str(golden / "random_a"), tmp_path / "run"):
        np.testing.assert_array_equal(ElmoEmbedder(folder).embed_sentence(words), expected)
    np.testing.assert_array_equal(ElmoEmbedder("en_mini").embed_sentence(words), ElmoEmbedder().embed_sentence(words))
    with pytest.raises(ElmoError, match=r"options\.json: no such file.*setting bilm"):
        ElmoEmbedder(tmp_path)


def test_batch_to_embeddings(embedder: ElmoEmbedder) -> None:
    batch = [["a", "b", "c"], [], ["d"]]
    activations, mask = embedder.batch_to_embeddings(batch)
    assert activations.shape == (3, 3, 3, 32)
    assert activations.dtype == torch.float32
    assert mask.tolist() == [[True, True, True], [False, False, False], [True, False, False]]
    for row, array in enumerate(embedder.embed_batch(batch)):
        np.testing.assert_allclose(activations[row, :, : array.shape[1]].numpy(), array, atol=CLOSE)
    assert not activations[~mask[:, None].expand(3, 3, 3)].any()


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
    embedder = ElmoEmbedder.from_bilm(known.bilm, stateful=stateful)
    options = known.bilm.options
    expected = embedder.embed_sentence(["one", "word"])
    embedder.reset_states()
    found = embedder.embed_batch(batch)
    assert [array.shape for array in found] == [(options.layers, 0, options.width)] * len(batch)
    activations, mask = embedder.batch_to_embeddings(batch)
    assert activations.shape == (len(batch), options.layers, 0, options.width)
    assert mask.shape == (len(batch), 0)
    # the state is where it was
    np.testing.assert_allclose(embedder.embed_sentence(["one", "word"]), expected, atol=CLOSE)


def test_sizes_of_numpy(embedder: ElmoEmbedder) -> None:
    sentences = [["a"], ["b", "c"], ["d"]]
    found = embedder.embed_sentences(sentences, np.int64(2))
    for array, expected in zip(found, embedder.embed_sentences(sentences, 2), strict=True):
        np.testing.assert_array_equal(array, expected)
    assert embedder.encode(["a b"], np.int32(1)).shape == (1, 32)


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


def test_long_sentences_run_in_smaller_batches(embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOKENS", 5)
    sizes: list[int] = []
    original = embedder.embed_batch
    monkeypatch.setattr(embedder, "embed_batch", lambda batch: sizes.append(len(batch)) or original(batch))
    sentences = [["a"] * n for n in (2, 3, 9, 1, 1, 1)]
    found = list(embedder.embed_sentences(iter(sentences), batch_size=2))
    assert sizes == [2, 1, 2, 1]
    for array, expected in zip(found, original(sentences), strict=True):
        np.testing.assert_allclose(array, expected, atol=CLOSE)


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
    embedder = ElmoEmbedder.from_bilm(read_golden(golden / "random_a").bilm)
    with pytest.warns(TruncatedWordsWarning, match="reads the first 48 of a token"):
        embedder.embed_sentence(["a" * 49, "東" * 17, "a" * 48])
    embedder.embed_sentence(["a" * 49])  # said once
    assert embedder.n_truncated == 3


def test_long_words_are_those_that_this_biLM_cuts() -> None:
    options = BiLMOptions(3, ((1, 4),), 0, "relu", 12, 4, 4, 1, None, None, True)
    embedder = ElmoEmbedder.from_bilm(bilm_of(options, random_datasets(options, seed=0)))
    with pytest.warns(TruncatedWordsWarning, match="reads the first 10 of a token"):
        embedder.embed_sentence(["a" * 10, "a" * 11])
    embedder.encode([["a" * 12, "東" * 4, "b"]])
    assert embedder.n_truncated == 3


@pytest.mark.filterwarnings("ignore::spacy_elmo.errors.TruncatedWordsWarning")
@pytest.mark.parametrize("stateful", [False, True])
def test_weights_in_memory(known: Golden, stateful: bool) -> None:
    arrays = known.bilm.to_arrays()
    embedder = ElmoEmbedder.from_arrays(known.bilm.options, arrays, stateful=stateful)
    assert not arrays  # the embedder is their only owner
    for k, batch in enumerate(known.carry_batches if stateful else [known.sentences]):
        name = f"carried_state/{k}" if stateful else "zero_state"
        for i, array in enumerate(embedder.embed_batch(batch)):
            np.testing.assert_allclose(array, known.expected[f"{name}/{i}"], atol=CLOSE)


@pytest.mark.slow
def test_precision() -> None:
    bilm, batch = load_bilm(), [["A", "dog", "ran", "."], ["Yes"]]
    precisions: tuple[Precision, ...] = ("float32", "auto")
    for precision in precisions:
        expected = Engine.of(bilm, dtype_of(precision, torch.device("cpu"))).run(batch)
        for embedder in (ElmoEmbedder(precision=precision), ElmoEmbedder.from_bilm(bilm, precision=precision)):
            for got, wanted in zip(embedder.embed_batch(batch), expected, strict=True):
                assert np.array_equal(got, wanted)
    with pytest.raises(SettingsError, match="float32, bfloat16, auto"):
        ElmoEmbedder(precision="fp16")  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_the_network_of_files_is_a_copy_that_lives_while_it_is_held(precision: Precision) -> None:
    embedder, expected = ElmoEmbedder(precision=precision), load_bilm().to_arrays()
    before = embedder.embed_sentence(["Hello", "."])
    network = embedder.elmo_bilm
    assert network is embedder.elmo_bilm
    assert network.bilm.options == embedder.options
    for name, values in network.bilm.to_arrays().items():
        assert values.tobytes() == expected.pop(name).tobytes()
    assert not expected
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert np.array_equal(embedder.embed_sentence(["Hello", "."]), before)
    dropped = weakref.ref(network)
    del network, parameter
    gc.collect()
    assert dropped() is None  # and its memory is free
    assert embedder.elmo_bilm.bilm.lstm.get_parameter("layers.0.bias").any()


def test_the_network_that_was_given_stays_the_callers() -> None:
    bilm = load_bilm()
    embedder = ElmoEmbedder.from_bilm(bilm)
    assert embedder.elmo_bilm.bilm is bilm
    embedder.embed_sentence(["Hello"])
    for name, values in load_bilm().to_arrays().items():
        assert bilm.to_arrays()[name].tobytes() == values.tobytes()


@pytest.mark.parametrize("precision", ["float32", "auto"])
@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda embedder: pickle.loads(pickle.dumps(embedder))])
def test_copies(
    golden: Path, copied: Callable[[ElmoEmbedder], ElmoEmbedder], stateful: bool, precision: Precision
) -> None:
    files = golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"
    sentences = [["The", "river"], ["a"]]
    for embedder in (
        ElmoEmbedder(*files, stateful=stateful, precision=precision),
        ElmoEmbedder.from_bilm(load_bilm(*files), stateful=stateful, precision=precision),
    ):
        embedder.embed_batch(sentences)
        other = copied(embedder)
        for name, array in embedder.to_arrays().items():
            assert other.to_arrays()[name].tobytes() == array.tobytes()
        expected = embedder.embed_batch(sentences)  # a copy goes on from the same state, and has a state of its own
        for got, wanted in zip(other.embed_batch(sentences), expected, strict=True):
            assert np.array_equal(got, wanted)
        assert other.elmo_bilm is not embedder.elmo_bilm
