"""Muon against torch's own, which takes one matrix at a time, and against singular values."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.config import OptimizerSettings
from spacy_elmo.pretraining.optimizers import MuonAdamW, blocks, dense_optimizer, is_matrix, orthogonal

DIM, WIDTH, FILTERS, UPDATES = 20, 16, 12, 3
OPTIONS = BiLMOptions(3, ((1, 5), (2, FILTERS - 5)), 1, "relu", WIDTH, DIM, WIDTH, 2, 3.0, 3.0, True)
# neither the LSTM nor the character CNN has a projection
BARE = replace(
    OPTIONS, filters=((1, 6), (2, WIDTH - 6)), n_highway=3, dim=WIDTH, n_layers=1, use_skip_connections=False
)
RATE, DECAY, MOMENTUM = 0.05, 0.1, 0.8


def bilm(options: BiLMOptions = OPTIONS) -> BiLM:
    torch.manual_seed(0)
    made = BiLM(options)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


def pieces(name: str, values: Tensor) -> list[Tensor]:
    """The matrices of a parameter, cut out by hand."""
    if name.endswith(("input_weight", "recurrent_weight")):
        dim = values.shape[2] // 4
        return [values[d, :, gate * dim : (gate + 1) * dim] for d in range(2) for gate in range(4)]
    return list(values) if values.dim() == 3 else [values]


def test_which_parameters_are_matrices() -> None:
    chosen = {name for name, _ in bilm().named_parameters() if is_matrix(name)}
    layers = {f"lstm.layers.{k}.{part}" for k in (0, 1) for part in ("input_weight", "recurrent_weight", "projection")}
    highway = {f"char_cnn.highways.0.{part}.weight" for part in ("carry", "transform")}
    assert chosen == layers | highway | {"char_cnn.projection.weight"}


def by_shape(optimizer: MuonAdamW) -> list[list[tuple[int, str, nn.Parameter]]]:
    """The groups of a GPU."""
    groups: dict[torch.Size, list[tuple[int, str, nn.Parameter]]] = {}
    for number, (name, parameter) in enumerate(optimizer.matrices):
        groups.setdefault(blocks(name, parameter).shape[-2:], []).append((number, name, parameter))
    return list(groups.values())


def test_matrices_that_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU. One matrix has no gradient."""
    ended = []
    for together in (False, True):
        if together:
            monkeypatch.setattr(MuonAdamW, "_together", by_shape)
        network = bilm()
        optimizer = dense_optimizer(network.named_parameters(), OptimizerSettings("muon", RATE, weight_decay=DECAY))
        assert isinstance(optimizer, MuonAdamW)
        assert (len(optimizer._together()) < len(optimizer.matrices)) == together
        for update in range(UPDATES):
            torch.manual_seed(update)
            for parameter in network.parameters():
                parameter.grad = torch.randn(parameter.shape)
            network.lstm.layers[0].recurrent_weight.grad = None
            optimizer.step()
        ended.append([parameter.detach() for parameter in network.parameters()])
        assert optimizer.rounding() == optimizer.rounding()
    for one, other in zip(*ended, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch has Muon from 2.9 on")
@pytest.mark.parametrize("options", [OPTIONS, BARE], ids=["usual", "bare"])
@pytest.mark.parametrize("matmul_dtype", [torch.float32, torch.bfloat16])
def test_updates_are_those_of_torch(matmul_dtype: torch.dtype, options: BiLMOptions) -> None:
    """torch multiplies in bfloat16 always, and AdamW is its own. The bound is of bfloat16's 8 bits."""
    network = bilm(options)
    settings = OptimizerSettings("muon", RATE, weight_decay=DECAY, momentum=MOMENTUM)
    optimizer = dense_optimizer(network.named_parameters(), settings, matmul_dtype)
    parameters = dict(network.named_parameters())
    copies = {
        name: [nn.Parameter(piece.detach().clone()) for piece in (pieces(name, p) if is_matrix(name) else [p])]
        for name, p in parameters.items()
    }
    muon = torch.optim.Muon(
        [copy for name, own in copies.items() if is_matrix(name) for copy in own],
        lr=RATE,
        weight_decay=DECAY,
        momentum=MOMENTUM,
        adjust_lr_fn="match_rms_adamw",
    )
    rest = {is_bias: [] for is_bias in (False, True)}  # type: dict[bool, list[nn.Parameter]]
    for name, own in copies.items():
        if not is_matrix(name):
            rest[name.endswith("bias")] += own
    groups = [{"params": rest[False], "weight_decay": DECAY}, {"params": rest[True], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=RATE, betas=(settings.beta1, settings.beta2), eps=settings.epsilon)
    for _ in range(UPDATES):
        for name, parameter in parameters.items():
            parameter.grad = torch.randn_like(parameter)
            for copy, gradient in zip(
                copies[name], pieces(name, parameter.grad) if is_matrix(name) else [parameter.grad]
            ):
                copy.grad = gradient.clone()
        optimizer.step()
        muon.step()
        adamw.step()
    for name, parameter in parameters.items():
        got = pieces(name, parameter) if is_matrix(name) else [parameter]
        for one, other in zip(got, copies[name], strict=True):
            bound = 0.02 * UPDATES * RATE if is_matrix(name) else 1e-6
            torch.testing.assert_close(one.detach(), other.detach(), rtol=0, atol=bound)


def test_singular_values_come_near_1_and_vectors_stay() -> None:
    torch.manual_seed(1)
    matrices = torch.randn(5, 6, 30, dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    values = values / torch.linalg.vector_norm(matrices, dim=(1, 2))[:, None]
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    expected = left @ torch.diag_embed(values) @ right
    torch.testing.assert_close(orthogonal(matrices, torch.float64), expected, rtol=0, atol=1e-9)
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_a_gradient_of_zeros_gives_zeros() -> None:
    assert not orthogonal(torch.zeros(2, 3, 4), torch.float32).any()


@pytest.mark.parametrize(
    "name", ["lstm.layers.0.input_weight", "lstm.layers.1.projection", "char_cnn.projection.weight"]
)
def test_blocks_are_views(name: str) -> None:
    parameter = dict(bilm().named_parameters())[name].detach()
    view = blocks(name, parameter)
    assert view.shape[-2] <= view.shape[-1]
    for one, other in zip(view.flatten(0, -3), pieces(name, parameter), strict=True):
        assert torch.equal(one, other if other.shape[0] <= other.shape[1] else other.T)
    view.zero_()
    assert not parameter.any()
