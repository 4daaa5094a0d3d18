"""Gradients of the scan, the character encoder and the whole network against numeric ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, character_ids, largest_difference, random_datasets, random_state
from torch import Tensor, nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM, LstmState
from spacy_elmo.modules.char_cnn import N_IDS
from spacy_elmo.modules.lstm import lstm_scan
from spacy_elmo.modules.lstm_cell import Clips, LayerWeights

STEPS, BATCH, INPUT, DIM, WIDTH = 4, 2, 2, 3, 2
OPTIONS = BiLMOptions(
    char_dim=2,
    filters=((1, 2), (2, 2)),
    n_highway=1,
    activation="relu",
    max_characters=6,
    dim=3,
    projection_dim=2,
    n_layers=2,
    cell_clip=0.4,
    proj_clip=0.2,
    use_skip_connections=True,
)
SENTENCES = [["ab", "naïve", "c"], ["b"]]
KEEP = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 1]], dtype=torch.float64)[:, :, None]


def scan_inputs(projection: bool, dtype: torch.dtype = torch.float64) -> list[Tensor | None]:
    """x, w_x, w_h, bias, w_p, h0, c0, random."""
    rng = np.random.default_rng(0)
    width = WIDTH if projection else DIM
    shapes: list[tuple[int, ...] | None] = [
        (2, STEPS, BATCH, INPUT),
        (2, INPUT, 4 * DIM),
        (2, width, 4 * DIM),
        (2, 4 * DIM),
        (2, DIM, WIDTH) if projection else None,
        (2, BATCH, width),
        (2, BATCH, DIM),
    ]
    made = [None if shape is None else torch.from_numpy(rng.normal(0, 0.8, shape)).to(dtype) for shape in shapes]
    return [None if x is None else x.requires_grad_() for x in made]


def scan(
    inputs: Sequence[Tensor | None],
    keep: Tensor | None,
    clips: Clips,
    products: torch.dtype | None = None,
    workspace: dict[str, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """h and c of `lstm_scan`, for inputs in the order of `scan_inputs`."""
    x, w_x, w_h, bias, w_p, h0, c0 = cast("list[Tensor]", inputs)
    weights, state = LayerWeights(w_x, w_h, bias, w_p), LstmState(h0, c0)
    return lstm_scan(x, weights, state, keep, clips, matmul_dtype=products, workspace=workspace)


def scan_by_autograd(*given: Tensor | None, keep: Tensor | None, clips: Clips) -> tuple[Tensor, Tensor]:
    """Return h and c of the same scan, computed with torch's own operations."""
    x, w_x, w_h, bias, w_p, h, c = cast("list[Tensor]", given)
    hs, cs = [], []
    for t in range(x.shape[1]):
        if keep is not None:
            h, c = h * keep[t], c * keep[t]
        i, j, f, o = (x[:, t] @ w_x + h @ w_h + bias[:, None]).chunk(4, 2)
        c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j)
        if clips.cell is not None:
            c = c.clamp(-clips.cell, clips.cell)
        h = torch.sigmoid(o) * torch.tanh(c)
        if w_p is not None:
            h = h @ w_p
            if clips.proj is not None:
                h = h.clamp(-clips.proj, clips.proj)
        hs.append(h)
        cs.append(c)
    return torch.stack(hs, 1), torch.stack(cs, 1)


def assert_same_gradients(got: list[Tensor | None], expected: list[Tensor | None], tolerance: float) -> None:
    for a, b in zip(got, expected, strict=True):
        if a is not None and b is not None:
            assert largest_difference(a.grad, b.grad) <= tolerance  # type: ignore[arg-type]


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("keep", [None, KEEP], ids=["kept", "forgotten"])
@pytest.mark.parametrize("clips", [Clips(None, None), Clips(0.5, 0.3), Clips(0.5, None), Clips(None, 0.3)], ids=str)
def test_scan(projection: bool, keep: Tensor | None, clips: Clips) -> None:
    """Values and gradients are compared with torch's autograd."""
    inputs, same = scan_inputs(projection), scan_inputs(projection)
    hidden, cells = scan(inputs, keep, clips)
    expected = scan_by_autograd(*same, keep=keep, clips=clips)
    for got, wanted in zip((hidden, cells), expected, strict=True):
        assert largest_difference(got.detach(), wanted.detach()) <= 1e-12
    if clips.cell is not None:
        assert (cells.abs() == clips.cell).double().mean() > 0.1
    if clips.proj is not None and projection:
        assert (hidden.abs() == clips.proj).double().mean() > 0.1
    (hidden.sin().sum() + cells.cos().sum()).backward()
    (expected[0].sin().sum() + expected[1].cos().sum()).backward()
    assert_same_gradients(inputs, same, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("projection", "keep", "clips"),
    [
        (True, None, Clips(0.5, 0.3)),
        (True, KEEP, Clips(0.5, 0.3)),
        (True, KEEP, Clips(None, None)),
        (False, KEEP, Clips(0.5, 0.3)),
        (False, None, Clips(None, None)),
    ],
)
def test_scan_by_numeric_gradients(projection: bool, keep: Tensor | None, clips: Clips) -> None:
    def function(*given: Tensor | None) -> tuple[Tensor, Tensor]:
        return scan(given, keep, clips)

    assert torch.autograd.gradcheck(function, scan_inputs(projection))


@pytest.mark.slow
@pytest.mark.parametrize("output", [0, 1], ids=["h", "c"])
def test_scan_with_a_gradient_of_one_output_only(output: int) -> None:
    def function(*given: Tensor | None) -> Tensor:
        return scan(given, KEEP, Clips(0.5, 0.3))[output]

    assert torch.autograd.gradcheck(function, scan_inputs(True))


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("keep", [None, KEEP.float()], ids=["kept", "forgotten"])
@pytest.mark.parametrize("projection", [True, False])
def test_scan_in_float32(projection: bool, keep: Tensor | None) -> None:
    """The path of training, with and without compiled loops, against autograd in float64."""
    clips = Clips(0.5, 0.3)
    inputs, exact = scan_inputs(projection, torch.float32), scan_inputs(projection)
    got = scan(inputs, keep, clips)
    wanted = scan_by_autograd(*exact, keep=None if keep is None else keep.double(), clips=clips)
    (got[0].sin().sum() + got[1].cos().sum()).backward()
    (wanted[0].sin().sum() + wanted[1].cos().sum()).backward()
    assert_same_gradients(inputs, exact, 1e-5)


def large_inputs() -> list[Tensor]:
    """x, w_x, w_h, bias, w_p, h0, c0, float32, of sizes at which the error of single roundings averages out."""
    rng = np.random.default_rng(1)
    steps, batch, dim, width = 10, 16, 64, 32
    shapes = [(2, steps, batch, width), (2, width, 4 * dim), (2, width, 4 * dim), (2, 4 * dim), (2, dim, width)]
    scales = [1.0, width**-0.5, width**-0.5, 0.1, dim**-0.5, 1.0, 1.0]
    shapes += [(2, batch, width), (2, batch, dim)]
    made = [torch.from_numpy(rng.normal(0, by, shape)).float() for by, shape in zip(scales, shapes, strict=True)]
    return [x.requires_grad_() for x in made]


def alternating(steps: int, batch: int) -> Tensor:
    return ((torch.arange(steps)[:, None] + torch.arange(batch)) % 5 > 0).float()[:, :, None]


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("forget", [False, True])
def test_scan_with_bfloat16_products(forget: bool) -> None:
    """Against autograd in float32. Bounds: relative errors in the root mean square, of values and of gradients."""
    inputs, same = large_inputs(), large_inputs()
    keep = alternating(10, 16) if forget else None
    clips = Clips(3.0, 3.0)
    hidden, cells = scan(inputs, keep, clips, products=torch.bfloat16)
    expected = scan_by_autograd(*same, keep=keep, clips=clips)
    assert hidden.dtype == cells.dtype == torch.float32
    for got, wanted in zip((hidden, cells), expected, strict=True):
        assert 1e-4 < relative(got.detach(), wanted.detach()) <= 0.01
    (hidden.sin().sum() + cells.cos().sum()).backward()
    (expected[0].sin().sum() + expected[1].cos().sum()).backward()
    for got, wanted in zip(inputs, same, strict=True):
        assert got.grad is not None
        assert wanted.grad is not None
        assert got.grad.dtype == torch.float32
        assert relative(got.grad, wanted.grad) <= 0.016


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("forget", [False, True])
def test_scan_with_bfloat16_products_without_a_projection(forget: bool) -> None:
    """The gradient of the cell's output is that of the state, which is float32 if rows are forgotten."""
    rng = np.random.default_rng(2)
    x, w_x, _, bias, _, _, c0 = (given.detach() for given in large_inputs())
    w_h, h0 = (
        torch.from_numpy(rng.normal(0, by, shape)).float() for by, shape in ((0.12, (2, 64, 256)), (1, c0.shape))
    )
    given = (x, w_x, w_h, bias, None, h0, c0)
    inputs, same = ([None if part is None else part.clone().requires_grad_() for part in given] for _ in range(2))
    keep, clips = alternating(10, 16) if forget else None, Clips(3.0, None)
    hidden, cells = scan(inputs, keep, clips, products=torch.bfloat16)
    expected = scan_by_autograd(*same, keep=keep, clips=clips)
    (hidden.sin().sum() + cells.cos().sum()).backward()
    (expected[0].sin().sum() + expected[1].cos().sum()).backward()
    for got, wanted in zip(inputs, same, strict=True):
        if got is not None and wanted is not None:
            assert got.grad is not None
            assert wanted.grad is not None
            assert relative(got.grad, wanted.grad) <= 0.016


def relative(got: Tensor, expected: Tensor) -> float:
    return float((got - expected).norm() / expected.norm())


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("products", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("directions", [1, 2])
def test_scan_in_a_workspace_gives_the_same_bits(products: torch.dtype, directions: int) -> None:
    """Calls with other values and other sizes in between leave nothing that a later call reads."""
    workspace: dict[str, Tensor] = {}
    for rows, scale in ((16, 1.0), (16, -2.0), (7, 1.0), (16, 0.5)):
        results = []
        for used in (workspace, None):
            inputs = [given.detach()[:directions] for given in large_inputs()]
            x, h0, c0 = (inputs[k][..., :rows, :] * scale for k in (0, 5, 6))
            leaves = [given.requires_grad_() for given in (x, *inputs[1:5], h0, c0)]
            keep = alternating(10, 16)[:, :rows].contiguous()
            hidden, cells = scan(leaves, keep, Clips(1.0, 0.5), products, used)
            values = [hidden.detach().clone(), cells.detach().clone()]
            results.append([*values, *torch.autograd.grad(hidden.sin().sum() + cells.cos().sum(), leaves)])
        for got, expected in zip(*results, strict=True):
            assert torch.equal(got, expected)
    assert workspace


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("products", [torch.float32, torch.bfloat16], ids=str)
def test_scan_runs_backward_twice_over_one_graph(products: torch.dtype) -> None:
    """The first backward pass must not change the tape."""
    inputs = large_inputs()
    hidden, cells = scan(inputs, alternating(10, 16), Clips(1.0, 0.5), products)
    loss = hidden.sin().sum() + cells.cos().sum()
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    for got, expected in zip(torch.autograd.grad(loss, inputs), first, strict=True):
        assert torch.equal(got, expected)


def test_gradients_of_gradients_are_refused() -> None:
    """The backward pass is not recorded, and the error says so."""
    inputs = scan_inputs(True)
    hidden, _ = scan(inputs, None, Clips(None, None))
    (gradient,) = torch.autograd.grad(hidden.sin().sum(), inputs[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


def test_keep_0_starts_a_row_from_the_zero_state() -> None:
    with torch.no_grad():
        inputs = scan_inputs(True)
        hidden, cells = scan(inputs, KEEP, Clips(None, None))
        x, *weights = inputs[:5]
        assert x is not None
        zero = [x.new_zeros(2, BATCH, WIDTH), x.new_zeros(2, BATCH, DIM)]
        anew = scan([x[:, 1:3], *weights, *zero], None, Clips(None, None))
    # row 0 forgets before steps 1 and 3
    assert largest_difference(hidden[:, 1:3, 0], anew[0][:, :, 0]) <= 1e-12
    assert largest_difference(cells[:, 1:3, 0], anew[1][:, :, 0]) <= 1e-12


def check(module: nn.Module, ids: Tensor, state: LstmState | None = None) -> None:
    """Numeric against analytic gradients of all parameters and of the state, for a random weighting of the outputs."""

    def loss() -> Tensor:
        output = module(ids) if state is None else module(ids, state)
        parts = (output,) if isinstance(output, Tensor) else (output.layers, *output.state)
        return torch.stack([(part * noise(part.shape, i)).sum() for i, part in enumerate(parts)]).sum()

    occurring = torch.cat([ids.flatten(), torch.arange(257, N_IDS)]).unique().tolist()  # with the boundaries'
    varied = [*module.parameters(), *(state or ())]
    for tensor in varied:
        tensor.requires_grad_().grad = None
    loss().backward()
    for tensor in varied:
        assert tensor.grad is not None
        assert tensor.grad.any()
        assert largest_difference(tensor.grad, numeric_gradient(loss, tensor, occurring)) <= 1e-7


def noise(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@torch.no_grad()
def numeric_gradient(loss: Callable[[], Tensor], tensor: Tensor, occurring: list[int], step: float = 1e-6) -> Tensor:
    """Of the embedding only the rows that occur are varied: the others can't have a gradient."""
    values, gradient = tensor.view(-1), torch.zeros_like(tensor)
    indices = torch.arange(len(values)).view(tensor.shape)
    for k in (indices[occurring] if len(tensor) == N_IDS else indices).flatten().tolist():
        before = float(values[k])
        sides = []
        for side in (step, -step):
            values[k] = before + side
            sides.append(float(loss()))
        values[k] = before
        gradient.view(-1)[k] = (sides[0] - sides[1]) / (2 * step)
    return gradient


def network(**changes: object) -> BiLM:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return bilm_of(options, random_datasets(options, seed=1, scale=0.8)).double()


def with_boundaries(bilm: BiLM, ids: Tensor) -> Tensor:
    return torch.cat([bilm.boundary, ids.flatten(0, 1)])


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("n_highway", [0, 2])
def test_character_encoder(activation: str, n_highway: int) -> None:
    bilm = network(activation=activation, n_highway=n_highway)
    ids = with_boundaries(bilm, character_ids([["ab", "naïve", "c", "", "ab"]], bilm.options))
    check(bilm.char_cnn, ids)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "tanh", "cell_clip": None, "proj_clip": None, "n_highway": 0, "use_skip_connections": False},
        {"dim": 2, "filters": ((2, 2),)},
    ],
    ids=str,
)
def test_whole_network(changes: dict[str, object]) -> None:
    bilm = network(**changes)
    ids = character_ids(SENTENCES, bilm.options)
    state = random_state(bilm.options, len(SENTENCES))
    names = dict(bilm.named_parameters())
    assert ("lstm.layers.0.projection" in names) is ("dim" not in changes)
    assert ("char_cnn.projection.weight" in names) is ("filters" not in changes)
    check(bilm, ids, state)
