"""The table of a biLM's weights: which dataset of weights.hdf5 is which part of which parameter.

Matrices in the file are stored for ``x @ W``. The parameters have the layout of torch's modules, except for the LSTM's,
which have the layout of the file: for ``x @ W``, with the gates in the order input gate, candidate, forget gate, output
gate (i, j, f, o), and with the forget bias of 1 not yet added.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from ..errors import ElmoError, WeightsError, listed
from .characters import N_CHARACTERS
from .hdf5 import (
    MAX_BYTES,
    Floats,
    check_bytes,
    check_dataset,
    find,
    find_all,
    open_hdf5,
    read_dataset,
    write_hdf5,
)
from .options import BiLMOptions

Shape = tuple[int, ...]
Index = tuple[int | slice, ...]

CHAR_PROJECTION = "char_cnn.projection."
LSTM_PROJECTION = ".projection"


@dataclass(frozen=True)
class Part:
    """A part of a dataset and its place in a parameter of this shape: parameter[target] = dataset[source]."""

    parameter: str
    shape: Shape
    target: Index = ()
    source: Index = ()
    transposed: bool = False


@dataclass(frozen=True)
class Entry:
    """A dataset of weights.hdf5: for each axis the size, and the key in options.json that determines it."""

    dataset: str
    axes: tuple[tuple[int, str], ...]
    parts: tuple[Part, ...]

    @property
    def shape(self) -> Shape:
        return tuple(size for size, _ in self.axes)


def weights_table(options: BiLMOptions, char_projection: bool, lstm_projection: bool) -> list[Entry]:
    """Return the datasets of a biLM's weight file, with or without the projections."""
    characters = (N_CHARACTERS, "the number of characters")
    char_dim = (options.char_dim, "char_cnn.embedding.dim")
    n_filters = (options.n_filters, "the sum of char_cnn.filters")
    projection_dim = (options.projection_dim, "lstm.projection_dim")
    part = Part("char_cnn.embedding.weight", (N_CHARACTERS + 1, options.char_dim), target=(slice(1, None),))
    table = [Entry("char_embed", (characters, char_dim), (part,))]
    for i, (width, n) in enumerate(options.filters):
        axes = ((1, "the format"), (width, f"char_cnn.filters[{i}][0]"), char_dim, (n, f"char_cnn.filters[{i}][1]"))
        name = f"char_cnn.convolutions.{i}"
        part = Part(f"{name}.weight", (n, options.char_dim, width), source=(0,), transposed=True)
        table.append(Entry(f"CNN/W_cnn_{i}", axes, (part,)))
        table.append(_vector(f"CNN/b_cnn_{i}", axes[-1], f"{name}.bias"))
    for k in range(options.n_highway):
        for gate in ("carry", "transform"):
            name = f"char_cnn.highways.{k}.{gate}"
            table += _linear(f"CNN_high_{k}", gate, n_filters, n_filters, name)
    if char_projection:
        table += _linear("CNN_proj", "proj", n_filters, projection_dim, "char_cnn.projection")
    for layer in range(options.n_layers):
        for direction in range(2):
            table += _cell(options, layer, direction, lstm_projection)
    return table


def expected_parameters(options: BiLMOptions, arrays: Iterable[str] | None = None) -> dict[str, Shape]:
    """Return the shapes of a biLM's parameters by name.

    arrays: names of parameters that exist. Projections that the sizes do not require are expected if one is among them.
    """
    return {part.parameter: part.shape for entry in _table_for(options, arrays or ()) for part in entry.parts}


def _table_for(options: BiLMOptions, arrays: Iterable[str]) -> list[Entry]:
    """Return the table for parameters of these names, with the optional projections that are among them."""
    names = list(arrays)
    char = any(name.startswith(CHAR_PROJECTION) for name in names)
    lstm = any(name.startswith("lstm.") and name.endswith(LSTM_PROJECTION) for name in names)
    return weights_table(options, options.has_char_projection or char, options.has_lstm_projection or lstm)


def _vector(dataset: str, axis: tuple[int, str], parameter: str) -> Entry:
    return Entry(dataset, (axis,), (Part(parameter, (axis[0],)),))


def _linear(group: str, suffix: str, n_in: tuple[int, str], n_out: tuple[int, str], parameter: str) -> list[Entry]:
    part = Part(f"{parameter}.weight", (n_out[0], n_in[0]), transposed=True)
    weight = Entry(f"{group}/W_{suffix}", (n_in, n_out), (part,))
    return [weight, _vector(f"{group}/b_{suffix}", n_out, f"{parameter}.bias")]


def _cell(options: BiLMOptions, layer: int, direction: int, projection: bool) -> list[Entry]:
    p, d = options.projection_dim, options.dim
    group = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    name = f"lstm.layers.{layer}"
    gates = (4 * d, "4 * lstm.dim")
    weights = (
        Part(f"{name}.input_weight", (2, p, 4 * d), (direction,), (slice(0, p),)),
        Part(f"{name}.recurrent_weight", (2, p, 4 * d), (direction,), (slice(p, 2 * p),)),
    )
    entries = [
        Entry(f"{group}/W_0", ((2 * p, "2 * lstm.projection_dim"), gates), weights),
        Entry(f"{group}/B", (gates,), (Part(f"{name}.bias", (2, 4 * d), (direction,)),)),
    ]
    if projection:
        axes = ((d, "lstm.dim"), (p, "lstm.projection_dim"))
        part = Part(f"{name}{LSTM_PROJECTION}", (2, d, p), (direction,))
        entries.append(Entry(f"{group}/W_P_0", axes, (part,)))
    return entries


def check_arrays(arrays: Mapping[str, Floats], options: BiLMOptions, source: str) -> None:
    """Raise WeightsError as check_shapes does, and if values are not finite or the mask's row is not zero."""
    check_shapes(arrays, options, source)
    for name, array in arrays.items():
        if n_bad := int(array.size - np.isfinite(array).sum()):
            raise WeightsError(f"{source}: {name} holds {n_bad} values that are NaN or infinite. Expected none.")
    if arrays["char_cnn.embedding.weight"][0].any():
        raise WeightsError(
            f"{source}: row 0 of char_cnn.embedding.weight is not zero. Expected zeros: the file has no row for "
            "padding."
        )


def check_shapes(arrays: Mapping[str, Floats], options: BiLMOptions, source: str) -> None:
    """Raise WeightsError, which names `source`, if arrays are missing, unexpected, misshapen or not float32."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.newbyteorder("=") != np.float32:
            got = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise WeightsError(f"{source}: {name} is {got}. Expected a numpy array of float32.")
    expected, problems = expected_parameters(options, arrays), []
    for name, shape in expected.items():
        if name not in arrays:
            problems.append(f"{name} is missing, expected shape {shape}")
        elif arrays[name].shape != shape:
            problems.append(f"{name} has shape {arrays[name].shape}, expected {shape}")
    problems += [f"{name} is unexpected" for name in arrays if name not in expected]
    if problems:
        raise WeightsError(f"{source}: the parameters and the options disagree: {listed(problems, '; ')}.")


# Bytes, as torch aligns its tensors. With another alignment, matrix multiplications may differ in the last bits.
ALIGNMENT = 64
_ITEM_SIZE = 4  # bytes of a float32
# The official files have float32. AllenNLP reads all three.
TYPES = ("float32", "float16", "float64")


def read_weights(
    path: str | os.PathLike[str], options: BiLMOptions, *, max_bytes: int = MAX_BYTES
) -> dict[str, Floats]:
    """Read a weight file.

    options: the sizes that the file must have. Projections that the sizes do not require are read if the file has them.
    max_bytes: how much memory the weights may take; four times the size of the file is always allowed, and what the
        environment variable SPACY_ELMO_MAX_BYTES says if that is more.

    Returns contiguous float32 arrays in native byte order, by parameter name (see `expected_parameters`).
    Raises WeightsError if the file is missing, damaged, incomplete or of other sizes, or if its weights take too much
    memory.
    """
    with open_hdf5(path, "the weights.hdf5 of a biLM", WeightsError) as file:
        every = weights_table(options, True, True)
        names = [entry.parts[0].parameter for entry in every if find(file, entry.dataset) is not None]
        table = {entry.dataset: entry for entry in _table_for(options, names)}
        datasets = find_all(file, table, "the weights of a biLM with the sizes of its options")
        problems = [problem for name, entry in table.items() if (problem := _shape_problem(entry, datasets[name]))]
        if problems:
            raise ElmoError(f"{path}: the datasets and the options disagree: {listed(problems, '; ')}.")
        _refuse_larger_model(file, options)
        n_bytes = _ITEM_SIZE * sum(math.prod(entry.shape) for entry in table.values())
        check_bytes(n_bytes, path, "the biLM", max_bytes)
        for dataset in datasets.values():
            check_dataset(dataset, TYPES, max_bytes)
        arrays = {}
        for name, entry in table.items():
            values = read_dataset(datasets[name])
            for part in entry.parts:
                if part.parameter not in arrays:
                    arrays[part.parameter] = _aligned(part.shape)
                piece = values[part.source]
                arrays[part.parameter][part.target] = piece.T if part.transposed else piece
    return arrays


def _aligned(shape: Shape) -> Floats:
    """Return zeros whose memory begins at a multiple of ALIGNMENT."""
    size = math.prod(shape)
    values = np.zeros(size + ALIGNMENT, np.float32)
    start = -values.ctypes.data % ALIGNMENT // _ITEM_SIZE
    return values[start : start + size].reshape(shape)


def write_weights(
    path: str | os.PathLike[str], options: BiLMOptions, arrays: Mapping[str, Floats], *, compress: bool = False
) -> None:
    """Write a weight file atomically.

    arrays: float32 arrays by parameter name (see `expected_parameters`).
    compress: see `write_hdf5`. Only rounded weights become much smaller (see `pack`).

    Raises WeightsError if the arrays are not the parameters, not float32 or not finite, if row 0 of the character
    embedding (the mask) is not zero, since the file has no place for it, or if the file can't be written.
    """
    check_arrays(arrays, options, f"{path}: not written")

    def datasets() -> Iterator[tuple[str, Floats]]:
        for entry in _table_for(options, arrays):
            values = np.empty(entry.shape, dtype="<f4")
            for part in entry.parts:
                piece = arrays[part.parameter][part.target]
                values[part.source] = piece.T if part.transposed else piece
            yield entry.dataset, values

    write_hdf5(path, datasets(), WeightsError, compress=compress)


def _refuse_larger_model(file: h5py.File, options: BiLMOptions) -> None:
    # Otherwise a file of a larger model would load without an error, and give wrong vectors.
    n_filters = len(options.filters)
    beyond = {
        f"CNN/W_cnn_{n_filters}": f"the length of char_cnn.filters is {n_filters}",
        f"CNN_high_{options.n_highway}": f"char_cnn.n_highway is {options.n_highway}",
        f"RNN_0/RNN/MultiRNNCell/Cell{options.n_layers}": f"lstm.n_layers is {options.n_layers}",
    }
    for name, but in beyond.items():
        if find(file, name) is not None:
            raise ElmoError(
                f"{file.filename}: the file has {name}, but {but}. Use the options that came with the file."
            )


def _shape_problem(entry: Entry, dataset: h5py.Dataset) -> str | None:
    """Return what is wrong with a dataset's shape, and the options' keys that it contradicts; None if it is right."""
    got = dataset.shape  # None of h5py.Empty
    if got == entry.shape:
        return None
    if got is not None and len(got) == len(entry.shape):
        keys = [key for size, (expected, key) in zip(got, entry.axes, strict=True) if size != expected]
    else:
        keys = [key for _, key in entry.axes]
    return f"{entry.dataset} has shape {got}, expected {entry.shape}, from {', '.join(dict.fromkeys(keys))}"


def readers_of(
    options: BiLMOptions, parameters: Iterable[str] | None = None, contents: Mapping[str, Any] | None = None
) -> dict[str, list[str]]:
    """Return by reader what it can't read of a biLM with these parameters, and this content of its options.json."""
    names = list(expected_parameters(options) if parameters is None else parameters)
    allennlp, bilm_tf = [], []
    if not any(name.endswith(LSTM_PROJECTION) for name in names):
        allennlp.append("no projection in the LSTMs (lstm.dim = lstm.projection_dim)")
    elif not options.has_lstm_projection:
        bilm_tf.append("a projection in the LSTMs, which it leaves out at these sizes")
    if not any(name.startswith(CHAR_PROJECTION) for name in names):
        allennlp.append("no projection in the character encoder (number of filters = lstm.projection_dim)")
    elif not options.has_char_projection:
        bilm_tf.append("a projection in the character encoder, which it leaves out at these sizes")
    if not options.use_skip_connections:
        allennlp.append("no skip connections (lstm.use_skip_connections)")
    if options.max_characters != 50:  # ELMoCharacterMapper.max_word_length
        allennlp.append(f"{options.max_characters} characters a token, not 50")
    if options.n_filters < options.projection_dim:
        bilm_tf.append("fewer filters than lstm.projection_dim")
    if options.n_layers > 8:  # _pretrained_initializer knows the names of no more
        bilm_tf.append("more than 8 LSTM layers")
    # keys that they ask for, and this package does not
    contents = contents or options.to_dict()
    allennlp += _absent(contents, "char_cnn.n_highway", "lstm.cell_clip", "lstm.proj_clip")
    bilm_tf += _absent(contents, "char_cnn.n_characters", "lstm.use_skip_connections")
    if contents["char_cnn"].get("n_highway", 0) is None:
        allennlp.append("char_cnn.n_highway is null")
    if contents["char_cnn"].get("n_characters", 262) != 262:  # the rows of char_embed, with the mask
        bilm_tf.append("char_cnn.n_characters is not 262, as it is for prediction")
    return {"this package": [], "AllenNLP": allennlp, "bilm-tf": bilm_tf}


def _absent(contents: Mapping[str, Any], *keys: str) -> list[str]:
    paths = (key.split(".") for key in keys)
    return [f"no {part}.{name} in options.json" for part, name in paths if name not in contents[part]]
