"""The official weights.hdf5 of a biLM, read and written as numpy arrays by parameter name."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ...errors import Errors, WeightsError
from ..atomic import write_hdf5
from ..hdf5_checks import Floats, check_dataset, exists, find_dataset, open_hdf5, read_dataset, root_names, shape_of
from ..hdf5_storage import MAX_BYTES, allowed_bytes, check_bytes
from ..options import BiLMOptions
from ..untrusted.process import ask
from .checks import check_arrays, listed
from .table import Entry, table_for, weights_table

# Bytes, as torch aligns its tensors. With another alignment, matrix multiplications may differ in the last bits.
ALIGNMENT = 64
_ITEM_SIZE = 4  # bytes of a float32
_EXPECTED = "the weights.hdf5 of a biLM"
# The official files have float32. AllenNLP reads all three.
TYPES = ("float32", "float16", "float64")


def read_weights(
    path: str | os.PathLike[str],
    options: BiLMOptions,
    *,
    trusted: bool = False,
    untrusted: bool = False,
    max_bytes: int = MAX_BYTES,
) -> dict[str, Floats]:
    """Read a weight file.

    path: the weights.hdf5.
    options: the sizes that the file must have. Projections that the sizes do not require are read if the file has them.
    trusted: whether to skip the check of how the values are stored, which doubles the time of reading.
    untrusted: whether to read the file in a process of its own, with limits on memory and time (see SECURITY.md). It
        takes longer (see there), and while it reads, a second copy of the weights in memory.
    max_bytes: how much memory the weights may take; four times the size of the file is always allowed, and what the
        environment variable SPACY_ELMO_MAX_BYTES says if that is more.

    Returns contiguous float32 arrays in native byte order, by parameter name (see `expected_parameters`). Weights that
    are stored as float16 or float64 are converted, with one warning for the file.
    Raises WeightsError if the file is missing, damaged, incomplete or of other sizes, or if its weights take too much
    memory. With `untrusted` also if the HDF5 library crashes or comes to no end.
    """
    if untrusted:
        arguments = {"options": options.to_dict(), "max_bytes": max_bytes}
        n_bytes = _ITEM_SIZE * n_values(weights_table(options, True, True))
        # the file has no row for padding
        allowed = min(n_bytes, allowed_bytes(path, max_bytes)) + _ITEM_SIZE * options.char_dim
        answer = ask("weights", path, arguments, WeightsError, allowed, allocate=_aligned_floats)
        check_arrays(answer.arrays, options, str(path))
        for message in answer.warnings:
            warnings.warn(message, stacklevel=2)
        return answer.arrays
    with open_hdf5(path, _EXPECTED, WeightsError) as file:
        table = _table_of(file, options)
        datasets = [find_dataset(file, entry.dataset, WeightsError) for entry in table]
        missing = [entry.dataset for entry, dataset in zip(table, datasets, strict=True) if dataset is None]
        if missing:
            message = Errors.WEIGHTS_MISSING
            raise WeightsError(message.format(path=path, missing=listed(missing), found=root_names(file)))
        pairs = [(entry, dataset) for entry, dataset in zip(table, datasets, strict=True) if dataset is not None]
        problems = [problem for entry, dataset in pairs if (problem := _shape_problem(entry, dataset))]
        if problems:
            raise WeightsError(Errors.WEIGHTS_SHAPES.format(path=path, problems=listed(problems, "; ")))
        _refuse_larger_model(file, options)
        check_bytes(_ITEM_SIZE * n_values(table), path, "the biLM", WeightsError, max_bytes)
        for entry, dataset in pairs if not trusted else ():
            check_dataset(dataset, entry.dataset, WeightsError, TYPES, max_bytes)
        _tell_conversion(path, [dataset for _, dataset in pairs])
        arrays: dict[str, Floats] = {}
        for entry, dataset in pairs:
            values = read_dataset(dataset, entry.dataset, WeightsError)
            for part in entry.parts:
                if part.parameter not in arrays:
                    arrays[part.parameter] = _aligned_zeros(part.shape)
                piece = values[part.source]
                arrays[part.parameter][part.target] = piece.T if part.transposed else piece
    return arrays


def _tell_conversion(path: str | os.PathLike[str], datasets: list[h5py.Dataset]) -> None:
    kinds = {dataset.dtype.name for dataset in datasets} - {TYPES[0]}
    if kinds:
        warnings.warn(Errors.WEIGHTS_CONVERTED.format(path=path, got=" and ".join(sorted(kinds))), stacklevel=3)


def n_values(table: Iterable[Entry]) -> int:
    """Return the number of values in all datasets of a table."""
    return sum(math.prod(entry.shape) for entry in table)


def _aligned_floats(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return an array for values of a process that reads an untrusted file: zeros if they are float32."""
    return _aligned_zeros(shape) if dtype == np.float32 else np.empty(shape, dtype)


def _aligned_zeros(shape: tuple[int, ...]) -> Floats:
    """Return zeros whose memory begins at a multiple of ALIGNMENT."""
    size = math.prod(shape)
    values: Floats = np.zeros(size + ALIGNMENT // 4, np.float32)
    start = -values.ctypes.data % ALIGNMENT // 4
    return values[start : start + size].reshape(shape)


def write_weights(
    path: str | os.PathLike[str], options: BiLMOptions, arrays: Mapping[str, Floats], *, compress: bool = False
) -> None:
    """Write a weight file atomically.

    path: the weights.hdf5.
    options: the biLM's sizes.
    arrays: float32 arrays by parameter name (see `expected_parameters`).
    compress: whether to use HDF5's filters shuffle and gzip. AllenNLP and bilm-tf can read the file too, since h5py
        undoes the filters. Only rounded weights become much smaller (see `rounding.round_mantissas`).

    Raises WeightsError if arrays are missing, unexpected, misshapen, not float32 or not finite, if row 0 of the
    character embedding (the mask) is not zero, since the file has no place for it, or if the file can't be written.
    """
    check_arrays(arrays, options, f"{path}: not written")
    datasets = ((entry.dataset, _dataset_values(entry, arrays)) for entry in table_for(options, arrays))
    write_hdf5(path, datasets, WeightsError, compress=compress)


def _dataset_values(entry: Entry, arrays: Mapping[str, Floats]) -> Floats:
    values = np.empty(entry.shape, dtype="<f4")
    for part in entry.parts:
        piece = arrays[part.parameter][part.target]
        values[part.source] = piece.T if part.transposed else piece
    return values


def _table_of(file: h5py.File, options: BiLMOptions) -> list[Entry]:
    """Return the table of the datasets in a file, with the optional projections that the file has.

    Raises WeightsError if the file has some but not all datasets of an optional projection.
    """
    minimal = weights_table(options, options.has_char_projection, options.has_lstm_projection)
    names = {entry.dataset for entry in minimal}
    char_projection, lstm_projection = options.has_char_projection, options.has_lstm_projection
    optional = [entry.dataset for entry in weights_table(options, True, True) if entry.dataset not in names]
    for prefix in ("CNN_proj/", "RNN_"):
        group = [name for name in optional if name.startswith(prefix)]
        present = [name for name in group if find_dataset(file, name, WeightsError) is not None]
        missing = [name for name in group if name not in present]
        if present and missing:
            message = Errors.WEIGHTS_SOME
            raise WeightsError(message.format(path=file.filename, present=listed(present), missing=listed(missing)))
        char_projection |= bool(present) and prefix == "CNN_proj/"
        lstm_projection |= bool(present) and prefix == "RNN_"
    return weights_table(options, char_projection, lstm_projection)


def _refuse_larger_model(file: h5py.File, options: BiLMOptions) -> None:
    # Otherwise a file of a larger model would load without an error, and give wrong vectors.
    n_filters = len(options.filters)
    beyond = {
        f"CNN/W_cnn_{n_filters}": ("the length of char_cnn.filters", n_filters),
        f"CNN_high_{options.n_highway}": ("char_cnn.n_highway", options.n_highway),
        f"RNN_0/RNN/MultiRNNCell/Cell{options.n_layers}": ("lstm.n_layers", options.n_layers),
    }
    for name, (key, got) in beyond.items():
        if exists(file, name, WeightsError):
            path = Path(file.filename)
            raise WeightsError(Errors.WEIGHTS_BEYOND.format(path=path, name=name, key=key, got=got))


def _shape_problem(entry: Entry, dataset: h5py.Dataset) -> str | None:
    """Return what is wrong with a dataset's shape, and the options' keys that it contradicts; None if it is right."""
    got = shape_of(dataset, entry.dataset, WeightsError)
    if got == entry.shape:
        return None
    if got is not None and len(got) == len(entry.shape):
        keys = [key for size, (expected, key) in zip(got, entry.axes, strict=True) if size != expected]
    else:
        keys = [key for _, key in entry.axes]
    return Errors.WEIGHTS_SHAPE.format(
        name=entry.dataset, got=got, expected=entry.shape, keys=", ".join(dict.fromkeys(keys))
    )
