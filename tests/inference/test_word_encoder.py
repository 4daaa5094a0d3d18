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
from spacy_elmo.inference.words import WordEncoder
from spacy_elmo.modules import BiLM

OPTIONS = BiLMOptions(4, ((1, 4), (2, 8), (3, 8)), 2, "relu", 50, 16, 12, 1, None, None, True)


def encoder_of(bilm: BiLM, dtype: torch.dtype) -> WordEncoder:
    """Laid out beside a network."""
    encoder = WordEncoder(bilm.options, dtype, lossless=False)
    encoder.lay_out(dict(bilm.named_parameters()))
    return encoder


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


@pytest.mark.parametrize("prepacked", [True, False])
@torch.no_grad()
def test_matrices_leave_the_weights_and_come_back_bit_for_bit(prepacked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not prepacked:
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    bilm = bilm_of(OPTIONS, random_datasets(OPTIONS, seed=1))
    expected = {name: values.detach().clone() for name, values in bilm.named_parameters()}
    parts = [f"highways.{k}.{part}" for k in (0, 1) for part in ("carry", "transform")]
    matrices = [f"char_cnn.{part}.weight" for part in [*parts, "projection"]]
    for dtype in (torch.float32, torch.bfloat16):
        vectors, weights = encoder_of(bilm, dtype)(IDS), {name: values.clone() for name, values in expected.items()}
        encoder = WordEncoder(OPTIONS, dtype, lossless=True)
        encoder.lay_out(weights)
        assert list(weights) == [name for name in expected if name not in matrices]
        assert torch.equal(encoder(IDS), vectors)
        found = dict(encoder.matrices())
        assert list(found) == matrices
        assert all(torch.equal(values, expected[name]) for name, values in found.items())
        for values in found.values():
            values.add_(1)
        assert torch.equal(encoder(IDS), vectors)  # those were copies


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33])
@torch.no_grad()
def test_products_take_few_numbers_of_rows(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN keeps code for each."""
    bilm = bilm_of(OPTIONS, random_datasets(OPTIONS, seed=1))
    encoder, ids, rows = encoder_of(bilm, torch.float32), IDS.repeat(6, 1)[:n], []
    multiply = PrepackedLinear.__call__

    def counted(self: PrepackedLinear, x: torch.Tensor) -> torch.Tensor:
        rows.append(len(x))
        return multiply(self, x)

    monkeypatch.setattr(PrepackedLinear, "__call__", counted)
    vectors = encoder(ids)
    assert rows == [-(-n // 16) * 16] * 5  # two highways of two, and the projection
    torch.testing.assert_close(vectors, bilm.char_cnn(ids), rtol=0, atol=1e-6)


@torch.no_grad()
def test_a_network_of_another_type_is_not_rounded() -> None:
    bilm = bilm_of(OPTIONS, random_datasets(OPTIONS, seed=1))
    expected = bilm.char_cnn(IDS)
    encoder = encoder_of(bilm.double(), torch.float32)
    assert (encoder(IDS) - expected).norm() / expected.norm() < 1e-6
