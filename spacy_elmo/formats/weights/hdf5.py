"""The official weights.hdf5 of a biLM, read into and written from numpy arrays by parameter name."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np

from ...errors import Errors, WeightsError
from ..atomic import write_hdf5
from ..hdf5_checks import Floats, check_dataset, exists, find_dataset, open_hdf5, read_dataset, root_names, shape_of
from ..options import BiLMOptions
from .checks import check_arrays, listed
from .table import Entry, table_for, weights_table

ALIGNMENT = 64  # bytes, of torch's own tensors: products of others may differ in the last bits
_EXPECTED = "the weights.hdf5 of a biLM"


def read_weights(path: str | os.PathLike[str], options: BiLMOptions, *, sound: bool = False) -> dict[str, Floats]:
    """Read a weight file whose sizes are those of the options.

    sound: how its values are stored is known to be right, and not looked at, which takes as long as reading them.

    Returns native, contiguous float32 arrays by parameter name (see `expected_parameters`).
    A projection that the sizes do not ask for is read where the file has it.

    Raises WeightsError for a file that is missing, damaged, incomplete, or of other sizes.
    """
    with open_hdf5(path, _EXPECTED, WeightsError) as file:
        table = _table_of(file, options)
        datasets = [find_dataset(file, entry.dataset, WeightsError) for entry in table]
        missing = [entry.dataset for entry, dataset in zip(table, datasets, strict=True) if dataset is None]
        if missing:
            message = Errors.WEIGHTS_MISSING
            raise WeightsError(message.format(path=path, missing=listed(missing), found=root_names(file)))
        pairs = [(entry, dataset) for entry, dataset in zip(table, datasets, strict=True) if dataset is not None]
        problems = [problem for entry, dataset in pairs if (problem := _misshapen(entry, dataset))]
        if problems:
            raise WeightsError(Errors.WEIGHTS_SHAPES.format(path=path, problems=listed(problems, "; ")))
        _refuse_more(file, options)
        for entry, dataset in pairs if not sound else ():
            check_dataset(dataset, entry.dataset, WeightsError)
        arrays: dict[str, Floats] = {}
        for entry, dataset in pairs:
            values = read_dataset(dataset, entry.dataset, WeightsError)
            for part in entry.parts:
                if part.parameter not in arrays:
                    arrays[part.parameter] = _zeros(part.shape)
                piece = values[part.source]
                arrays[part.parameter][part.target] = piece.T if part.transposed else piece
    return arrays


def _zeros(shape: tuple[int, ...]) -> Floats:
    """Aligned."""
    size = math.prod(shape)
    values: Floats = np.zeros(size + ALIGNMENT // 4, np.float32)
    begin = -values.ctypes.data % ALIGNMENT // 4
    return values[begin : begin + size].reshape(shape)


def write_weights(
    path: str | os.PathLike[str], options: BiLMOptions, arrays: Mapping[str, Floats], *, compress: bool = False
) -> None:
    """Write float32 arrays by parameter name as a weight file, whole or not at all.

    compress: by HDF5's filters shuffle and gzip. AllenNLP and bilm-tf read through h5py and see plain float32 all the
    same. Rounded weights become smaller (see `rounding.round_mantissas`), others hardly.

    Raises WeightsError for arrays that are missing, unexpected, misshapen, not float32 or not finite,
    and for a character embedding whose row 0 is not zero: the file has no place for it.
    """
    check_arrays(arrays, options, f"{path}: not written")
    datasets = ((entry.dataset, _values(entry, arrays)) for entry in table_for(options, arrays))
    write_hdf5(path, datasets, WeightsError, compress=compress)


def _values(entry: Entry, arrays: Mapping[str, Floats]) -> Floats:
    values = np.empty(entry.shape, dtype="<f4")
    for part in entry.parts:
        piece = arrays[part.parameter][part.target]
        values[part.source] = piece.T if part.transposed else piece
    return values


def _table_of(file: h5py.File, options: BiLMOptions) -> list[Entry]:
    """The table that fits the file: an optional projection is in it where the file has a part of it."""
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


def _refuse_more(file: h5py.File, options: BiLMOptions) -> None:
    # A file of a larger model would load without a word, and give other vectors than it should.
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


def _misshapen(entry: Entry, dataset: h5py.Dataset) -> str | None:
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
