"""Updates against their formulas, what weight decay changes, the order of parameters in a checkpoint, and clipping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.config import OptimizerSettings, ScheduleSettings
from spacy_elmo.pretraining.optimizers import (
    MuonAdamW,
    blocks,
    clip,
    dense_optimizer,
    is_matrix,
    orthogonal,
    rate_at,
    row_optimizer,
    set_rate,
)

DIM, WIDTH, FILTERS, UPDATES = 20, 16, 12, 3
OPTIONS = BiLMOptions(3, ((1, 5), (2, FILTERS - 5)), 1, "relu", WIDTH, DIM, WIDTH, 2, 3.0, 3.0, True)


def bilm(options: BiLMOptions = OPTIONS) -> BiLM:
    torch.manual_seed(0)
    made = BiLM(options)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_weight_decay_changes_all_but_the_biases(name: str) -> None:
    """Without gradients an update is w - rate * decay * w."""
    network = bilm()
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    settings = OptimizerSettings(name, learning_rate=0.5, weight_decay=0.2)
    optimizer = dense_optimizer(network.named_parameters(), settings)
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    biases = set()
    for key, parameter in network.named_parameters():
        factor = 1.0 if "bias" in key else 1 - 0.5 * 0.2
        torch.testing.assert_close(parameter.detach(), before[key] * factor, rtol=1e-6, atol=0)
        biases |= {key} if factor == 1 else set()
    assert {f"lstm.layers.{k}.bias" for k in (0, 1)} <= biases  # (2, 4 dim): two axes, as a matrix has
    assert len(biases) == 2 + 2 + 2 * 1 + 1  # LSTM layers, convolutions, a highway layer's two parts, projection


@pytest.mark.parametrize("name", ["adamw", "muon", "adagrad"])
def test_checkpoints_count_the_parameters_as_before(name: str) -> None:
    """AdamW and Muon: matrices and what else has two axes first; Adagrad: the network's order."""
    parameters = list(bilm().named_parameters())
    optimizer = dense_optimizer(iter(parameters), OptimizerSettings(name=name, weight_decay=0.1))
    got = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    expected: list[nn.Parameter] = [parameter for _, parameter in parameters]
    if name != "adagrad":
        expected = [p for p in expected if p.dim() > 1] + [p for p in expected if p.dim() <= 1]
    assert list(map(id, got)) == list(map(id, expected))


# AdamW's constants are unlike the defaults of torch; so small a gradient and so large an epsilon that each counts
SETTINGS = OptimizerSettings(
    "adamw", learning_rate=0.1, beta1=0.7, beta2=0.8, epsilon=0.01, weight_decay=0.3, initial_accumulator=1e-4
)
GRADIENTS = np.array([[0.02, -0.03, 3.0], [0.05, 0.01, -1.0]])


def adam(decay: float) -> np.ndarray:
    """Two updates of AdamW (Loshchilov and Hutter 2019, algorithm 2) from weights of 1, with rates 0.1 and 0.2."""
    w, first, second = np.ones(3), np.zeros(3), np.zeros(3)
    for t, (rate, g) in enumerate(zip((0.1, 0.2), GRADIENTS), 1):
        w *= 1 - rate * decay
        first, second = 0.7 * first + 0.3 * g, 0.8 * second + 0.2 * g**2
        w -= rate * first / (1 - 0.7**t) / (np.sqrt(second / (1 - 0.8**t)) + 0.01)
    return w


def adagrad() -> np.ndarray:
    w, squares = np.ones(3), np.full(3, 1e-4)
    for rate, g in zip((0.1, 0.2), GRADIENTS):
        squares += g**2
        w -= rate * g / np.sqrt(squares)
    return w


@pytest.mark.parametrize("name", ["adamw", "adagrad"])
def test_updates_of_all_weights(name: str) -> None:
    weight = nn.Parameter(torch.ones(1, 3))
    optimizer = dense_optimizer([("weight", weight)], replace(SETTINGS, name=name))
    for rate, gradient in zip((0.1, 0.2), GRADIENTS):
        set_rate(optimizer, rate)
        weight.grad = torch.from_numpy(gradient[None]).float()
        optimizer.step()
    expected = adam(0.3) if name == "adamw" else adagrad()
    np.testing.assert_allclose(weight.detach().numpy()[0], expected, rtol=1e-5)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("name", ["adamw", "adagrad"])
def test_updates_of_rows(name: str) -> None:
    table = torch.ones(4, 3)
    updates = row_optimizer(table, replace(SETTINGS, name=name))
    for step, (rate, gradient) in enumerate(zip((0.1, 0.2), GRADIENTS), 1):
        updates.update(torch.tensor([2]), torch.from_numpy(gradient[None]).float(), rate, step)
    np.testing.assert_allclose(table[2].numpy(), adam(0.0) if name == "adamw" else adagrad(), rtol=1e-5)
    assert (table[[0, 1, 3]] == 1).all()


def test_the_norm_of_all_gradients_is_clipped() -> None:
    gradients = [torch.tensor([[3.0], [0.0]]), torch.tensor([4.0])]
    assert clip(gradients, 5.0) == 5.0
    assert (gradients[0][0], gradients[1]) == (3.0, 4.0)
    assert clip(gradients, 0.5) == 5.0
    torch.testing.assert_close(torch.cat([gradients[0][0], gradients[1]]), torch.tensor([0.3, 0.4]), rtol=1e-6, atol=0)


# neither the LSTM nor the character CNN has a projection
BARE = replace(
    OPTIONS, filters=((1, 6), (2, WIDTH - 6)), n_highway=3, dim=WIDTH, n_layers=1, use_skip_connections=False
)
RATE, DECAY, MOMENTUM = 0.05, 0.1, 0.8


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


def by_shape(optimizer: MuonAdamW) -> list[list[tuple[str, nn.Parameter]]]:
    """The groups of a GPU."""
    groups: dict[torch.Size, list[tuple[str, nn.Parameter]]] = {}
    for name, parameter in optimizer.matrices:
        groups.setdefault(blocks(name, parameter).shape[-2:], []).append((name, parameter))
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
    assert not orthogonal(torch.zeros(2, 3, 4), torch.float32).any()


@pytest.mark.parametrize(
    ("kind", "final", "expected"),
    [
        # 100 updates, warmup 4, the fall over the last 40
        ("constant", 0.5, {0: 0.25, 1: 0.5, 3: 1.0, 59: 1.0, 60: 1.0, 80: 1.0, 99: 1.0}),
        ("linear", 0.0, {0: 0.25, 3: 1.0, 59: 1.0, 60: 1.0, 61: 39 / 40, 80: 0.5, 99: 1 / 40}),
        ("linear", 0.2, {60: 1.0, 80: 0.6, 99: 0.2 + 0.8 / 40}),
        # half a cosine: cos(60 degrees) and cos(120 degrees) are plus and minus a half
        ("cosine", 0.0, {60: 1.0, 80: 0.5, 90: (1 - 0.5**0.5) / 2}),
    ],
)
def test_rate(kind: str, final: float, expected: dict[int, float]) -> None:
    schedule = ScheduleSettings(kind=kind, warmup_steps=4, decay_share=0.4, final_share=final)
    assert {step: rate_at(schedule, step, 100) for step in expected} == pytest.approx(expected)
    flat = ScheduleSettings(kind="linear", warmup_steps=0, decay_share=0.0)
    assert [rate_at(flat, step, 3) for step in range(3)] == [1.0, 1.0, 1.0]
