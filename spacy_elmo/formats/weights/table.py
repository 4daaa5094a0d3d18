"""The table of a biLM's weights: which dataset of weights.hdf5 is which part of which parameter.

Matrices in the file are stored for ``x @ W``. The parameters have the layout of torch's modules, except for the LSTM's,
which have the layout of the file: for ``x @ W``, with the gates in the order input gate, candidate, forget gate, output
gate (i, j, f, o), and with the forget bias of 1 not yet added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import Errors
from ..characters import N_CHARACTERS
from ..options import BiLMOptions

Shape = tuple[int, ...]
Index = tuple[int | slice, ...]

CHAR_PROJECTION = "char_cnn.projection."
LSTM_PROJECTION = ".projection"


@dataclass(frozen=True)
class Part:
    """A part of a dataset and its place in a parameter: parameter[target] = dataset[source].

    parameter: name of the parameter.
    shape: of the complete parameter.
    target: index into the parameter; () is all of it.
    source: index into the dataset; () is all of it.
    transposed: whether the order of all axes is reversed on the way.
    """

    parameter: str
    shape: Shape
    target: Index = ()
    source: Index = ()
    transposed: bool = False


@dataclass(frozen=True)
class Entry:
    """A dataset of weights.hdf5.

    dataset: its path in the file.
    axes: for each axis the size, and the key in options.json that determines it.
    parts: where its values are in the parameters.
    """

    dataset: str
    axes: tuple[tuple[int, str], ...]
    parts: tuple[Part, ...]

    @property
    def shape(self) -> Shape:
        """The dataset's shape."""
        return tuple(size for size, _ in self.axes)


def weights_table(options: BiLMOptions, char_projection: bool, lstm_projection: bool) -> list[Entry]:
    """Return the datasets of a biLM's weight file.

    options: the biLM's sizes.
    char_projection: whether the character encoder has a projection.
    lstm_projection: whether the LSTM cells have a projection.
    """
    characters = (N_CHARACTERS, "the number of characters")
    char_dim = (options.char_dim, "char_cnn.embedding.dim")
    n_filters = (options.n_filters, "the sum of char_cnn.filters")
    projection_dim = (options.projection_dim, "lstm.projection_dim")
    part = Part("char_cnn.embedding.weight", (N_CHARACTERS + 1, options.char_dim), target=(slice(1, None),))
    table = [Entry("char_embed", (characters, char_dim), (part,))]
    for i, (width, n) in enumerate(options.filters):
        axes = (
            (1, "the format"),
            (width, f"char_cnn.filters[{i}][0]"),
            char_dim,
            (n, f"char_cnn.filters[{i}][1]"),
        )
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

    options: the biLM's sizes.
    arrays: names of parameters that exist. Projections that the sizes do not require are expected if one of their names
        is among these.
    """
    table = weights_table(options, *_projections(options, arrays or ()))
    return {part.parameter: part.shape for entry in table for part in entry.parts}


def parameter_problems(options: BiLMOptions, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return what is missing, unexpected or misshapen among parameters, a message for each problem.

    options: the biLM's sizes.
    shapes: the shapes of the parameters by name.
    """
    expected = expected_parameters(options, shapes)
    problems = []
    for name, shape in expected.items():
        if name not in shapes:
            problems.append(Errors.PARAMETER_MISSING.format(name=name, expected=shape))
        elif tuple(shapes[name]) != shape:
            got = tuple(shapes[name])
            problems.append(Errors.PARAMETER_SHAPE.format(name=name, got=got, expected=shape))
    problems += [Errors.PARAMETER_UNEXPECTED.format(name=name) for name in shapes if name not in expected]
    return problems


def table_for(options: BiLMOptions, arrays: Iterable[str]) -> list[Entry]:
    """Return the table for parameters of these names, with the optional projections that are among them."""
    return weights_table(options, *_projections(options, arrays))


def _projections(options: BiLMOptions, arrays: Iterable[str]) -> tuple[bool, bool]:
    """Whether the character encoder and the LSTM cells have projections, by the sizes or by the arrays' names."""
    names = list(arrays)
    char = any(name.startswith(CHAR_PROJECTION) for name in names)
    lstm = any(name.startswith("lstm.") and name.endswith(LSTM_PROJECTION) for name in names)
    return options.has_char_projection or char, options.has_lstm_projection or lstm


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
