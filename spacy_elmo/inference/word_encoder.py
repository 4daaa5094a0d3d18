"""The character encoder laid out for speed: tables made once, and its matrices in the type that multiplies them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..formats.options import BiLMOptions
from ..modules.char_cnn import CharCnn
from ..modules.highway import highway_sum_in_place
from .linear import PrepackedLinear
from .split import joined, split

PREFIX = "char_cnn."  # of the encoder's parameters among the biLM's
ROWS = 128  # usual number of words
ROWS_OF = 16  # matrix multiplications get a multiple of that many rows


class _Matrix(NamedTuple):
    """remainder: what bfloat16 took away from the weight; None if it is not stored."""

    multiply: PrepackedLinear
    remainder: Tensor | None


class WordEncoder:
    """Words to the vectors of layer 0. Runs after lay_out.

    options: the biLM's.
    dtype: of the matrix multiplications of highways and projection, float32 or bfloat16.
    lossless: whether `matrices` can be asked for these; their weights are float32 then.
    """

    def __init__(self, options: BiLMOptions, dtype: torch.dtype, lossless: bool) -> None:
        self.options, self.dtype, self.lossless = options, dtype, lossless
        self._matrices: dict[str, _Matrix] = {}
        self._highways: list[tuple[PrepackedLinear, PrepackedLinear]] = []
        self._projection: PrepackedLinear | None = None

    def lay_out(self, weights: dict[str, Tensor]) -> None:
        """Lay out the matrices. Each leaves `weights` when it is laid out: after an error, call again with the rest.

        weights: the biLM's, by parameter name. The convolutions and biases stay there and are shared.
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
        return _Matrix(PrepackedLinear(weight, bias, ROWS, self.dtype), remainder if self.lossless else None)

    def matrices(self) -> Iterator[tuple[str, Tensor]]:
        """Copies of the matrices laid out so far, by parameter name, bit for bit."""
        for name, (multiply, remainder) in self._matrices.items():
            yield f"{name}.weight", multiply.plain if remainder is None else joined(multiply.plain, remainder)

    def __call__(self, ids: Tensor) -> Tensor:
        """Encode words.

        ids: *Shape:* (words, characters). Returns *Shape:* (words, projection_dim), float32.
        """
        if not len(ids):
            return ids.new_zeros(0, self.options.projection_dim, dtype=torch.float32)
        # as linear.rows_taken, but once for all, and in larger steps: nobody waits for few words
        x = F.pad(self.convolutions.pool(ids, self.tables).float(), (0, 0, 0, -len(ids) % ROWS_OF))
        for carry, transform in self._highways:
            x = highway_sum_in_place(x, carry(x), transform(x))
        return (x if self._projection is None else self._projection(x))[: len(ids)]


def _convolutions(options: BiLMOptions, weights: dict[str, Tensor]) -> CharCnn:
    """The network below the highways, of the weights themselves."""
    with torch.device("meta"):  # no memory, and no random numbers
        cnn = CharCnn(replace(options, n_highway=0), char_projection=False)
    cnn.load_state_dict({name: weights[PREFIX + name] for name in cnn.state_dict()}, assign=True)
    return cnn.requires_grad_(False)
