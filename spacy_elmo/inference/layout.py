"""A biLM's weights as the engine reads them."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ..formats.options import BiLMOptions
from ..modules.lstm.layers import LayerWeights
from .lstm.stacks import make_stack
from .memory import Buffers, trim
from .word_encoder import WordEncoder

DIRECTIONS = 2
# of the input's matrix multiplication at a time: little memory, and on AMX and in torch it stays in the cache
INPUT_BYTES = 2**23


class Layout:
    """The character encoder, and a stack of LSTM layers a direction; both run after lay_out.

    options: the biLM's.
    weights: the biLM's, by parameter name; only names, device and types are looked at here.
    dtype: of the matrix multiplications, float32 or bfloat16.
    lossless: whether `matrices` can be asked for what was laid out; the weights are float32 then.
    """

    def __init__(self, options: BiLMOptions, weights: dict[str, Tensor], dtype: torch.dtype, lossless: bool) -> None:
        self.options, self.lossless = options, lossless
        self.device = weights["char_cnn.embedding.weight"].device
        self.row_bytes = 4 * 4 * options.dim  # of the gates' sums of one position, float32
        self.input_rows = max(1, INPUT_BYTES // self.row_bytes)
        self.encoder = WordEncoder(options, dtype, lossless)
        self._projection = _name(0, "projection") in weights
        made_for = self._projection, dtype, self.device, Buffers(), self.input_rows
        self.stacks = [make_stack(options, *made_for) for _ in range(DIRECTIONS)]
        self._n_added = [0] * DIRECTIONS  # layers of each stack

    @property
    def _n_layers(self) -> int:
        """LSTM layers that are laid out in both directions, so that their matrices have left the weights."""
        return min(self._n_added)

    def lay_out(self, weights: dict[str, Tensor]) -> None:
        """Lay out all matrices. Each leaves `weights` when it is laid out: after an error, call again with the rest.

        weights: the biLM's, by parameter name. Biases and what else is small stay there.
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
        """Copies of the matrices that have left the weights, by parameter name, bit for bit."""
        yield from self.encoder.matrices()
        for k in range(self._n_layers):
            both = zip(*(stack.matrices(k) for stack in self.stacks))
            yield from zip(self._matrix_names(k), map(torch.stack, both))

    def _trim(self) -> None:
        """Hand back the memory of matrices that have left, unless a network owns them still."""
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
