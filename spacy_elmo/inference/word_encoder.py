"""The character encoder with convolution tables computed once, and matrices in the type of their multiplication."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..formats.options import BiLMOptions
from ..modules.convolutions import Convolutions
from ..modules.highway import highway_sum_in_place
from .linear import PrepackedLinear
from .split import joined, split

PREFIX = "char_cnn."  # the names of the encoder's weights among the biLM's start with it
ROWS = 128  # usual number of words
PART = 128  # columns of a matrix in each part (see COLUMNS in linear.py)
ROWS_OF = 16  # matrix multiplications have a multiple of this number of rows


class _Matrix(NamedTuple):
    """A matrix that is laid out.

    multiply: the matrix multiplication.
    remainder: the weight minus its bfloat16 rounding (see `split`); None: not stored.
    """

    multiply: PrepackedLinear
    remainder: Tensor | None


class WordEncoder:
    """Computes the vectors of layer 0 from character ids. It can run after `lay_out`.

    options: the biLM's options.
    dtype: type of the matrix multiplications of the highway layers and the projection, float32 or bfloat16.
    lossless: whether `matrices` can restore the weights. Then they must be float32.
    """

    def __init__(self, options: BiLMOptions, dtype: torch.dtype, lossless: bool) -> None:
        self.options, self.dtype, self.lossless = options, dtype, lossless
        self._matrices: dict[str, _Matrix] = {}
        self._highways: list[tuple[PrepackedLinear, PrepackedLinear]] = []
        self._projection: PrepackedLinear | None = None

    def lay_out(self, weights: dict[str, Tensor]) -> None:
        """Lay out the matrices. After an error, call it again with the same `weights`.

        weights: the biLM's weights by parameter name. Each matrix is removed from it after it is laid out. The
            convolutions and biases are not removed, and are shared.
        """
        highways = [f"{PREFIX}highways.{k}" for k in range(self.options.n_highway)]
        projection = f"{PREFIX}projection"
        pairs = [(f"{name}.carry", f"{name}.transform") for name in highways]
        names = [name for pair in pairs for name in pair] + [projection] * (f"{projection}.bias" in weights)
        for name in names:
            if name not in self._matrices:
                self._matrices[name] = self._laid_out(weights[f"{name}.weight"], weights[f"{name}.bias"])
                del weights[f"{name}.weight"]
        multiply = {name: matrix.multiply for name, matrix in self._matrices.items()}
        self._highways = [(multiply[carry], multiply[transform]) for carry, transform in pairs]
        self._projection = multiply.get(projection)
        self.convolutions = _convolutions(self.options, weights)
        self.tables = self.convolutions.tables()

    def _laid_out(self, weight: Tensor, bias: Tensor) -> _Matrix:
        remainder = None
        if (weight.dtype, self.dtype) == (torch.float32, torch.bfloat16):
            weight, remainder = split(weight)
        multiply = PrepackedLinear(weight, bias, ROWS, self.dtype, PART)
        return _Matrix(multiply, remainder if self.lossless else None)

    def matrices(self) -> Iterator[tuple[str, Tensor]]:
        """Yield names and copies of the matrices that `lay_out` has removed, bit for bit as they were."""
        for name, (multiply, remainder) in self._matrices.items():
            yield f"{name}.weight", multiply.plain if remainder is None else joined(multiply.plain, remainder)

    def __call__(self, ids: Tensor) -> Tensor:
        """Encode words.

        ids: *Shape:* (words, characters), character ids.

        Returns *Shape:* (words, projection_dim), float32.
        """
        if not len(ids):
            return ids.new_zeros(0, self.options.projection_dim, dtype=torch.float32)
        # padded once for all matrix multiplications; PrepackedLinear would pad each of them
        x = F.pad(self.convolutions.pool(ids, self.tables).float(), (0, 0, 0, -len(ids) % ROWS_OF))
        for carry, transform in self._highways:
            x = highway_sum_in_place(x, carry(x), transform(x))
        return (x if self._projection is None else self._projection(x))[: len(ids)]


def _convolutions(options: BiLMOptions, weights: dict[str, Tensor]) -> Convolutions:
    names = [f"{PREFIX}convolutions.{k}" for k in range(len(options.filters))]
    filters = [(weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in names]
    return Convolutions(options, weights[f"{PREFIX}embedding.weight"], filters)
