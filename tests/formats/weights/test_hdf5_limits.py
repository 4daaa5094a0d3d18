"""What weights may take in memory as they are stored, and answers of a process that do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from weight_files import Arrays, contents

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats import BiLMOptions, expected_parameters, read_weights, write_weights
from spacy_elmo.formats import weights as hdf5
from spacy_elmo.formats.untrusted import Answer


def test_a_dataset_of_more_bytes_than_all_float32_values(weights: Path, options: BiLMOptions) -> None:
    """As float64, the largest dataset takes more memory than all weights as float32, for which there is room."""
    wide = replace(options, dim=50, projection_dim=50, n_highway=0, n_layers=1, filters=((1, 4000),))
    zeros = {name: np.zeros(shape, np.float32) for name, shape in expected_parameters(wide).items()}
    write_weights(weights, wide, zeros, compress=True)
    n_bytes = 4 * sum(values.size for values in contents(weights).values())
    with h5py.File(weights, "a") as file:
        del file["CNN_proj/W_proj"]
        file.create_dataset("CNN_proj/W_proj", data=np.zeros((4000, 50)), compression="gzip", chunks=(1000, 50))
    assert 4 * weights.stat().st_size < n_bytes < 8 * 4000 * 50
    with pytest.raises(WeightsError, match="CNN_proj/W_proj would take 1,600,000 bytes"):
        read_weights(weights, wide, max_bytes=n_bytes)
    with pytest.warns(UserWarning, match="float64"):
        assert not read_weights(weights, wide, max_bytes=1_600_000)["char_cnn.projection.weight"].any()


def test_answers_that_are_no_weights(
    weights: Path, options: BiLMOptions, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that a file has taken over may answer anything."""
    name = "lstm.layers.0.bias"
    wrong = {
        "missing": {key: values for key, values in arrays.items() if key != name},
        "shape": arrays | {name: np.zeros((2, 31), np.float32)},
        "float64": arrays | {name: np.zeros((2, 32))},
        "NaN": arrays | {name: np.full((2, 32), np.nan, np.float32)},
    }
    for part, answer in wrong.items():
        monkeypatch.setattr(hdf5, "ask", lambda *args, answer=answer, **more: Answer(None, answer, []))
        with pytest.raises(WeightsError, match=f"{name}.*{part}"):
            read_weights(weights, options, untrusted=True)
