"""BiLMOptions, the sizes and settings of a biLM, and the official options.json that holds them."""

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ..errors import FILE_UNREADABLE, OptionsError, OptionsWarning, shown
from .atomic import replacing, writing
from .paths import existing_file
from .strict_json import read_json

ACTIVATIONS = ("relu", "tanh")
# Files from training say 261 characters. Files for prediction say 262, with the mask.
N_CHARACTERS = (261, 262)

# More is a mistake or an attack. The largest published biLM has a dim of 4,096, 2 layers, 2 highway layers, 7 filters,
# 50 characters per token and 93.6 million parameters. 2**30 parameters are 4 GiB of float32.
MAX_SIZE = 65_536
MAX_LAYERS = 64
MAX_CHARACTERS_PER_TOKEN = 1_000
MAX_PARAMETERS = 2**30
# The largest finite float32. Clips are compared with float32 values.
FLOAT32_MAX = (2 - 2**-23) * 2.0**127

# Official files have about 500 bytes. A larger file than this is something else.
MAX_OPTIONS_BYTES = 2**20

# Field of BiLMOptions -> path of keys in options.json.
KEYS = {
    "dim": "lstm.dim",
    "projection_dim": "lstm.projection_dim",
    "n_layers": "lstm.n_layers",
    "cell_clip": "lstm.cell_clip",
    "proj_clip": "lstm.proj_clip",
    "use_skip_connections": "lstm.use_skip_connections",
    "char_dim": "char_cnn.embedding.dim",
    "filters": "char_cnn.filters",
    "n_highway": "char_cnn.n_highway",
    "max_characters": "char_cnn.max_characters_per_token",
    "activation": "char_cnn.activation",
}
# bilm-tf's values if a key is absent or null. AllenNLP requires these keys, but not n_characters: char_embed has 261
# rows in any file, and 262 with the mask.
DEFAULTS: dict[str, Any] = {
    "lstm.cell_clip": None,
    "lstm.proj_clip": None,
    "lstm.use_skip_connections": False,
    "char_cnn.n_highway": 0,
    "char_cnn.n_characters": 262,
}
# Lowest and highest value. Begin-of-word, one byte and end-of-word need 3 characters.
_LIMITS = {
    "char_dim": (1, MAX_SIZE),
    "n_highway": (0, MAX_LAYERS),
    "max_characters": (3, MAX_CHARACTERS_PER_TOKEN),
    "dim": (1, MAX_SIZE),
    "projection_dim": (1, MAX_SIZE),
    "n_layers": (1, MAX_LAYERS),
}


@dataclass(frozen=True)
class BiLMOptions:
    """The sizes and settings of a biLM.

    char_dim: width of a character's embedding.
    filters: (width in characters, number of filters) of each convolution.
    n_highway: number of highway layers.
    activation: "relu" or "tanh", applied after the maximum over positions.
    max_characters: positions per word, including begin-of-word and end-of-word; 50 in the official models.
    dim: width of an LSTM's cell state.
    projection_dim: width of an LSTM layer's output in one direction.
    n_layers: number of LSTM layers per direction.
    cell_clip: the cell state is clipped to [-cell_clip, cell_clip]; None: it is not clipped.
    proj_clip: the projected output is clipped to [-proj_clip, proj_clip]; None: it is not clipped.
    use_skip_connections: whether each LSTM layer after the first adds its input to its output.

    Raises OptionsError, which names the key in options.json, if a value is out of its range.
    """

    char_dim: int
    filters: tuple[tuple[int, int], ...]
    n_highway: int
    activation: str
    max_characters: int
    dim: int
    projection_dim: int
    n_layers: int
    cell_clip: float | None
    proj_clip: float | None
    use_skip_connections: bool

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            _check_integer(getattr(self, name), KEYS[name], low, high)
        for name in ("cell_clip", "proj_clip"):
            object.__setattr__(self, name, _clip(getattr(self, name), KEYS[name]))
        object.__setattr__(self, "filters", _filters(self.filters, self.max_characters))
        if self.activation not in ACTIVATIONS:
            raise _value_error(self.activation, KEYS["activation"], "one of " + ", ".join(ACTIVATIONS))
        if not isinstance(self.use_skip_connections, bool):
            raise _value_error(self.use_skip_connections, KEYS["use_skip_connections"], "true or false")
        if self.projection_dim > self.dim:
            expected = f"at most lstm.dim, which is {self.dim}"
            raise _value_error(self.projection_dim, KEYS["projection_dim"], expected)
        if self.n_parameters > MAX_PARAMETERS:
            raise OptionsError(
                f"BiLMOptions: these sizes make {self.n_parameters:,} parameters. Expected at most {MAX_PARAMETERS:,} "
                "(4 GiB of float32): lower sizes of lstm or char_cnn."
            )

    @property
    def n_filters(self) -> int:
        """Number of filters of all convolutions together."""
        return sum(n for _, n in self.filters)

    @property
    def width(self) -> int:
        """Width of a token's vector in one layer: both directions side by side."""
        return 2 * self.projection_dim

    @property
    def layers(self) -> int:
        """Number of layers of a token's representation: the character encoder and the LSTM layers."""
        return self.n_layers + 1

    @property
    def has_lstm_projection(self) -> bool:
        """Whether the sizes require a projection in the LSTM cells."""
        return self.dim != self.projection_dim

    @property
    def has_char_projection(self) -> bool:
        """Whether the sizes require a projection in the character encoder."""
        return self.n_filters != self.projection_dim

    @property
    def n_parameters(self) -> int:
        """Number of values in weights.hdf5, if it has only the projections that the sizes require."""
        f, p, d = self.n_filters, self.projection_dim, self.dim
        convolutions = sum(n * (width * self.char_dim + 1) for width, n in self.filters)
        highways = self.n_highway * 2 * f * (f + 1)
        char_projection = p * (f + 1) if self.has_char_projection else 0
        cell = 4 * d * (2 * p + 1) + (d * p if self.has_lstm_projection else 0)
        return 261 * self.char_dim + convolutions + highways + char_projection + 2 * self.n_layers * cell

    @classmethod
    def from_dict(cls, data: object, source: str = "options") -> "BiLMOptions":
        """Build the options from the contents of an options.json. Unknown keys are ignored.

        source: where the data are from, for messages.

        Raises OptionsError if a key is missing or a value is out of its range.
        """
        _refuse_other_kinds(data, source)
        fields = {name: _value_at(data, key, source) for name, key in KEYS.items()}
        n_characters = _value_at(data, "char_cnn.n_characters", source)
        try:
            if not isinstance(n_characters, int) or n_characters not in N_CHARACTERS:
                raise _value_error(n_characters, "char_cnn.n_characters", "261 or 262")
            return cls(**fields)
        except OptionsError as error:
            raise OptionsError(source + str(error).removeprefix("BiLMOptions")) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of an options.json. n_characters is 262, as in files for prediction."""
        return {
            "lstm": {
                "dim": self.dim,
                "projection_dim": self.projection_dim,
                "n_layers": self.n_layers,
                "cell_clip": self.cell_clip,
                "proj_clip": self.proj_clip,
                "use_skip_connections": self.use_skip_connections,
            },
            "char_cnn": {
                "embedding": {"dim": self.char_dim},
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.n_highway,
                "n_characters": 262,
                "max_characters_per_token": self.max_characters,
                "activation": self.activation,
            },
        }


def _value_error(value: object, key: str, expected: str) -> OptionsError:
    return OptionsError(f"BiLMOptions: {key} is {shown(value)}. Expected {expected}.")


def _check_integer(value: object, key: str, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _value_error(value, key, f"an integer from {low:,} to {high:,}")


def _clip(value: object, key: str) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= FLOAT32_MAX:  # type: ignore[operator]
        raise _value_error(value, key, "a positive number that float32 can hold, or null for no clipping")
    return float(value)  # type: ignore[arg-type]


def _filters(value: object, max_characters: int) -> tuple[tuple[int, int], ...]:
    key = KEYS["filters"]
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_LAYERS:
        raise _value_error(value, key, f"a list of 1 to {MAX_LAYERS} pairs [width, number of filters]")
    for i, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise _value_error(pair, f"{key}[{i}]", "a pair [width, number of filters]")
        _check_integer(pair[0], f"{key}[{i}][0]", 1, MAX_CHARACTERS_PER_TOKEN)
        if pair[0] > max_characters:
            expected = f"at most {KEYS['max_characters']}, which is {max_characters}"
            raise _value_error(pair[0], f"{key}[{i}][0]", expected)
        _check_integer(pair[1], f"{key}[{i}][1]", 1, MAX_SIZE)
    return tuple((width, n) for width, n in value)


def _refuse_other_kinds(data: object, source: str) -> None:
    if not isinstance(data, Mapping) or "char_cnn" in data:
        return
    if "token_embedder" in data and "encoder" in data:
        raise OptionsError(
            f"{source}: the options of a model of ELMoForManyLangs, which is another network. Expected a biLM of "
            "AllenNLP or bilm-tf, with lstm and char_cnn."
        )
    if "lstm" in data:  # bilm-tf trains such a biLM on options without char_cnn
        raise OptionsError(
            f"{source}: the key char_cnn is missing, so these are the options of a biLM that reads numbers of words. "
            "Expected one that reads characters: if char_cnn was lost, add it."
        )


def _value_at(data: object, key: str, source: str) -> Any:
    """Return the value at a path of keys, or its default if it is absent or null."""
    current: Any = data
    parts = key.split(".")
    for depth, part in enumerate(parts):
        if not isinstance(current, Mapping):
            place = ".".join(parts[:depth]) or "the top level"
            raise OptionsError(f"{source}: {place} is {shown(current)}. Expected an object with the key {part}.")
        if key in DEFAULTS and part == parts[-1] and current.get(part) is None:
            return DEFAULTS[key]
        if part not in current:
            raise OptionsError(f"{source}: the key {'.'.join(parts[: depth + 1])} is missing. Expected it in the file.")
        current = current[part]
    return current


def read_options(path: str | os.PathLike[str]) -> BiLMOptions:
    """Read an options.json. Raises OptionsError if it is missing, unreadable, not JSON, or describes no valid biLM."""
    contents = read_contents(path)
    options = BiLMOptions.from_dict(contents, os.fspath(path))
    warn_of_keys(contents, os.fspath(path))
    return options


def warn_of_keys(contents: Mapping[str, Any], source: str) -> None:
    """Warn of what an options.json from `source` leaves out or misspells: vectors would be plausible, and wrong."""
    if contents["lstm"].get("use_skip_connections") is None and contents["lstm"]["n_layers"] > 1:
        told = (
            f"{source}: lstm.use_skip_connections is missing, and is taken for false, as bilm-tf takes it. AllenNLP's "
            "biLMs always have skip connections. Write true or false into the file."
        )
        warnings.warn(told, OptionsWarning, stacklevel=3)
    known = {name.rpartition(".")[2]: name for name in (*KEYS.values(), "char_cnn.n_characters", "char_cnn.embedding")}
    for section in ("lstm", "char_cnn"):
        for key in contents[section].keys() - known.keys():
            hint = "".join(f" (nearest: {known[name]})" for name in get_close_matches(key, known, 1))
            told = f"{source}: {section}.{key} is no key that is read{hint}. Correct it, or remove it."
            warnings.warn(told, OptionsWarning, stacklevel=3)


def read_contents(path: str | os.PathLike[str]) -> Any:
    """Return what an options.json says, unchecked. Raises OptionsError if it is missing, unreadable or not JSON."""
    expected = "the options.json of a biLM"
    path = existing_file(path, expected, OptionsError)
    try:
        return read_json(path, MAX_OPTIONS_BYTES, finite=False)  # the checks of the values name their keys
    except OSError as exc:
        raise OptionsError(FILE_UNREADABLE.format(path=path, reason=exc, expected=expected)) from exc
    except ValueError as exc:  # also raised for bytes that are not UTF-8, and for integers too long for Python
        raise OptionsError(f"{path}: not valid JSON ({exc}). Expected {expected}, which has about 500 bytes.") from exc


def write_options(path: str | os.PathLike[str], options: BiLMOptions) -> None:
    """Write an options.json atomically. Raises OptionsError if the file can't be written."""
    text = json.dumps(options.to_dict(), indent=2) + "\n"
    with replacing(path, OptionsError) as temporary, writing(path, OptionsError):
        temporary.write_text(text, encoding="utf-8")
