"""The owner of weights that are not trained: each is in memory once, and all come back bit for bit."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from stack_cases import LENGTHS, OPTIONS, allow, bilm_with, sentences_of

from spacy_elmo.errors import WeightsError
from spacy_elmo.inference import Engine, FrozenBiLM
from spacy_elmo.inference import packing as memory
from spacy_elmo.inference.engine import Layout
from spacy_elmo.inference.linear import PrepackedLinear
from spacy_elmo.inference.lstm import KINDS
from spacy_elmo.modules import Arrays, BiLM
from spacy_elmo.modules.char_cnn import character_table

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


def n_bytes(root: object) -> int:
    """Of all tensors that can be reached from an object, each storage once."""
    seen: set[int] = set()
    found: dict[int, int] = {}

    def walk(thing: object) -> None:
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage() if thing.layout == torch.strided else None
            found[storage.data_ptr() if storage else id(thing)] = storage.nbytes() if storage else 4 * thing.numel()
        elif isinstance(thing, dict):
            for value in thing.values():
                walk(value)
        elif isinstance(thing, list | tuple):
            for value in thing:
                walk(value)
        elif hasattr(thing, "__dict__"):
            walk(vars(thing))

    walk(root)
    return sum(found.values())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", [None, *(kind.name for kind in KINDS)])
@pytest.mark.parametrize("projection", [True, False])
def test_all_weights_come_back(
    dtype: torch.dtype, kind: str | None, projection: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(kind, monkeypatch)
    monkeypatch.setattr(memory, "PAGE", 2**14)  # so that matrices of this size lie in them
    bilm = odd_bilm(projection)
    arrays = bilm.to_arrays()
    expected = bytes_of(arrays)
    frozen = FrozenBiLM(bilm.options, arrays)
    assert arrays == {}  # they have moved
    assert bytes_of(frozen.to_arrays()) == expected
    frozen.prepare_engine(dtype)
    assert bytes_of(frozen.to_arrays()) == expected
    assert list(frozen.to_arrays()) == list(bilm.state_dict())
    assert bytes_of(frozen.to_network().to_arrays()) == expected


@pytest.mark.parametrize("page", [2**14, memory.PAGE])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_it_runs_as_an_engine_beside_the_network(
    dtype: torch.dtype, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences, bilm = sentences_of(LENGTHS[5]), bilm_with()
    expected = Engine.of(bilm, dtype).run(sentences)
    monkeypatch.setattr(memory, "PAGE", page)
    frozen = FrozenBiLM(bilm.options, bilm.to_arrays())
    for got, wanted in zip(frozen.prepare_engine(dtype).run(sentences), expected, strict=True):
        assert np.array_equal(got, wanted)
    again = Engine.of(frozen.to_network(), dtype)
    for got, wanted in zip(again.run(sentences), expected, strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_once_in_memory(dtype: torch.dtype) -> None:
    bilm = bilm_with(dim=512, projection_dim=256)
    weights = sum(parameter.numel() * 4 for parameter in bilm.parameters())
    frozen = FrozenBiLM(bilm.options, bilm.to_arrays())
    assert n_bytes(frozen) < 1.02 * weights
    frozen.prepare_engine(dtype)
    layout = frozen._layout
    assert layout is not None
    # what is laid out has left the plain ones, and what bfloat16 rounds away makes up the four bytes
    assert not any("input_weight" in name or name.endswith("carry.weight") for name in frozen._plain)
    stacks = n_bytes([stack.layers for stack in layout.stacks])  # type: ignore[attr-defined]
    assert stacks < 1.1 * weights
    assert n_bytes(frozen._plain) < 0.1 * weights


def test_a_network_is_left_as_it_is() -> None:
    bilm = bilm_with()
    expected, places = bytes_of(bilm.to_arrays()), [parameter.data_ptr() for parameter in bilm.parameters()]
    for dtype in DTYPES:
        fast = Engine.of(bilm, dtype)
        assert bytes_of(bilm.to_arrays()) == expected
        assert [parameter.data_ptr() for parameter in bilm.parameters()] == places
        assert all(parameter.requires_grad for parameter in bilm.parameters())
        before = fast.run([["a", "b"]])[0]
        for layer in bilm.lstm.weights():
            for matrix in layer.matrices:
                matrix.data.add_(1)
        assert np.array_equal(fast.run([["a", "b"]])[0], before)  # its matrices are copies
        bilm = bilm_with()
        expected, places = bytes_of(bilm.to_arrays()), [parameter.data_ptr() for parameter in bilm.parameters()]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("fails_at", range(10))
def test_nothing_is_lost_if_memory_runs_out(dtype: torch.dtype, fails_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any matrix, in either direction, and after all of them."""
    bilm = odd_bilm(True)
    expected, sentences = bytes_of(bilm.to_arrays()), [["a", "b"], ["c"]]
    wanted = Engine.of(copy.deepcopy(bilm), dtype).run(sentences)
    frozen, calls = FrozenBiLM(bilm.options, bilm.to_arrays()), 0

    def failing(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == fails_at + 1:
                raise MemoryError
            return original(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        stack = type(Layout(bilm.options, dict(bilm.named_parameters()), dtype, False).stacks[0])
        patch.setattr(stack, "add", failing(stack.add))
        patch.setattr("spacy_elmo.inference.words.PrepackedLinear", failing(PrepackedLinear))
        patch.setattr("spacy_elmo.inference.words.character_table", failing(character_table))
        patch.setattr(Engine, "_run_stack", failing(Engine._run_stack))
        for _ in range(2):
            try:
                fast = frozen.prepare_engine(dtype)
                break
            except MemoryError:
                assert bytes_of(frozen.to_arrays()) == expected
    assert calls > fails_at
    assert bytes_of(frozen.to_arrays()) == expected
    for got, was in zip(fast.run(sentences), wanted, strict=True):
        assert np.array_equal(got, was)


def test_one_engine_and_no_random_numbers() -> None:
    bilm, state = bilm_with(), torch.get_rng_state()
    frozen = FrozenBiLM(bilm.options, bilm.to_arrays())
    assert frozen.prepare_engine() is frozen.prepare_engine()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("change", "message"), [
    (lambda arrays: arrays.pop("lstm.layers.1.bias"), "lstm.layers.1.bias"),
    (lambda arrays: arrays.update(more=np.zeros(3, np.float32)), "more"),
    (lambda arrays: arrays.update({"lstm.layers.0.bias": np.zeros((2, 3), np.float32)}), "lstm.layers.0.bias"),
    (lambda arrays: arrays.update({"lstm.layers.0.bias": arrays["lstm.layers.0.bias"].astype("f8")}), "float64"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused_and_stay(change: Callable[[Any], object], message: str) -> None:
    bilm = bilm_with()
    arrays = bilm.to_arrays()
    change(arrays)
    names = set(arrays)
    with pytest.raises(WeightsError, match=f"the biLM in memory.*{re.escape(message)}"):
        FrozenBiLM(bilm.options, arrays)
    assert set(arrays) == names
