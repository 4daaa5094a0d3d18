"""Which of a biLM's layers are written, and how they are combined."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Errors, SettingsError, shown
from ..formats.strict.strict_json import read_json
from ..models.numbers import is_number
from ..pipeline.attributes import mix_parameters

Array = npt.NDArray[Any]
NAMES = ("all", "top", "mean")
Layers = str | os.PathLike[str] | Mapping[str, Any]  # as `Selection.of` describes them
DTYPES = ("float32", "float16")
_MOST_BYTES = 1 << 20  # of a file with the weights of a mix


@dataclass(frozen=True)
class Selection:
    """What is made of the layers of a sentence.

    name: "all", "top", "mean" or "mix".
    weights: *Shape:* (layers,), of a mix before the softmax; empty for the others.
    gamma: factor of a mix.
    dtype: type of the values that are written, "float32" or "float16".
    sentence: whether the mean over the tokens is taken, which gives one vector for a sentence.
    """

    name: str
    weights: tuple[float, ...] = ()
    gamma: float = 1.0
    dtype: str = "float32"
    sentence: bool = False

    @classmethod
    def of(cls, layers: Layers, dtype: str, sentence: bool) -> Selection:
        """Return the selection that a user asks for.

        layers: "all", "top", "mean", or the weights of a mix: a JSON file, or a dict, with "w", the weights before the
            softmax, and perhaps "gamma", as `python -m spacy elmo weights --json` prints them.
        dtype, sentence: as of the class.

        Raises SettingsError if they can't be used.
        """
        if dtype not in DTYPES:
            raise SettingsError(Errors.CORPUS_DTYPE.format(got=shown(dtype), expected=" or ".join(DTYPES)))
        if str(layers) in NAMES:
            return cls(str(layers), dtype=dtype, sentence=sentence)
        is_path = isinstance(layers, str | os.PathLike)
        if not isinstance(layers, Mapping) and not (is_path and Path(layers).is_file()):
            got = shown(str(layers) if is_path else layers)
            raise SettingsError(Errors.CORPUS_LAYERS.format(got=got, expected=", ".join(NAMES)))
        try:
            mix = layers if isinstance(layers, Mapping) else read_json(Path(layers), _MOST_BYTES)
            weights, gamma = _mix_of(mix)
        except (OSError, ValueError) as error:
            raise SettingsError(Errors.CORPUS_MIX.format(path=layers if is_path else "layers", reason=error)) from error
        return cls("mix", weights, gamma, dtype, sentence)

    def check(self, n_layers: int) -> None:
        """Raise SettingsError if a mix is not one of that many layers."""
        if self.name == "mix" and len(self.weights) != n_layers:
            raise SettingsError(Errors.CORPUS_MIX_LAYERS.format(got=len(self.weights), expected=n_layers))

    def __call__(self, layers: Array) -> Array:
        """Return what is written of the layers of a sentence.

        layers: *Shape:* (layers, tokens, width), float32.

        Returns *Shape:* (tokens, width), or (layers, tokens, width) for all of them, without the axis of the tokens if
        there is one vector for a sentence.
        Raises SettingsError if a value is too large for float16.
        """
        if self.name == "all":
            chosen = layers
        elif self.name == "top":
            chosen = layers[-1].copy()  # a view would keep all layers in memory
        elif self.name == "mean":
            chosen = layers.mean(0)
        else:
            chosen = np.tensordot(np.float32(self.gamma) * mix_parameters(self.weights), layers, axes=1)
        if self.sentence:
            chosen = chosen.mean(-2)
        with np.errstate(over="ignore"):  # values that are too large become infinite, and raise below
            result = chosen.astype(self.dtype, copy=False)
        if self.dtype == "float16" and not np.isfinite(result).all():
            raise SettingsError(Errors.CORPUS_FLOAT16)
        return result

    def columns(self, n_layers: int) -> list[str]:
        """Return the names of the columns of a table: "layer_0" and so on for all layers, else "vectors" or "vector".

        n_layers: layers of the biLM.
        """
        if self.name == "all":
            return [f"layer_{k}" for k in range(n_layers)]
        return ["vector" if self.sentence else "vectors"]

    def by_column(self, array: Array) -> list[Array]:
        """Return what a sentence has in each column. array: what the selection returned for its layers."""
        return list(array) if self.name == "all" else [array]


def _mix_of(content: Any) -> tuple[tuple[float, ...], float]:
    if isinstance(content, list):
        if len(content) != 1:
            raise ValueError(f"a list of {len(content)} mixes; keep the one that is meant")
        content = content[0]
    if not isinstance(content, Mapping) or "w" not in content:
        raise ValueError('no object with "w"')
    weights, gamma = content["w"], content.get("gamma", 1.0)
    if not isinstance(weights, list | tuple) or not weights:
        raise ValueError('"w" is no list of numbers')
    if not all(is_number(value) for value in (*weights, gamma)):
        raise ValueError('"w" or "gamma" has something else than finite numbers of float32')
    return tuple(float(value) for value in weights), float(gamma)
