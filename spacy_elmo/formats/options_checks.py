"""The ranges of a biLM's options, and the checks that values are within them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import Errors, OptionsError, shown

ACTIVATIONS = ("relu", "tanh")
# Files from training say 261 characters. Files for prediction say 262, with the mask.
N_CHARACTERS = (261, 262)

# 16 times the dim of the largest published biLM, 4,096. More is a mistake or an attack.
MAX_SIZE = 65_536
# Published models have 2 layers, 2 highway layers and 7 filters.
MAX_LAYERS = 64
MAX_HIGHWAY = 64
MAX_FILTERS = 64
# Begin-of-word, one byte and end-of-word need 3 positions.
MIN_CHARACTERS_PER_TOKEN = 3
# 20 times the 50 of the official models. Each position costs a convolution.
MAX_CHARACTERS_PER_TOKEN = 1_000
# 4 GiB of float32; the largest published model has 93.6 million.
MAX_PARAMETERS = 2**30
# The largest finite float32. Clips are compared with float32 values.
FLOAT32_MAX = (2 - 2**-23) * 2.0**127

# Field of BiLMOptions -> path of keys in options.json.
KEYS = {
    "char_dim": "char_cnn.embedding.dim",
    "filters": "char_cnn.filters",
    "n_highway": "char_cnn.n_highway",
    "activation": "char_cnn.activation",
    "max_characters": "char_cnn.max_characters_per_token",
    "dim": "lstm.dim",
    "projection_dim": "lstm.projection_dim",
    "n_layers": "lstm.n_layers",
    "cell_clip": "lstm.cell_clip",
    "proj_clip": "lstm.proj_clip",
    "use_skip_connections": "lstm.use_skip_connections",
}


def check_fields(fields: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Check the fields of BiLMOptions and return them in their final types.

    fields: values by name of the field.
    source: where the values are from, for messages.

    Raises OptionsError, which names the key in options.json, the value and what was expected.
    """
    limits = {
        "char_dim": (1, MAX_SIZE),
        "n_highway": (0, MAX_HIGHWAY),
        "max_characters": (MIN_CHARACTERS_PER_TOKEN, MAX_CHARACTERS_PER_TOKEN),
        "dim": (1, MAX_SIZE),
        "projection_dim": (1, MAX_SIZE),
        "n_layers": (1, MAX_LAYERS),
    }
    final: dict[str, Any] = {
        name: _integer(fields[name], KEYS[name], low, high, source) for name, (low, high) in limits.items()
    }
    for name in ("cell_clip", "proj_clip"):
        final[name] = _clip(fields[name], KEYS[name], source)
    final["filters"] = _filters(fields["filters"], final["max_characters"], source)
    final["activation"] = fields["activation"]
    if not isinstance(fields["activation"], str) or fields["activation"] not in ACTIVATIONS:
        raise _value_error(fields["activation"], KEYS["activation"], "one of " + ", ".join(ACTIVATIONS), source)
    final["use_skip_connections"] = fields["use_skip_connections"]
    if not isinstance(fields["use_skip_connections"], bool):
        key = KEYS["use_skip_connections"]
        raise _value_error(fields["use_skip_connections"], key, "true or false", source)
    if final["projection_dim"] > final["dim"]:
        expected = f"at most lstm.dim, which is {final['dim']}"
        raise _value_error(final["projection_dim"], KEYS["projection_dim"], expected, source)
    return final


def check_n_characters(value: object, source: str) -> None:
    """Raise OptionsError unless `value` is 261 or 262."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in N_CHARACTERS:
        raise _value_error(value, "char_cnn.n_characters", "261 or 262", source)


def _integer(value: object, key: str, low: int, high: int, source: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _value_error(value, key, f"an integer from {low:,} to {high:,}", source)
    return value


def _clip(value: object, key: str, source: str) -> float | None:
    if value is None:
        return None
    expected = "a positive number that float32 can hold, or null for no clipping"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _value_error(value, key, expected, source)
    try:
        number = float(value)
    except OverflowError:
        raise _value_error(value, key, expected, source) from None
    if not 0 < number <= FLOAT32_MAX:
        raise _value_error(value, key, expected, source)
    return number


def _filters(value: object, max_characters: int, source: str) -> tuple[tuple[int, int], ...]:
    key = KEYS["filters"]
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= MAX_FILTERS:
        expected = f"a list of 1 to {MAX_FILTERS} pairs [width, number of filters]"
        raise _value_error(value, key, expected, source)
    pairs = []
    for i, pair in enumerate(value):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise _value_error(pair, f"{key}[{i}]", "a pair [width, number of filters]", source)
        width = _integer(pair[0], f"{key}[{i}][0]", 1, MAX_CHARACTERS_PER_TOKEN, source)
        if width > max_characters:
            expected = f"at most {KEYS['max_characters']}, which is {max_characters}"
            raise _value_error(width, f"{key}[{i}][0]", expected, source)
        pairs.append((width, _integer(pair[1], f"{key}[{i}][1]", 1, MAX_SIZE, source)))
    n_filters = sum(n for _, n in pairs)
    if n_filters > MAX_SIZE:
        raise _value_error(n_filters, f"the sum of {key}", f"at most {MAX_SIZE:,}", source)
    return tuple(pairs)


def _value_error(value: object, key: str, expected: str, source: str) -> OptionsError:
    return OptionsError(Errors.OPTIONS_VALUE.format(source=source, key=key, got=shown(value), expected=expected))
