"""Writing of weight files: bad arrays are refused, and after a failure the earlier file is unchanged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from weight_files import Arrays, assert_same

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats import BiLMOptions, expected_parameters, parameter_problems, read_weights, write_weights


def test_parameter_problems(options: BiLMOptions) -> None:
    shapes = {name: list(shape) for name, shape in expected_parameters(options).items()}
    assert parameter_problems(options, shapes) == []
    del shapes["lstm.layers.1.bias"]
    shapes["lstm.layers.0.bias"] = [2, 33]
    shapes["mix.gamma"] = [1]
    problems = "; ".join(parameter_problems(options, shapes))
    assert "lstm.layers.1.bias is missing, expected shape (2, 32)" in problems
    assert "lstm.layers.0.bias has shape (2, 33), expected (2, 32)" in problems
    assert "mix.gamma is unexpected" in problems


def bias(arrays: Arrays, value: object) -> Arrays:
    return arrays | {"lstm.layers.0.bias": value}


BAD_ARRAYS = {
    "misshapen": (lambda a: bias(a, np.zeros((2, 33), np.float32)), "(2, 33), expected (2, 32)"),
    "float64": (lambda a: bias(a, np.zeros((2, 32))), "lstm.layers.0.bias is float64"),
    "list": (lambda a: bias(a, [1.0]), "lstm.layers.0.bias is list"),
    "NaN": (lambda a: bias(a, np.full((2, 32), np.nan, np.float32)), "holds 64 values"),
    "infinity": (lambda a: bias(a, np.full((2, 32), np.inf, np.float32)), "lstm.layers.0.bias holds 64"),
    "unexpected": (lambda a: a | {"more": np.zeros(1, np.float32)}, "more is unexpected"),
    "missing": (lambda a: {k: v for k, v in a.items() if k != "lstm.layers.0.bias"}, "bias is missing"),
    "padding": (
        lambda a: a | {"char_cnn.embedding.weight": np.ones((262, 3), np.float32)},
        "row 0 of char_cnn.embedding.weight",
    ),
    "one value of the padding": (
        lambda a: a | {"char_cnn.embedding.weight": np.eye(262, 3, dtype=np.float32)},
        "row 0 of char_cnn.embedding.weight",
    ),
    "nothing": (lambda a: {}, "char_cnn.embedding.weight is missing"),
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_bad_arrays(weights: Path, options: BiLMOptions, arrays: Arrays, kind: str) -> None:
    make, part = BAD_ARRAYS[kind]
    before = weights.read_bytes()
    with pytest.raises(WeightsError) as error:
        write_weights(weights, options, make(arrays))
    assert part in str(error.value)
    assert weights.read_bytes() == before
    assert list(weights.parent.iterdir()) == [weights]


def test_arrays_in_other_layouts(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    write_weights(weights, options, {name: np.asfortranarray(array) for name, array in arrays.items()})
    assert_same(read_weights(weights, options), arrays)
    write_weights(weights, options, {name: array.astype(">f4") for name, array in arrays.items()})
    assert_same(read_weights(weights, options), arrays)


def test_failed_write_keeps_the_earlier_file(
    weights: Path, options: BiLMOptions, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights.read_bytes()

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    for owner, name in ((os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            with pytest.raises(WeightsError, match="No space left"):
                write_weights(weights, options, arrays)
        assert weights.read_bytes() == before
        assert list(weights.parent.iterdir()) == [weights]


def test_write_without_a_folder(tmp_path: Path, options: BiLMOptions, arrays: Arrays) -> None:
    with pytest.raises(WeightsError, match=r"folder .* does not exist"):
        write_weights(tmp_path / "no" / "weights.hdf5", options, arrays)
    with pytest.raises(WeightsError, match="it is a folder"):
        write_weights(tmp_path, options, arrays)
