"""The layout: a biLM's weights in the form in which the engine reads them."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ..formats.options import BiLMOptions
from ..modules.lstm.weights import LayerWeights
from .lstm.stacks import make_stack
from .memory import Buffers, trim
from .word_encoder import WordEncoder

DIRECTIONS = 2
# size of the result of one matrix multiplication of the input weights: small enough for the processor's cache
INPUT_BYTES = 2**23


class Layout:
    """A character encoder, and a stack of LSTM layers for each direction. They can run after `lay_out`.

    options: the biLM's options.
    weights: the biLM's weights by parameter name. Only their names, device and types are used here.
    dtype: type of the matrix multiplications, float32 or bfloat16.
    lossless: whether `matrices` can restore the weights. Then they must be float32.
    """

    def __init__(self, options: BiLMOptions, weights: dict[str, Tensor], dtype: torch.dtype, lossless: bool) -> None:
        self.options, self.dtype, self.lossless = options, dtype, lossless
        self.device = weights["char_cnn.embedding.weight"].device
        self.row_bytes = 4 * 4 * options.dim  # W x + b of four gates at one position, in float32
        self.input_rows = max(1, INPUT_BYTES // self.row_bytes)
        self.encoder = WordEncoder(options, dtype, lossless)
        self._projection = _name(0, "projection") in weights
        arguments = self._projection, dtype, self.device, Buffers(), self.input_rows
        self.stacks = [make_stack(options, *arguments) for _ in range(DIRECTIONS)]
        self._n_added = [0] * DIRECTIONS  # number of layers in each stack

    @property
    def _n_layers(self) -> int:
        """Number of LSTM layers that are laid out in both directions. Their matrices are no longer in the weights."""
        return min(self._n_added)

    def lay_out(self, weights: dict[str, Tensor]) -> None:
        """Lay out all matrices. After an error, call it again with the same `weights`.

        weights: the biLM's weights by parameter name. Each matrix is removed from it after it is laid out. Biases,
            convolutions and character embeddings are not removed.
        """
        self.encoder.lay_out(weights)
        for k in range(self._n_layers, self.options.n_layers):
            self._trim()
            bias, *matrices = (weights[name] for name in (_name(k, "bias"), *self._matrix_names(k)))
            for d, stack in enumerate(self.stacks):
                if self._n_added[d] == k:
                    stack.add(_direction(bias, matrices, d), self.lossless)
                    self._n_added[d] += 1
            matrices.clear()
            for name in self._matrix_names(k):
                del weights[name]
        self._trim()

    def matrices(self) -> Iterator[tuple[str, Tensor]]:
        """Yield names and copies of the matrices that `lay_out` has removed, bit for bit as they were."""
        yield from self.encoder.matrices()
        for k in range(self._n_layers):
            both = zip(*(stack.matrices(k) for stack in self.stacks))
            yield from zip(self._matrix_names(k), map(torch.stack, both))

    def _trim(self) -> None:
        """Return the memory of removed matrices to the system, unless a network still owns them."""
        if self.lossless:
            trim()

    def _matrix_names(self, k: int) -> list[str]:
        parts = ["input_weight", "recurrent_weight", "projection"]
        return [_name(k, part) for part in parts[: 2 + self._projection]]


def _name(k: int, part: str) -> str:
    return f"lstm.layers.{k}.{part}"


def _direction(bias: Tensor, matrices: list[Tensor], d: int) -> LayerWeights:
    input_weight, recurrent_weight, *projection = (matrix[d] for matrix in matrices)
    return LayerWeights(input_weight, recurrent_weight, bias[d], projection[0] if projection else None)
