"""Weights that the engine takes over and gives back."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, random_datasets
from stack_cases import LENGTHS, OPTIONS, allow, bilm_with, sentences_of

from spacy_elmo.inference import Engine, memory
from spacy_elmo.inference.lstm.compiled import KINDS
from spacy_elmo.modules import BiLM

DTYPES = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", [None, *(kind.name for kind in KINDS)])
@pytest.mark.parametrize("projection", [True, False])
def test_weights_that_were_taken_come_back(
    dtype: torch.dtype, kind: str | None, projection: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(kind, monkeypatch)
    monkeypatch.setattr(memory, "PAGE", 2**14)  # so that matrices of this size lie in them
    options = dataclasses.replace(OPTIONS, **({} if projection else {"dim": 64}))
    bilm = bilm_of(options, random_datasets(options, seed=3, scale=0.1, lstm_projection=projection))
    # equally near to two numbers of bfloat16, from above and below; the largest; a denormal number; zeros
    odd = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3e38, -1e-42, 0.0, -0.0])
    bilm.lstm.get_parameter("layers.0.recurrent_weight").data[1, 0, : len(odd)] = odd
    carry = bilm.char_cnn.get_parameter("highways.0.carry.weight")
    carry.data[0, : len(odd)] = odd
    expected = bytes_of(bilm)
    fast = Engine(bilm, dtype, take=True)
    assert fast.is_taken
    assert bilm.lstm.get_parameter("layers.1.input_weight").numel() == 0
    assert carry.numel() == 0
    fast.give_back()
    assert not fast.is_taken
    assert bytes_of(bilm) == expected


@pytest.mark.parametrize("page", [2**14, memory.PAGE])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_taken_or_not_makes_no_difference(dtype: torch.dtype, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = sentences_of(LENGTHS[5])
    expected = Engine(bilm_with(), dtype).run(sentences)
    monkeypatch.setattr(memory, "PAGE", page)
    fast = Engine(bilm_with(), dtype, take=True)
    for got, wanted in zip(fast.run(sentences), expected, strict=True):
        assert np.array_equal(got, wanted)
    fast.give_back()
    for got, wanted in zip(fast.run(sentences), expected, strict=True):
        assert np.array_equal(got, wanted)


def bytes_of(bilm: BiLM) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in bilm.to_arrays().items()}
