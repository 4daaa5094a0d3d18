"""The engine's character encoder against the network's own."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from bilm_cases import bilm_of, random_datasets

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import words_to_ids
from spacy_elmo.inference.linear import PrepackedLinear
from spacy_elmo.inference.word_encoder import WordEncoder

OPTIONS = BiLMOptions(4, ((1, 4), (2, 8), (3, 8)), 2, "relu", 50, 16, 12, 1, None, None, True)
IDS = torch.from_numpy(words_to_ids(["the", "a", "", "river" * 20, "東京", "bank"]))


@pytest.mark.parametrize(
    "changes", [{}, {"n_highway": 0}, {"activation": "tanh"}, {"dim": 32, "projection_dim": 20}], ids=str
)
@torch.no_grad()
def test_equals_the_network(changes: dict[str, object]) -> None:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    cnn = bilm_of(options, random_datasets(options, seed=1)).char_cnn
    expected = cnn(IDS)
    in_float64 = copy.deepcopy(cnn).double()(IDS)
    for got in (expected, WordEncoder(cnn, torch.float32)(IDS)):
        assert (got - in_float64).norm() / in_float64.norm() < 3e-7
    low = WordEncoder(cnn, torch.bfloat16)(IDS)
    assert low.dtype == torch.float32
    error = (low - expected).norm() / expected.norm()
    assert error < 0.02
    assert (error > 1e-5) == (options.n_highway > 0 or cnn.projection is not None)
    assert WordEncoder(cnn, torch.bfloat16)(IDS[:0]).shape == (0, options.projection_dim)


@pytest.mark.parametrize("prepacked", [True, False])
@torch.no_grad()
def test_what_was_taken_comes_back_bit_for_bit(prepacked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not prepacked:
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    cnn = bilm_of(OPTIONS, random_datasets(OPTIONS, seed=1)).char_cnn
    expected = {name: values.clone() for name, values in cnn.state_dict().items()}
    for dtype in (torch.float32, torch.bfloat16):
        encoder = WordEncoder(cnn, dtype)
        vectors = encoder(IDS)
        encoder.take()
        matrices = [f"highways.{k}.{part}.weight" for k in (0, 1) for part in ("carry", "transform")]
        assert all(cnn.get_parameter(name).numel() == 0 for name in [*matrices, "projection.weight"])
        assert torch.equal(encoder(IDS), vectors)
        for parameter, values in encoder.matrices():
            parameter.data = values
        encoder.forget_taken()
        assert all(torch.equal(values, expected[name]) for name, values in cnn.state_dict().items())
        for name in [*matrices, "projection.weight"]:
            cnn.get_parameter(name).add_(1)
        assert torch.equal(encoder(IDS), vectors)  # the encoder kept its own
        cnn.load_state_dict(expected)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33])
@torch.no_grad()
def test_products_take_few_numbers_of_rows(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN keeps code for each."""
    cnn = bilm_of(OPTIONS, random_datasets(OPTIONS, seed=1)).char_cnn
    encoder, ids, rows = WordEncoder(cnn, torch.float32), IDS.repeat(6, 1)[:n], []
    multiply = PrepackedLinear.__call__

    def counted(self: PrepackedLinear, x: torch.Tensor) -> torch.Tensor:
        rows.append(len(x))
        return multiply(self, x)

    monkeypatch.setattr(PrepackedLinear, "__call__", counted)
    vectors = encoder(ids)
    assert rows == [-(-n // 16) * 16] * 5  # two highways of two, and the projection
    torch.testing.assert_close(vectors, cnn(ids), rtol=0, atol=1e-6)


@torch.no_grad()
def test_a_network_of_another_type_is_not_rounded() -> None:
    cnn = bilm_of(OPTIONS, random_datasets(OPTIONS, seed=1)).char_cnn
    expected = cnn(IDS)
    cnn.double()
    encoder = WordEncoder(cnn, torch.float32)
    assert (encoder(IDS) - expected).norm() / expected.norm() < 1e-6
    encoder.take()
    assert not encoder.is_taken  # rounded to float32 they could not come back
    assert cnn.get_parameter("highways.0.carry.weight").numel()
