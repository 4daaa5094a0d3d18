"""The embedder: rows in any order and number, alone, in chains and from a cache, and the weights behind them."""

import copy
import dataclasses
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from engine_cases import LENGTHS, OPTIONS, bilm_with, sentences_of

from spacy_elmo.errors import WeightsError
from spacy_elmo.inference import Embedder, Engine, LayerCache
from spacy_elmo.modules import Arrays, BiLM

DTYPES = [torch.float32, torch.bfloat16]
# equally near to two numbers of bfloat16, from above and below; the largest; a denormal number; zeros
ODD = np.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3e38, -1e-42, 0.0, -0.0], np.float32)


def odd_bilm(projection: bool) -> BiLM:
    options = dataclasses.replace(OPTIONS, **({} if projection else {"dim": 64}))
    bilm = bilm_of(options, random_datasets(options, seed=3, scale=0.1, lstm_projection=projection))
    bilm.lstm.get_parameter("layers.0.recurrent_weight").data[1, 0, : len(ODD)] = torch.from_numpy(ODD)
    bilm.char_cnn.get_parameter("highways.0.carry.weight").data[0, : len(ODD)] = torch.from_numpy(ODD)
    return bilm


def bytes_of(arrays: Arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def close(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("exact", [True, False], ids=["in float16", "float32"])
def test_all_weights_come_back(dtype: torch.dtype, projection: bool, exact: bool) -> None:
    bilm = odd_bilm(projection) if not exact else bilm_with(**({} if projection else {"dim": 64}))
    arrays = bilm.to_arrays()
    if exact:
        arrays = {name: array.astype(np.float16).astype(np.float32) for name, array in arrays.items()}
    expected, sentences = bytes_of(arrays), sentences_of(LENGTHS[5])
    wanted = Engine(BiLM.from_arrays(bilm.options, arrays), dtype).run(sentences)
    embedder = Embedder.from_arrays(bilm.options, {name: array.copy() for name, array in arrays.items()}, dtype)
    held = sum(parameter.numel() * parameter.element_size() for parameter in embedder.bilm.parameters())
    assert held == (2 if exact else 4) * sum(array.size for array in arrays.values()) or not exact
    copies = [copy.deepcopy(embedder), pickle.loads(pickle.dumps(embedder))]
    for one in (embedder, *copies):
        assert bytes_of(one.bilm.to_arrays()) == expected
        for got, layers in zip(one.engine.run(sentences), wanted, strict=True):
            assert np.array_equal(got, layers)
    assert {one.fingerprint for one in copies} == {embedder.fingerprint}
    network = embedder.network()
    assert network is embedder.bilm
    assert all(parameter.dtype == torch.float32 for parameter in network.parameters())
    assert bytes_of(network.to_arrays()) == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_engine_has_copies(dtype: torch.dtype) -> None:
    bilm, rows = bilm_with(), [["a", "b"]]
    expected, places = bytes_of(bilm.to_arrays()), [parameter.data_ptr() for parameter in bilm.parameters()]
    embedder = Embedder(bilm, dtype, cached_words=0)
    before, engine, fingerprint = embedder.run(rows)[0], embedder.engine, embedder.fingerprint
    assert bytes_of(bilm.to_arrays()) == expected
    assert [parameter.data_ptr() for parameter in bilm.parameters()] == places
    assert all(parameter.requires_grad for parameter in bilm.parameters())
    for parameter in bilm.parameters():
        parameter.data.mul_(1.5)
    assert np.array_equal(engine.run(rows)[0], before)
    assert embedder.engine is engine
    embedder.changed()
    assert not np.allclose(embedder.run(rows)[0], before)
    assert embedder.fingerprint != fingerprint


def test_no_random_numbers() -> None:
    bilm, state = bilm_with(), torch.get_rng_state()
    Embedder.from_arrays(bilm.options, bilm.to_arrays()).run([["a"]])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("change", "message"), [
    (lambda arrays: arrays.pop("lstm.layers.1.bias"), "lstm.layers.1.bias"),
    (lambda arrays: arrays.update(more=np.zeros(3, np.float32)), "more"),
    (lambda arrays: arrays.update({"lstm.layers.0.bias": np.zeros((2, 3), np.float32)}), "lstm.layers.0.bias"),
    (lambda arrays: arrays.update({"lstm.layers.0.bias": arrays["lstm.layers.0.bias"].astype("f8")}), "float64"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(change: Callable[[Any], object], message: str) -> None:
    bilm = bilm_with()
    arrays = bilm.to_arrays()
    change(arrays)
    with pytest.raises(WeightsError, match=f"the biLM in memory.*{re.escape(message)}"):
        Embedder.from_arrays(bilm.options, arrays)


@pytest.mark.parametrize("seed", range(2))
def test_rows_chains_and_cache_at_random(seed: int) -> None:
    """Each row as if it ran alone, or after the row before it in its chain, whatever the batches and the cache."""
    rng = np.random.default_rng(seed)
    bilm = bilm_with()
    embedder, engine = Embedder(bilm), Engine(bilm)
    rows = [[f"w{k}" for k in rng.integers(0, 9, rng.integers(0, 7))] for _ in range(20)]
    chains = np.sort(rng.integers(0, 6, len(rows))).tolist()
    alone = [engine.run([row])[0] for row in rows]
    carried, state = [], engine.zero_state(1)
    for i, row in enumerate(rows):
        if i and chains[i] != chains[i - 1]:
            state = engine.zero_state(1)
        (layers,), state = engine.run_from([row], state)
        carried.append(layers)
    cache = LayerCache(2**20)
    for most in (1, 5, 1000):
        close(embedder.run(rows, most), alone)
        close(embedder.run(rows, most, chains), carried)
        close([layers for _, layers in sorted(embedder.embed(rows, most), key=lambda pair: pair[0])], alone)
        for some in (rows[:9], rows):  # the second time the first ones come from the cache
            close(embedder.run(some, most, cache=cache), alone[: len(some)])
            close(embedder.run(some, most, chains[: len(some)], cache), carried[: len(some)])


def test_equal_rows_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, ran = Embedder(bilm_with()), []
    run = Engine.run
    monkeypatch.setattr(Engine, "run", lambda self, rows: (ran.extend(rows), run(self, rows))[1])
    first, second, third = embedder.run([["a"], ["b"], ["a"]], cache=LayerCache(2**20))
    assert ran == [["a"], ["b"]]
    assert first is third
    assert not first.flags.writeable
    assert not np.array_equal(first, second)
