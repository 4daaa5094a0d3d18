"""The LSTM layers: the scan and its gradients against autograd over the plain cell in torch, clips against numpy."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import torch
from bilm_cases import Case, case_of, character_ids, largest_difference, random_datasets
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import lstm, lstm_amx
from spacy_elmo.modules.lstm import lstm_scan
from spacy_elmo.modules.lstm_cell import Clips, LayerWeights, LstmState

STEPS, BATCH, INPUT, DIM, WIDTH = 5, 9, 64, 128, 64  # sizes that the loops on AMX accept
LOW = torch.bfloat16
# both bind, and bfloat16 has both numbers
CLIPS = [Clips(None, None), Clips(0.75, None), Clips(None, 0.5), Clips(0.75, 0.5)]
# of the relative error in the root mean square. The reference is float64, and rounds as bfloat16 does if the scan does.
BOUNDS = {torch.float64: 1e-12, torch.float32: 5e-6, LOW: 0.016}


@pytest.fixture(params=["torch", "compiled", "amx", "gpu in torch", "gpu"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test in torch, with the compiled cell, with the compiled layer on AMX, and with the scan for GPUs.

    That one runs in torch on the CPU, and with its kernels on a GPU.
    """
    if request.param == "gpu" and not torch.cuda.is_available():
        pytest.skip("there is no GPU that torch sees")
    if request.param == "gpu in torch":
        monkeypatch.setattr(lstm, "runs_at_once", lambda _: True)
    if request.param.startswith("gpu"):
        return str(request.param)
    library: ctypes.CDLL | None = None if request.param == "torch" else request.getfixturevalue("compiled")
    if request.param == "amx" and not kernels.has("amx", library):
        pytest.skip("this processor or system has no AMX, or the compiler did not know it")
    if request.param == "compiled":
        monkeypatch.setattr(lstm_amx, "fits", lambda *_: False)
    monkeypatch.setattr(kernels, "load", lambda: library)
    return str(request.param)


class Given(NamedTuple):
    """What a scan reads, in float64, and the gradients of its results."""

    inputs: list[Tensor]
    d_hidden: Tensor
    d_cells: Tensor


def drawn(directions: int, projection: bool) -> Given:
    """The inputs are x, w_x, w_h, bias, h0, c0 and, if there is one, w_p."""
    rng = np.random.default_rng(3)
    width = WIDTH if projection else DIM

    def normal(*shape: int, by: float = 1.0) -> Tensor:
        # numbers that float32 has
        return torch.from_numpy(rng.normal(0, by, (directions, *shape)).astype(np.float32)).double()

    inputs = [
        normal(STEPS, BATCH, INPUT),
        normal(INPUT, 4 * DIM, by=INPUT**-0.5),
        normal(width, 4 * DIM, by=width**-0.5),
        normal(4 * DIM, by=0.1),
        normal(BATCH, width, by=0.5),
        normal(BATCH, DIM),
    ]
    inputs += [normal(DIM, WIDTH, by=2 * DIM**-0.5)] if projection else []
    return Given(inputs, normal(STEPS, BATCH, width), normal(STEPS, BATCH, DIM))


def plain(inputs: list[Tensor], keep: Tensor | None, clips: Clips, low: bool, low_sums: bool) -> tuple[Tensor, Tensor]:
    """The layer in torch's own operations.

    low: round what the matrix multiplications read, and the outputs, to bfloat16.
    low_sums: round the sums of the gates, too.
    """

    def rounded(x: Tensor, low: bool = low) -> Tensor:
        return x + (x.to(LOW).double() - x).detach() if low else x

    def clipped(x: Tensor, bound: float | None) -> Tensor:
        if bound is None:
            return x
        # rounded numbers are often the bound itself. No gradient passes there
        return torch.where(x.abs() >= bound, x.detach().clamp(-bound, bound), x)

    x, w_x, w_h, bias, h, c = inputs[:6]
    hidden, cells = [], []
    h, matrices = rounded(h), [rounded(matrix) for matrix in (w_x, w_h, *inputs[6:])]
    for t in range(STEPS):
        if keep is not None:
            h, c = h * keep[t], c * keep[t]
        sums = rounded(rounded(x[:, t]) @ matrices[0] + h @ matrices[1], low_sums)
        i, j, f, o = (sums + bias[:, None]).chunk(4, 2)
        c = clipped(torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j), clips.cell)
        h = rounded(torch.sigmoid(o) * torch.tanh(c))
        if len(matrices) == 3:
            h = clipped(rounded(h @ matrices[2]), clips.proj)
        hidden.append(h)
        cells.append(c)
    return torch.stack(hidden, 1), torch.stack(cells, 1)


def scan(
    inputs: list[Tensor],
    keep: Tensor | None,
    clips: Clips,
    products: torch.dtype | None = None,
    workspace: dict[str, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """h and c of `lstm_scan`."""
    x, w_x, w_h, bias, h0, c0, *w_p = inputs
    weights = LayerWeights(w_x, w_h, bias, w_p[0] if w_p else None)
    return lstm_scan(x, weights, LstmState(h0, c0), keep, clips, matmul_dtype=products, workspace=workspace)


def forgetting(steps: int = STEPS, batch: int = BATCH) -> Tensor:
    return ((torch.arange(steps)[:, None] + torch.arange(batch)) % 4 > 0).double()[..., None]


def relative(got: Tensor, expected: Tensor) -> float:
    return float((got.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("precision", list(BOUNDS), ids=str)
@pytest.mark.parametrize("projection", [True, False], ids=["projection", "none"])
@pytest.mark.parametrize("clips", CLIPS, ids=str)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("forget", [False, True], ids=["kept", "forgotten"])
def test_gradients(
    loops: str, precision: torch.dtype, projection: bool, clips: Clips, directions: int, forget: bool
) -> None:
    given = drawn(directions, projection)
    if (loops == "amx" and (precision != LOW or not projection)) or (
        loops == "compiled" and precision == torch.float64
    ):
        return  # these sizes and types do not run there
    keep = forgetting() if forget else None
    exact = [tensor.clone().requires_grad_() for tensor in given.inputs]
    low = precision == LOW
    expected = plain(exact, keep, clips, low, low and loops != "amx")
    device, dtype = "cuda" if loops == "gpu" else "cpu", torch.float32 if low else precision
    ours = [tensor.to(device, dtype, copy=True).requires_grad_() for tensor in given.inputs]
    got = scan(ours, None if keep is None else keep.to(device, dtype), clips, precision)
    for made, wanted in zip(got, expected, strict=True):
        assert made.dtype == dtype
        assert relative(made.detach().cpu(), wanted.detach()) <= BOUNDS[precision]
    if low:
        for made, unrounded in zip(got, plain(given.inputs, keep, clips, False, False), strict=True):
            assert relative(made.detach().cpu(), unrounded) > 1e-4
    if clips.cell is not None:
        assert (expected[1].abs() == clips.cell).double().mean() > 0.1
    if clips.proj is not None and projection:
        assert (expected[0].abs() == clips.proj).double().mean() > 0.1
    # a rounded output may be clipped here and not there, and then its gradient stops here and not there
    bound = BOUNDS[precision] * (2 if low and clips.proj is not None else 1)
    d_hidden, d_cells = given.d_hidden.to(device, dtype), given.d_cells.to(device, dtype)
    ((got[0] * d_hidden).sum() + (got[1] * d_cells).sum()).backward()
    ((expected[0] * given.d_hidden).sum() + (expected[1] * given.d_cells).sum()).backward()
    for made, wanted in zip(ours, exact, strict=True):
        assert made.grad is not None
        assert wanted.grad is not None
        assert made.grad.dtype == dtype
        assert relative(made.grad.cpu(), wanted.grad) <= bound


@pytest.mark.slow
@pytest.mark.parametrize(
    ("projection", "forget", "clips", "outputs"),
    [
        (True, False, Clips(0.5, 0.3), [0, 1]),
        (True, True, Clips(0.5, 0.3), [0, 1]),
        (True, True, Clips(None, None), [0, 1]),
        (False, True, Clips(None, None), [0, 1]),
        (False, True, Clips(0.5, 0.3), [0, 1]),
        (True, True, Clips(0.5, 0.3), [0]),  # a gradient of h only
        (True, True, Clips(0.5, 0.3), [1]),  # a gradient of c only
    ],
)
def test_numeric_gradients(projection: bool, forget: bool, clips: Clips, outputs: list[int]) -> None:
    sizes = [(2, 4, 2, 2), (2, 2, 12), (2, 2, 12), (2, 12), (2, 2, 2), (2, 2, 3), (2, 3, 2)]
    if not projection:
        sizes = [(2, 4, 2, 2), (2, 2, 12), (2, 3, 12), (2, 12), (2, 2, 3), (2, 2, 3)]
    rng = np.random.default_rng(0)
    inputs = [torch.from_numpy(rng.normal(0, 0.8, size)).requires_grad_() for size in sizes]

    def function(*given: Tensor) -> list[Tensor]:
        results = scan(list(given), forgetting(4, 2) if forget else None, clips)
        return [results[k] for k in outputs]

    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("products", [torch.float32, LOW], ids=str)
@pytest.mark.parametrize("directions", [1, 2])
def test_a_workspace_gives_the_same_bits(products: torch.dtype, directions: int) -> None:
    """Calls with other values and other sizes in between leave nothing that a later call reads."""
    workspace: dict[str, Tensor] = {}
    for rows, scale in ((9, 1.0), (9, -2.0), (7, 1.0), (9, 0.5)):
        results = []
        for used in (workspace, None):
            x, w_x, w_h, bias, h0, c0, w_p = (part.float() for part in drawn(directions, True).inputs)
            x, h0, c0 = (part[..., :rows, :] * scale for part in (x, h0, c0))
            leaves = [part.requires_grad_() for part in (x, w_x, w_h, bias, h0, c0, w_p)]
            hidden, cells = scan(leaves, forgetting(STEPS, rows).float(), Clips(1.0, 0.5), products, used)
            cells = cells[:, -1:]  # with a workspace those of the last step alone
            values = [hidden.detach().clone(), cells.detach().clone()]
            results.append([*values, *torch.autograd.grad(hidden.sin().sum() + cells.cos().sum(), leaves)])
        for got, expected in zip(*results, strict=True):
            assert torch.equal(got, expected)
    assert workspace


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("products", [torch.float32, LOW], ids=str)
def test_two_backward_passes_and_no_second_derivative(products: torch.dtype) -> None:
    """The first backward pass must not change the tape. It is not recorded, and the error says so."""
    inputs = [part.float().requires_grad_() for part in drawn(2, True).inputs]
    hidden, cells = scan(inputs, forgetting().float(), Clips(1.0, 0.5), products)
    loss = hidden.sin().sum() + cells.cos().sum()
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    for got, expected in zip(torch.autograd.grad(loss, inputs, create_graph=True), first, strict=True):
        assert torch.equal(got, expected)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            got.square().sum().backward(retain_graph=True)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("bound", [0.7, 3.0, 3.1])  # 0.7 and 3.1 are rounded down
@pytest.mark.parametrize("amx", [False, True])
def test_no_gradient_passes_a_bound_that_bfloat16_rounds(
    monkeypatch: pytest.MonkeyPatch, bound: float, amx: bool
) -> None:
    if not amx:
        monkeypatch.setattr(lstm_amx, "fits", lambda *_: False)
    inputs = [part.float() for part in drawn(1, True).inputs]
    inputs[0].requires_grad_()
    w_p = inputs[6]
    for scale, passes in ((1e8, False), (1e-4, True)):
        inputs[6] = w_p * scale
        hidden, _ = scan(inputs, None, Clips(None, bound), LOW)
        assert ((hidden.abs() - bound).abs() < 0.02).all() is not passes
        (gradient,) = torch.autograd.grad(hidden.sum(), inputs[0])
        assert bool(gradient.any()) is passes


@pytest.mark.parametrize("skip", [False, True])
def test_the_skip_connection_adds_the_input_after_dropout(skip: bool) -> None:
    """In bilm-tf, DropoutWrapper(input_keep_prob) is around ResidualWrapper(cell), which the first layer does not have.

    With weights of 0 a cell gives 0, so that each layer but the first gives its dropped input. Dropout adds 3 here.
    """
    options = BiLMOptions(3, ((1, 4),), 0, "relu", 12, 5, 4, 3, 3.0, 3.0, skip)
    layers = lstm.BiLstm(options)
    for parameter in layers.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.ones(2, 6, 1, 4)
    outputs, hidden, _ = lstm.scan_layers(options, layers.weights(), x, layers.zero_state(1), drop=lambda x: x + 3)
    assert [output.unique().tolist() for output in outputs] == ([[0.0], [3.0], [6.0]] if skip else [[0.0]] * 3)
    assert not any(h.any() for h in hidden)


PLAIN = BiLMOptions(3, ((1, 4), (3, 6)), 1, "relu", 12, 9, 5, 2, None, None, True)
SENTENCE = ["Stick", "to", "the", "river", "bank", ",", "please", "."]
BOUND = 0.25


def case_with(**changes: float | None) -> Case:
    options = dataclasses.replace(PLAIN, **changes)  # type: ignore[arg-type]
    return case_of(options, random_datasets(options, seed=3, scale=0.6))


@pytest.mark.parametrize("clip", [None, "cell_clip", "proj_clip"])
def test_each_clip_bounds_its_own_values(clip: str | None) -> None:
    """The states after each step, against numpy's."""
    case = case_with(**({} if clip is None else {clip: BOUND}))
    expected = case.reference.run(SENTENCE)
    with torch.no_grad():
        begin, end = case.bilm.boundary[:1], case.bilm.boundary[1:]
        x = case.bilm.char_cnn(torch.cat([begin, character_ids([SENTENCE], PLAIN)[0], end]))
        _, hs, cs = case.bilm.lstm.scan(torch.stack([x, x.flip(0)])[:, :, None], case.bilm.lstm.zero_state(1))
    for got, wanted, name in ((hs, expected.hidden, "proj_clip"), (cs, expected.cells, "cell_clip")):
        values = torch.stack(got)[:, :, :, 0].numpy()
        assert largest_difference(values, wanted) <= 1e-12
        if clip == name:
            assert np.abs(values).max() == BOUND
            assert (np.abs(values) == BOUND).mean() > 0.1
        else:
            assert np.abs(values).max() > BOUND
            assert not (np.abs(values) == BOUND).any()
