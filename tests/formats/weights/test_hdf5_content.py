"""Weight files with datasets that are missing, misshapen, not float32 or not finite."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from weight_files import CELL, W_0, contents, refused, rewrite_as

from spacy_elmo.formats import BiLMOptions, read_weights


def test_missing_file_folder_and_other_bytes(tmp_path: Path, options: BiLMOptions) -> None:
    refused(tmp_path / "none.hdf5", options, "no such file")
    refused(tmp_path, options, "a folder")
    path = tmp_path / "weights.hdf5"
    for content in (b"", b"PK\x03\x04" + b"\0" * 100, b"\x89HDF\r\n\x1a\n", b"{}"):
        path.write_bytes(content)
        refused(path, options, "not an HDF5 file")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_cut_short(weights: Path, options: BiLMOptions, share: float) -> None:
    content = weights.read_bytes()
    weights.write_bytes(content[: int(len(content) * share)])
    refused(weights, options, "cut short")


def test_missing_datasets_are_all_named(weights: Path, options: BiLMOptions) -> None:
    with h5py.File(weights, "a") as file:
        del file[W_0], file["CNN/b_cnn_1"], file["CNN_proj"]
        file["embedding"] = np.zeros(3, np.float32)
    refused(weights, options, W_0, "CNN/b_cnn_1", "CNN_proj/W_proj", "CNN_proj/b_proj", "embedding")


def test_empty_file(tmp_path: Path, options: BiLMOptions) -> None:
    path = tmp_path / "weights.hdf5"
    h5py.File(path, "w").close()
    refused(path, options, "char_embed", "and 13 more", "nothing")


@pytest.mark.parametrize(
    ("name", "shape", "key"),
    [
        ("char_embed", (262, 3), "the number of characters"),
        ("char_embed", (261, 4), "char_cnn.embedding.dim"),
        ("CNN/W_cnn_1", (1, 2, 3, 4), "char_cnn.filters[1][0]"),
        ("CNN/b_cnn_1", (5,), "char_cnn.filters[1][1]"),
        ("CNN_high_0/W_carry", (7, 7), "the sum of char_cnn.filters"),
        ("CNN_proj/W_proj", (6, 7), "lstm.projection_dim"),
        (W_0, (10, 33), "4 * lstm.dim"),
        (W_0, (9, 32), "2 * lstm.projection_dim"),
        (W_0, (10, 32, 1), "2 * lstm.projection_dim, 4 * lstm.dim"),
        (f"{CELL}/W_P_0", (9, 5), "lstm.dim"),
        (f"{CELL}/B", (), "4 * lstm.dim"),
        (f"{CELL}/B", (0,), "4 * lstm.dim"),
    ],
)
def test_misshapen(weights: Path, options: BiLMOptions, name: str, shape: tuple[int, ...], key: str) -> None:
    with h5py.File(weights, "a") as file:
        expected = file[name].shape
        del file[name]
        file[name] = np.zeros(shape, np.float32)
    refused(weights, options, name, str(shape), str(expected), key)


def test_empty_dataspace_and_absurd_size(weights: Path, options: BiLMOptions) -> None:
    with h5py.File(weights, "a") as file:
        del file[W_0], file["char_embed"]
        file[W_0] = h5py.Empty("f4")
        file.create_dataset("char_embed", (2**40, 2**20), "f4", chunks=(1024, 1024))
    refused(weights, options, W_0, "None", "(10, 32)", "char_embed", str(2**40), "(261, 3)")


@pytest.mark.parametrize(
    ("change", "name", "key"),
    [
        ({"n_layers": 1}, "RNN_0/RNN/MultiRNNCell/Cell1", "lstm.n_layers"),
        ({"n_highway": 0}, "CNN_high_0", "char_cnn.n_highway"),
    ],
)
def test_file_of_a_larger_model(weights: Path, options: BiLMOptions, change: dict, name: str, key: str) -> None:
    refused(weights, dataclasses.replace(options, **change), name, key)


def test_file_with_more_filters(weights: Path, options: BiLMOptions) -> None:
    with h5py.File(weights, "a") as file:
        file["CNN/W_cnn_2"] = np.zeros((1, 1, 3, 2), np.float32)
    refused(weights, options, "CNN/W_cnn_2", "char_cnn.filters")


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f2", ">f2"])
@pytest.mark.parametrize("names", ["all", "one"])
def test_other_floats_are_converted(weights: Path, options: BiLMOptions, dtype: str, names: str) -> None:
    """As AllenNLP does: torch.FloatTensor(array). One message for a file, whatever number of datasets it has."""
    expected = {}
    with h5py.File(weights, "a") as file:
        found = [name for name, values in contents(weights).items() if name == W_0 or names == "all"]
        for name in found:
            values = file[name][...].astype(dtype)
            expected[name] = torch.FloatTensor(values.astype(values.dtype.newbyteorder("="))).numpy()
            del file[name]
            file[name] = values
    with pytest.warns(UserWarning, match="converted to float32") as caught:
        arrays = read_weights(weights, options)
    (message,) = map(str, (warning.message for warning in caught))
    assert f"{weights}: the weights are stored as float{8 * int(dtype[-1])}" in message
    assert all(array.dtype == np.float32 for array in arrays.values())
    forward = np.concatenate([arrays["lstm.layers.0.input_weight"][0], arrays["lstm.layers.0.recurrent_weight"][0]])
    assert np.array_equal(forward, expected[W_0])
    if names == "all":
        assert np.array_equal(arrays["char_cnn.embedding.weight"][1:], expected["char_embed"])


def test_a_float64_that_float32_does_not_have(weights: Path, options: BiLMOptions) -> None:
    rewrite_as(weights, lambda file, values: file.create_dataset(W_0, data=np.full(values.shape, 1e300)))
    with pytest.warns(UserWarning, match="float64"):
        refused(weights, options, W_0, "NaN or infinite")


@pytest.mark.slow
def test_a_file_that_another_process_writes(weights: Path, options: BiLMOptions) -> None:
    code = "import h5py, sys; file = h5py.File(sys.argv[1], 'r+'); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(weights)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        message = refused(weights, options, "can't be locked", "HDF5_USE_FILE_LOCKING")
        assert "not an HDF5 file" not in message
        writer.communicate()
    read_weights(weights, options)


@pytest.mark.parametrize("dtype", ["i4", "S4", "c8", "bool"])
def test_other_types(weights: Path, options: BiLMOptions, dtype: str) -> None:
    rewrite_as(weights, lambda file, values: file.create_dataset(W_0, values.shape, dtype))
    refused(weights, options, W_0, str(np.dtype(dtype)), "float32")


def test_compound_reference_and_string_types(weights: Path, options: BiLMOptions) -> None:
    for dtype in (np.dtype([("x", "f4")]), h5py.ref_dtype, h5py.string_dtype(), h5py.vlen_dtype(np.float32)):
        rewrite_as(weights, lambda file, values, dtype=dtype: file.create_dataset(W_0, (10, 32), dtype))
        refused(weights, options, W_0, "Expected float32")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(weights: Path, options: BiLMOptions, value: float) -> None:
    with h5py.File(weights, "a") as file:
        file[W_0][3, 4] = value
    refused(weights, options, W_0, "1 values that are NaN or infinite")


def test_group_for_dataset_and_the_reverse(weights: Path, options: BiLMOptions) -> None:
    rewrite_as(weights, lambda file, values: file.create_group(W_0))
    refused(weights, options, f"{W_0} is a group. Expected a dataset")
    rewrite_as(weights, lambda file, values: file.create_dataset(CELL, data=values), CELL)
    refused(weights, options, f"{CELL} is a dataset. Expected a group")
    rewrite_as(weights, lambda file, values: file.__setitem__(CELL, np.dtype("f4")), CELL)
    refused(weights, options, f"{CELL} is a named type. Expected a group")
