"""Weight files of strangers, read in a process of its own, and limits on what weights may take."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from weight_files import W_0, Arrays, assert_same, make_heap_cycle, refused, rewrite, rewrite_as

import spacy_elmo
from spacy_elmo.errors import SettingsError, WeightsError
from spacy_elmo.formats import BiLMOptions, expected_parameters, read_weights, write_weights
from spacy_elmo.formats.weights import weights_table


def test_the_same_arrays(golden: Path, weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    got = read_weights(weights, options, untrusted=True)
    assert_same(got, arrays)
    assert all(values.ctypes.data % 64 == 0 for values in got.values())


def test_compressed_and_rounded(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    write_weights(weights, options, arrays, compress=True)
    assert_same(read_weights(weights, options, untrusted=True), arrays)


def test_warnings_are_those_of_reading_it_here(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    rewrite(weights, W_0, "<f8")
    told = []
    for untrusted in (False, True):
        with pytest.warns(UserWarning, match="float64") as caught:
            assert_same(read_weights(weights, options, untrusted=untrusted), arrays)
        told.append([(str(warning.message), warning.filename) for warning in caught])
    assert told[0] == told[1]
    assert len(told[0]) == 1


def test_errors_are_those_of_reading_it_here(weights: Path, options: BiLMOptions) -> None:
    rewrite_as(weights, lambda file, values: file.create_dataset(W_0, data=values[:5]))
    assert refused(weights, options, untrusted=True) == refused(weights, options, "(5, 32)")
    weights.unlink()
    assert refused(weights, options, untrusted=True) == refused(weights, options, "no such file")
    weights.mkdir()
    assert refused(weights, options, untrusted=True) == refused(weights, options, "a folder or a special file")


def test_a_name_that_is_not_utf8(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    other = weights.with_name("w\udcff \n.hdf5")
    weights.rename(other)
    assert_same(read_weights(other, options, untrusted=True), arrays)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 8])
def test_a_list_of_free_blocks_without_end(weights: Path, options: BiLMOptions, number: int) -> None:
    """HDF5 takes 3.7 GB within seconds if nothing limits it."""
    make_heap_cycle(weights, number)
    started = time.monotonic()
    refused(weights, options, "can't be read", "get it again", untrusted=True)
    assert time.monotonic() - started < 60


# Reads a file in a program that is small itself, and prints the largest memory of its processes in KiB.
PEAK = """
import json, resource, sys, types
package = types.ModuleType("spacy_elmo")
package.__path__ = [sys.argv[1]]
sys.modules["spacy_elmo"] = package
from spacy_elmo.formats import BiLMOptions, read_weights
try:
    read_weights(sys.argv[2], BiLMOptions.from_dict(json.loads(sys.argv[3])), untrusted=True)
except ValueError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not limit memory")
def test_a_list_of_free_blocks_without_end_takes_little_memory(weights: Path, options: BiLMOptions) -> None:
    make_heap_cycle(weights)
    arguments = [str(Path(spacy_elmo.__file__).parent), str(weights), json.dumps(options.to_dict())]
    got = subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True)
    message, peak = got.stdout.splitlines()
    assert "can't be read" in message
    assert int(peak) < 2**19  # KiB


def big_zeros(weights: Path, options: BiLMOptions) -> tuple[BiLMOptions, int]:
    """Write weights that take much more memory than space in the file. Returns their options, and the bytes."""
    big = dataclasses.replace(options, filters=((1, 600),))
    zeros = {name: np.zeros(shape, np.float32) for name, shape in expected_parameters(big).items()}
    write_weights(weights, big, zeros, compress=True)
    assert 4 * big.n_parameters > 20 * weights.stat().st_size
    return big, 4 * big.n_parameters


@pytest.mark.parametrize("untrusted", [False, True])
def test_more_memory_than_allowed(weights: Path, options: BiLMOptions, untrusted: bool) -> None:
    big, n_bytes = big_zeros(weights, options)
    size = weights.stat().st_size
    message = f"the biLM would take {n_bytes:,} bytes of memory, but the file has {size:,}. Expected at most"
    for max_bytes, allowed in ((n_bytes - 1, n_bytes - 1), (0, 4 * size)):
        with pytest.raises(ValueError, match=f"{message} {allowed:,}"):
            read_weights(weights, big, untrusted=untrusted, max_bytes=max_bytes)
    assert not read_weights(weights, big, untrusted=untrusted, max_bytes=n_bytes)["lstm.layers.0.bias"].any()


@pytest.mark.parametrize("untrusted", [False, True])
def test_the_environment_raises_the_limit(
    weights: Path, options: BiLMOptions, untrusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For callers that can't give max_bytes: components, Elmo, ElmoEmbedder, info."""
    big, n_bytes = big_zeros(weights, options)
    with pytest.raises(WeightsError, match=f"SPACY_ELMO_MAX_BYTES to {n_bytes} or more"):
        read_weights(weights, big, untrusted=untrusted, max_bytes=n_bytes - 1)
    monkeypatch.setenv("SPACY_ELMO_MAX_BYTES", str(n_bytes))
    assert not read_weights(weights, big, untrusted=untrusted, max_bytes=0)["lstm.layers.0.bias"].any()
    for wrong in ("2 GB", "-1", "1e9", "9" * 30):
        monkeypatch.setenv("SPACY_ELMO_MAX_BYTES", wrong)
        with pytest.raises(SettingsError, match="SPACY_ELMO_MAX_BYTES is"):
            read_weights(weights, big, untrusted=untrusted)


def test_a_file_that_is_not_compressed_is_always_allowed(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    for untrusted in (False, True):
        assert_same(read_weights(weights, options, untrusted=untrusted, max_bytes=0), arrays)


@pytest.mark.parametrize("untrusted", [False, True])
def test_megabytes_that_unpack_to_gigabytes(weights: Path, options: BiLMOptions, untrusted: bool) -> None:
    """Each dataset has the shape that the options state, and is to be unpacked from one chunk."""
    big = dataclasses.replace(options, dim=6000, projection_dim=6000, n_layers=1)
    with h5py.File(weights, "w") as file:
        for entry in weights_table(big, big.has_char_projection, big.has_lstm_projection):
            file.create_dataset(entry.dataset, entry.shape, "f4", chunks=entry.shape, compression="gzip")
    started = time.monotonic()
    refused(weights, big, "the biLM would take 2,3", "Expected at most 1,073,741,824", untrusted=untrusted)
    assert time.monotonic() - started < 30


def test_chunks_that_hold_much_more_than_the_dataset(weights: Path, options: BiLMOptions) -> None:
    """10 x 32 values in 10 chunks of one row, each of 1 MiB."""

    def wide(file: h5py.File, values: np.ndarray) -> None:
        file.create_dataset(W_0, data=values, chunks=(1, 2**18), maxshape=(None, None), compression="gzip")

    rewrite_as(weights, wide)
    refused(weights, options, "(1, 262144)", "chunks that hold no more than the dataset together")
