"""The compiled LSTM cell against its torch twin."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.modules.lstm_cell import cell_backward, cell_forward

SIZES = [(1, 1), (1, 5), (3, 16), (2, 33), (5, 64)]


class Step(NamedTuple):
    """What one step, forward and back, fills in."""

    gates: Tensor
    cell: Tensor
    out: Tensor
    d_gates: Tensor
    d_cell: Tensor


def step(batch: int, dim: int, keep: bool, clip: float | None, scale: float) -> Step:
    rng = np.random.default_rng(batch * dim)

    def drawn(*shape: int, by: float = 1.0) -> Tensor:
        return torch.from_numpy(rng.normal(0, by, shape).astype(np.float32))

    gates, cell_in, d_out, d_cell = drawn(batch, 4 * dim, by=scale), *(drawn(batch, dim) for _ in range(3))
    kept = (torch.arange(batch) % 2).float()[:, None] if keep else None
    cell, out, d_gates = torch.full((batch, dim), 9.0), torch.full((batch, dim), 9.0), torch.full((batch, 4 * dim), 9.0)
    cell_forward(gates, cell_in, kept, cell, out, clip)
    d_cell = cell_backward(gates, cell_in, kept, cell, d_out, d_cell, d_gates, clip)
    return Step(gates, cell, out, d_gates, d_cell)


@pytest.fixture
def both(
    monkeypatch: pytest.MonkeyPatch,
    compiled_cell: kernels.Cell,
    batch: int,
    dim: int,
    keep: bool,
    clip: float | None,
    scale: float,
) -> tuple[Step, Step]:
    """The same step compiled and in torch."""
    steps = []
    for used in (compiled_cell, None):
        monkeypatch.setattr(kernels, "load", lambda used=used: used)
        steps.append(step(batch, dim, keep, clip, scale))
    return steps[0], steps[1]


@pytest.mark.parametrize(("batch", "dim"), SIZES)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("clip", [None, 0.3, 3.0])
@pytest.mark.parametrize("scale", [1.0])
def test_equals_torch(both: tuple[Step, Step], clip: float | None) -> None:
    for got, expected in zip(*both, strict=True):
        torch.testing.assert_close(got, expected, rtol=2e-6, atol=1e-6)
    if clip == 0.3 and both[1].cell.numel() >= 48:
        assert (both[1].cell.abs() == torch.tensor(0.3)).float().mean() > 0.2


@pytest.mark.parametrize(("batch", "dim"), [(3, 16)])
@pytest.mark.parametrize("keep", [False])
@pytest.mark.parametrize("clip", [None, 3.0])
@pytest.mark.parametrize("scale", [100.0])
def test_saturated_gates(both: tuple[Step, Step]) -> None:
    for got, expected in zip(*both, strict=True):
        assert got.isfinite().all()
        torch.testing.assert_close(got, expected, rtol=2e-6, atol=1e-6)


def test_the_compiled_cell_is_what_runs(monkeypatch: pytest.MonkeyPatch, compiled_cell: kernels.Cell) -> None:
    calls = []

    class Counting:
        def forward(self, *arguments: object) -> None:
            calls.append("forward")
            compiled_cell.forward(*arguments)

        def backward(self, *arguments: object) -> None:
            calls.append("backward")
            compiled_cell.backward(*arguments)

    monkeypatch.setattr(kernels, "load", Counting)
    step(2, 3, False, None, 1.0)
    assert calls == ["forward", "backward"]


def test_build_writes_the_library_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler named cc")
    library = kernels.build(tmp_path / "cell.so")
    assert list(tmp_path.iterdir()) == [library]
    (tmp_path / "damaged.so").write_bytes(b"no library")
    for path, kind in (("none.so", type(None)), ("damaged.so", type(None)), ("cell.so", kernels.Cell)):
        monkeypatch.setattr(kernels, "library_path", lambda path=path: tmp_path / path)
        kernels.load.cache_clear()
        assert isinstance(kernels.load(), kind)
    monkeypatch.undo()
    kernels.load.cache_clear()


def test_another_source_has_another_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels.library_path()
    (tmp_path / "cell.c").write_text("int other;", encoding="utf8")
    monkeypatch.setattr(kernels, "SOURCE", tmp_path / "cell.c")
    assert kernels.library_path().name != before.name


def test_a_compiler_that_is_missing_or_fails(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-such-compiler"):
        kernels.build(tmp_path / "cell.so", compiler="no-such-compiler")
    with pytest.raises(subprocess.CalledProcessError):
        kernels.build(tmp_path / "cell.so", compiler="false")
    assert not list(tmp_path.iterdir())
