"""The engine's character encoder against the network's own."""

import copy
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from engine_cases import small

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import words_to_ids
from spacy_elmo.inference import Engine
from spacy_elmo.inference import words as word_vectors
from spacy_elmo.inference.packing import BOUNDARIES
from spacy_elmo.inference.words import WordEncoder, WordVectors
from spacy_elmo.modules import BiLM

OPTIONS = BiLMOptions(4, ((1, 4), (2, 8), (3, 8)), 2, "relu", 50, 16, 12, 1, None, None, True)


def encoder_of(bilm: BiLM, dtype: torch.dtype) -> WordEncoder:
    """Beside a network."""
    return WordEncoder(bilm.options, dict(bilm.named_parameters()), dtype)


IDS = torch.from_numpy(words_to_ids(["the", "a", "", "river" * 20, "東京", "bank"]))


@pytest.mark.parametrize(
    "changes", [{}, {"n_highway": 0}, {"activation": "tanh"}, {"dim": 32, "projection_dim": 20}], ids=str
)
@torch.no_grad()
def test_equals_the_network(changes: dict[str, object]) -> None:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    bilm = bilm_of(options, random_datasets(options, seed=1))
    cnn = bilm.char_cnn
    expected = cnn(IDS)
    in_float64 = copy.deepcopy(cnn).double()(IDS)
    for got in (expected, encoder_of(bilm, torch.float32)(IDS)):
        assert (got - in_float64).norm() / in_float64.norm() < 3e-7
    low = encoder_of(bilm, torch.bfloat16)(IDS)
    assert low.dtype == torch.float32
    error = (low - expected).norm() / expected.norm()
    assert error < 0.02
    assert (error > 1e-5) == (options.n_highway > 0 or cnn.projection is not None)
    assert encoder_of(bilm, torch.bfloat16)(IDS[:0]).shape == (0, options.projection_dim)


CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def bilm() -> BiLM:
    return small()


@torch.no_grad()
def vectors_of(bilm: BiLM, size: int) -> WordVectors:
    return WordVectors(encoder_of(bilm, torch.float32), bilm.boundary.device, size)


def encoded(bilm: BiLM, words: list[str]) -> torch.Tensor:
    with torch.no_grad():
        return bilm.char_cnn(torch.from_numpy(words_to_ids(words, bilm.options.max_characters)))


@pytest.mark.parametrize("size", [0, 1, 3, 1000])
@torch.no_grad()
def test_any_size_gives_the_same_vectors(bilm: BiLM, size: int) -> None:
    vectors = vectors_of(bilm, size)
    rng = np.random.default_rng(0)
    for _ in range(30):
        words = [f"w{k}" for k in rng.permutation(12)[: rng.integers(0, 9)]]
        expected = torch.cat([bilm.char_cnn(bilm.boundary), encoded(bilm, words)])
        torch.testing.assert_close(vectors(words), expected, **CLOSE)
        assert len(vectors) <= size


@torch.no_grad()
def test_the_least_recently_used_word_goes(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = vectors_of(bilm, 3)
    seen: list[list[str]] = []
    monkeypatch.setattr(word_vectors, "words_to_ids", lambda words, n: (seen.append(words), words_to_ids(words, n))[1])
    for words in (["a", "b", "c"], ["a"], ["d"], ["a", "c", "d"], ["b"]):
        vectors(words)
    assert seen == [["a", "b", "c"], ["d"], ["b"]]


@torch.no_grad()
def test_a_failed_addition_leaves_no_wrong_vectors(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, scatter = vectors_of(bilm, 10), word_vectors.scatter_rows

    def fails(table: torch.Tensor, *others: Any) -> None:
        if table is vectors._table:
            raise MemoryError
        scatter(table, *others)

    vectors(["a", "b"])
    monkeypatch.setattr(word_vectors, "scatter_rows", fails)
    with pytest.raises(MemoryError):
        vectors(["b", "c"])
    monkeypatch.undo()
    vectors._table.fill_(torch.nan)  # what a row holds that was not written
    torch.testing.assert_close(vectors(["a", "c", "b"])[BOUNDARIES:], encoded(bilm, ["a", "c", "b"]), **CLOSE)


@torch.no_grad()
def test_the_last_words_are_kept_and_very_long_ones_are_not(bilm: BiLM) -> None:
    vectors = vectors_of(bilm, 10)
    vectors(["a", "x" * 51, "y" * 100_000])
    assert len(vectors) == 1
    vectors(list("bcdefghijklm"))
    assert list(vectors._slots) == list("defghijklm")


def test_threads_that_turn_out_each_others_words(bilm: BiLM) -> None:
    """A cache that is full all the time, and batches so large that torch writes them with several threads."""
    torch.set_num_threads(2)
    vectors, words = vectors_of(bilm, 1500), [f"w{k}" for k in range(3000)]
    expected = encoded(bilm, words)

    def run(seed: int) -> float:
        rng, worst = np.random.default_rng(seed), 0.0
        for _ in range(8):
            chosen = rng.permutation(3000)[:1400]
            with torch.no_grad():
                got = vectors([words[k] for k in chosen])[BOUNDARIES:]
            worst = max(worst, float((got - expected[torch.from_numpy(chosen)]).abs().max()))
        return worst

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(run, range(4))) <= 1e-5
    for word, slot in vectors._slots.items():
        assert float((vectors._table[slot] - expected[int(word[1:])]).abs().max()) <= 1e-5
    assert len(set(vectors._slots.values())) == len(vectors) == 1500


def test_an_empty_cache_gives_the_same_bits_and_a_warm_one_nearly(bilm: BiLM) -> None:
    sentences = [["the", "river", "bank"], ["a", "bank", "."]]
    first, second = (Engine(bilm, cached_words=100) for _ in range(2))
    cold = first.run(sentences)
    for a, b in zip(cold, second.run(sentences), strict=True):
        assert (a == b).all()
    for a, b, c in zip(cold, first.run(sentences), Engine(bilm).run(sentences)):
        np.testing.assert_allclose(a, b, **CLOSE)
        np.testing.assert_allclose(a, c, **CLOSE)
