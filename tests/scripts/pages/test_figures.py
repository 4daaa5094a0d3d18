"""Means, error cuts and Student's t-test, against SciPy and figures worked out by hand."""

import math
from statistics import mean, variance

import pytest

from scripts.pages.figures import apart, error_cut, mean_percent, percent, shown_cut, spread, student


def test_of_one_run_no_deviation() -> None:
    assert spread([0.5]) == "50.00"
    assert spread([0.60, 0.62, 0.64]) == "62.00 ± 2.00 (60.00 to 64.00)"


def test_error_cuts() -> None:
    assert error_cut([0.62], [0.71]) == pytest.approx(1 - 29 / 38)
    assert error_cut([1.0], [1.0]) is None
    assert error_cut([], [0.5]) is None
    assert error_cut([0.5], []) is None
    assert shown_cut(None) == ""
    assert shown_cut(0.1234) == "12.3 %"
    assert mean_percent([]) == ""
    assert mean_percent([0.5, 0.6]) == "55.0"


@pytest.mark.parametrize("share", [-0.1, 1.1, True, math.nan])
def test_what_is_no_share(share: float) -> None:
    with pytest.raises(ValueError, match="not a number between 0 and 1"):
        mean_percent([share]) if share is not True else percent(share)


def test_student() -> None:
    """The published table, two-sided, 5 %."""
    assert [student(freedom) for freedom in (1, 4, 10, 11)] == [12.71, 2.78, 2.23, 2.23]


@pytest.mark.parametrize(("difference", "found"), [(0.022, False), (0.023, True)])
def test_apart(difference: float, found: bool) -> None:
    """Deviations of 1 and three runs each: means must differ by 2.78 * sqrt(2 / 3), which is 2.27."""
    one = [0.59, 0.60, 0.61]
    assert apart(one, [value + difference for value in one]) is found


def test_of_unequal_numbers() -> None:
    """The pooled variance weighs each network by its degrees of freedom: 3 runs and 2."""
    one, other = [0.50, 0.60, 0.70], [0.80, 0.81]
    pooled = (2 * variance(one) + variance(other)) / 3
    least = student(3) * math.sqrt(pooled * (1 / 3 + 1 / 2))
    assert apart(one, other) is (mean(other) - mean(one) > least)
    assert apart(one, [value + least - mean(other) + mean(one) + 1e-6 for value in other]) is True
    assert apart(one, [value + least - mean(other) + mean(one) - 1e-6 for value in other]) is False


def test_too_few_runs() -> None:
    assert apart([0.5], [0.6, 0.7]) is None
