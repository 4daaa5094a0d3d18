"""Products with prepacked weights, and without where torch's private operators fail."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from bilm_cases import largest_difference
from torch import Tensor

from spacy_elmo.inference.linear import PrepackedLinear, padded_rows

WEIGHT = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 7)).astype(np.float32))
BIAS = torch.linspace(-1, 1, 20)


def expected(x: Tensor, bias: Tensor | None) -> np.ndarray:
    product = x.double().numpy() @ WEIGHT.double().numpy().T
    return product if bias is None else product + bias.double().numpy()


def check(linear: PrepackedLinear, bias: Tensor | None) -> None:
    for rows in (0, 1, 2, 5, 17, 33, 70, 600):
        x = torch.from_numpy(np.random.default_rng(rows).normal(size=(rows, 7)).astype(np.float32))
        assert largest_difference(linear(x), expected(x, bias)) <= 2e-6
    wide = torch.ones(4, 14)[:, ::2]
    assert largest_difference(linear(wide), expected(wide, bias)) <= 2e-6


def test_few_numbers_of_rows() -> None:
    """oneDNN keeps code for each."""
    taken = [padded_rows(n) for n in range(1, 513)]
    assert all(n <= rows < 1.25 * n + 1 for n, rows in enumerate(taken, 1))
    assert len(set(taken)) == 16 + 4 + 4 + 28
    assert all(padded_rows(rows) == rows for rows in taken)
    assert padded_rows(0) == 0


def test_matrix_multiplications_take_those_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    linear, taken = PrepackedLinear(WEIGHT, BIAS, 128), []
    if not linear.prepacked:
        pytest.skip("this build of torch has no prepacked products")
    multiply = PrepackedLinear._multiply

    def counted(self: PrepackedLinear, x: Tensor, packed: list[Tensor]) -> Tensor:
        taken.append(len(x))
        return multiply(self, x, packed)

    monkeypatch.setattr(PrepackedLinear, "_multiply", counted)
    assert [len(linear(torch.ones(n, 7))) for n in (1, 17, 70)] == [1, 17, 70]
    assert taken == [1, 20, 80]


@pytest.mark.parametrize("bias", [None, BIAS], ids=["plain", "bias"])
def test_prepacked(bias: Tensor | None) -> None:
    for rows in (1, 128, 512):
        for weight in (WEIGHT, WEIGHT.t().contiguous().t()):
            linear = PrepackedLinear(weight, bias, rows)
            if not linear.prepacked:
                pytest.skip("this build of torch has no prepacked products")
            check(linear, bias)


def raising(error: type[Exception]) -> Callable[..., Tensor]:
    def operator(*_: object) -> Tensor:
        raise error("not in this build")

    return operator


def wrong(x: Tensor, *_: object) -> Tensor:
    return torch.zeros(len(x), len(WEIGHT))


BROKEN = [
    *((torch.ops.mkldnn, "_reorder_linear_weight", raising(error)) for error in (RuntimeError, AttributeError)),
    *((torch.ops.mkldnn, "_linear_pointwise", raising(error)) for error in (TypeError, NotImplementedError)),
    (torch.ops.mkldnn, "_linear_pointwise", wrong),
    (torch.backends.mkldnn, "is_available", lambda: False),
]


@pytest.mark.parametrize(("owner", "name", "operator"), BROKEN, ids=range(len(BROKEN)))
def test_plain_where_an_operator_fails(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, operator: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, operator, raising=False)
    linear = PrepackedLinear(WEIGHT, BIAS, 128)
    assert not linear.prepacked
    check(linear, BIAS)


@pytest.mark.parametrize(("part", "times"), [(256, 1.3), (128, 1.0)])
@pytest.mark.parametrize("columns", [512, 2048, 700])
def test_rounding_errors_are_those_of_plain_linear_layers(columns: int, part: int, times: float) -> None:
    """AllenNLP runs torch's linear layers. At the width of the official files ours had twice their error."""
    rng = np.random.default_rng(0)
    weight, x = rng.normal(size=(64, columns)) / columns**0.5, np.abs(rng.normal(size=(256, columns)))
    weight32, x32 = torch.from_numpy(weight.astype(np.float32)), torch.from_numpy(x.astype(np.float32))
    exact = x32.double().numpy() @ weight32.double().numpy().T

    def error(result: Tensor) -> float:
        return float(np.sqrt(np.mean((result.double().numpy() - exact) ** 2)))

    plain = torch.nn.functional.linear(x32, weight32)
    linear = PrepackedLinear(weight32, None, 128, columns=part)
    assert error(linear(x32)) <= times * error(plain)
