"""How long a measurement is, and what its rate is."""

from collections.abc import Iterator

import pytest

from benchmarks.speed.matrix_rates import MatrixVectorRates, large_matrix_rate
from benchmarks.speed.rounds import rate_of
from benchmarks.speed.tokens_per_second import FULL, QUICK
from spacy_elmo.formats import BiLMOptions


@pytest.mark.parametrize(("batch", "n"), [(1, 64), (32, 512), (128, 512), (500, 500), (512, 512), (1000, 1000)])
def test_full_batches(batch: int, n: int) -> None:
    assert FULL.count(batch) == n


def test_quick_has_a_batch_each() -> None:
    assert [QUICK.count(batch) for batch in (1, 32, 128, 512)] == [4, 32, 128, 512]


def test_rate_of_whole_passes() -> None:
    def passes() -> Iterator[float]:
        yield from (0.5, 0.25, 0.25)

    times = passes()
    assert rate_of(lambda: next(times), 100, 0.9) == 300
    assert rate_of(lambda: 2.0, 100, 0.0) == 50


@pytest.mark.parametrize("dim", [6, 4])
def test_matrix_vector_rates_have_the_networks_shapes(dim: int) -> None:
    options = BiLMOptions(4, ((1, 8),), 0, "relu", 10, dim, 4, 3, None, None, True)
    multiplications = MatrixVectorRates(options, "float32")
    shapes = [(24, 4), (4, 6)] if dim == 6 else [(16, 4)]
    assert [[tuple(w.shape) for w in weights] for weights in multiplications.directions] == [shapes * 3] * 2
    assert multiplications.tokens_a_second(0.001) > 0


def test_large_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.speed.matrix_rates.LARGE", 64)
    assert large_matrix_rate("float32", 0.001) > 0
