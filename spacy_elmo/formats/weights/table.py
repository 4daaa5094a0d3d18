"""One table of the biLM's weights: dataset in the file <-> place in the parameters.

Matrices in the file are stored for ``x @ W``; the parameters have the layout of torch's modules, but for
the LSTM's, which stay as they are in the file (gates in the order i, j, f, o; no forget bias added).
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
    """A piece of a dataset and its place: parameter[target] is dataset[source], transposed or not."""

    parameter: str
    shape: Shape  # of the whole parameter
    target: Index = ()
    source: Index = ()
    transposed: bool = False


@dataclass(frozen=True)
class Entry:
    """A dataset of the file: its size along each axis with the options' key it comes from, and its parts."""

    dataset: str
    axes: tuple[tuple[int, str], ...]
    parts: tuple[Part, ...]

    @property
    def shape(self) -> Shape:
        """The dataset's shape."""
        return tuple(size for size, _ in self.axes)


def weights_table(options: BiLMOptions, char_projection: bool, lstm_projection: bool) -> list[Entry]:
    """The datasets of a biLM's weight file, with or without its projections."""
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
    """Names and shapes of a biLM's parameters.

    A projection that the sizes do not ask for is expected where one of its names is among `arrays`.
    """
    table = weights_table(options, *_projections(options, arrays or ()))
    return {part.parameter: part.shape for entry in table for part in entry.parts}


def parameter_problems(options: BiLMOptions, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """What is missing, unexpected or misshapen among parameters of the given names and shapes: a line each."""
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
    """The table that fits parameters of the given names."""
    return weights_table(options, *_projections(options, arrays))


def _projections(options: BiLMOptions, arrays: Iterable[str]) -> tuple[bool, bool]:
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
