"""Rounding of mantissas against cases computed by hand and float16, whose mantissa has 10 bits; rounding to steps."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.pretraining.pack import round_mantissas, round_to_steps


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == np.float32
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # numbers of 2 bits are 1, 1.25, 1.5, 1.75, 2, 2.5, 3 ...
        (1.0, 1.0),
        (1.75, 1.75),
        (1.1, 1.0),
        (1.2, 1.25),
        (1.125, 1.0),  # in the middle: 1 ends in 0
        (1.375, 1.5),  # in the middle: 1.5 = 1.10 ends in 0
        (1.625, 1.5),
        (1.875, 2.0),  # the carry increases the exponent
        (1.126, 1.25),
        (2.25, 2.0),
        (2.75, 3.0),
        (-1.375, -1.5),
        (-0.0, -0.0),
        (0.0, 0.0),
        (2.0**-100 * 1.2, 2.0**-100 * 1.25),
        (2.0**-149, 0.0),  # subnormal numbers are rounded to multiples of 2 ** -128
        (2.0**-128 * 3, 2.0**-128 * 3),
        (2.0**-129 * 3, 2.0**-127),  # in the middle between 1 and 2 times 2 ** -128: 2 is even
        (-(2.0**-129) * 5, -(2.0**-127)),
    ],
)
def test_by_hand(value: float, expected: float) -> None:
    same_bits(round_mantissas(f32(value), 2), f32(expected))


def test_as_float16_rounds() -> None:
    """Between 2 ** -14 and 65,504, where float16 has all of its 10 bits."""
    rng = np.random.default_rng(0)
    values = (rng.standard_normal((40, 500)) * np.exp2(rng.integers(-10, 13, (40, 1)))).astype(np.float32)
    ties = (np.arange(1, 4000, dtype=np.float32) + 0.5) / 2048  # many are in the middle between two numbers of 10 bits
    for array in (values[np.abs(values) > 2**-14], 1 + ties):
        same_bits(round_mantissas(array, 10), array.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("bits", [1, 7, 10, 16, 22])
def test_rounding_twice_changes_nothing_and_errors_are_at_most_half_a_step(bits: int) -> None:
    values = np.random.default_rng(bits).standard_normal(10_000).astype(np.float32)
    rounded = round_mantissas(values, bits)
    same_bits(round_mantissas(rounded, bits), rounded)
    assert (np.abs(rounded.astype(np.float64) - values) <= np.abs(values) * 2.0 ** -(bits + 1)).all()
    assert not (rounded.view(np.uint32) & np.uint32(2 ** (23 - bits) - 1)).any()


def test_all_bits_change_nothing() -> None:
    values = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    rounded = round_mantissas(values, 23)
    same_bits(rounded, values)
    assert not np.shares_memory(rounded, values)


def test_finite_numbers_stay_finite() -> None:
    largest = np.finfo(np.float32).max
    expected = np.ldexp(1 + 1023 / 1024, 127)  # the largest with 10 bits
    same_bits(round_mantissas(f32(largest, -largest), 10), f32(expected, -expected))


def test_nan_and_infinity_do_not_change() -> None:
    # If these NaN were rounded like numbers, the first would become infinity and the second a number.
    nans = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32).view(np.float32)
    for values in (nans, f32(np.inf, -np.inf)):
        same_bits(round_mantissas(values, 10), values)


def test_shapes_and_layouts() -> None:
    values = np.random.default_rng(0).standard_normal((6, 5, 4)).astype(np.float32)
    expected = values.astype(np.float16).astype(np.float32)
    same_bits(round_mantissas(values[::2, :, 1:], 10), expected[::2, :, 1:].copy())
    same_bits(round_mantissas(values.transpose(), 10), expected.transpose().copy())
    same_bits(round_mantissas(values.astype(">f4"), 10), expected)
    same_bits(round_mantissas(np.array(1.0001, np.float32), 10), np.array(1.0, np.float32))
    assert round_mantissas(np.empty((0, 3), np.float32), 10).shape == (0, 3)


@pytest.mark.parametrize("bits", [0, -1, 24])
def test_bad_numbers_of_bits(bits: int) -> None:
    with pytest.raises(
        WeightsError, match=rf"number of mantissa bits is {bits}\. Expected a whole number from 1 to 23"
    ):
        round_mantissas(f32(1), bits)


# Whole numbers of a step


@pytest.mark.parametrize(
    ("values", "bits", "expected"),
    [
        ((3.0, -1.4, 0.3), 3, (3.0, -1.0, 0.0)),  # numbers from -3 to 3, step 1
        ((3.1, -1.4, 0.3), 3, (3.0, -1.0, 0.0)),  # 3.1 is out of reach of step 1, which still leaves less than step 2
        ((1.5, 2.5, 3.5, 7.0), 4, (2.0, 2.0, 4.0, 7.0)),  # in the middle: the even number
        ((0.0, 0.0), 8, (0.0, 0.0)),
        ((2.0**-149, 0.0), 2, (2.0**-149, 0.0)),  # the smallest float32
        ((1.0, -0.25), 2, (1.0, 0.0)),  # -1, 0 and 1
        # steps 8, 4 and 2 lose all ones: 100, 116 and 136; step 1 cuts the 8: 49
        ((8.0, *[1.0] * 100), 2, (1.0,) * 101),
    ],
)
def test_steps_by_hand(values: tuple[float, ...], bits: int, expected: tuple[float, ...]) -> None:
    np.testing.assert_array_equal(round_to_steps(f32(*values), bits, (0,)), f32(*expected))


def test_each_output_has_its_own_power_of_two() -> None:
    """Against the nearest multiple of the step, in float64, for steps that are searched by trying all of them."""
    rng = np.random.default_rng(0)
    values = (rng.standard_normal((6, 40)) * np.exp2(rng.integers(-30, 30, (6, 1)))).astype(np.float32)
    for bits in (2, 5, 8, 16):
        got, most = round_to_steps(values, bits, (1,)), 2 ** (bits - 1) - 1
        for row, rounded in zip(values.astype(np.float64), got.astype(np.float64)):
            errors = {}
            for exponent in range(-60, 60):
                numbers = np.clip(np.round(row / 2.0**exponent), -most, most)
                errors[exponent] = float(((numbers * 2.0**exponent - row) ** 2).sum())
            assert ((rounded - row) ** 2).sum() == pytest.approx(min(errors.values()), rel=1e-12)


def test_steps_of_two_axes_and_scaling() -> None:
    values = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)
    got = round_to_steps(values, 6, (1, 2))
    np.testing.assert_array_equal(got.reshape(3, 20), round_to_steps(values.reshape(3, 20), 6, (1,)))
    np.testing.assert_array_equal(round_to_steps(values * 8, 6, (1, 2)), got * 8)
    np.testing.assert_array_equal(round_to_steps(got, 6, (1, 2)), got)


@pytest.mark.parametrize("bits", [1, 17, 0])
def test_step_bits_out_of_range(bits: int) -> None:
    with pytest.raises(WeightsError, match=rf"number of bits is {bits}\. Expected a whole number from 2 to 16"):
        round_to_steps(f32(1.0), bits, (0,))
