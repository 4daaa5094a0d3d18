"""The character encoder laid out for speed: tables made once, and its matrices in the products' type."""

import torch
from torch import Tensor, nn

from ..modules.char_cnn import CharCnn
from ..modules.highway import Highway, carried
from .linear import PrepackedLinear

ROWS = 128  # usual number of words


class WordEncoder:
    """cnn: its weights must not change; dtype: of the highways' and the projection's products."""

    def __init__(self, cnn: CharCnn, dtype: torch.dtype) -> None:
        self.cnn = cnn
        self.tables = cnn.tables()
        self.highways: list[tuple[PrepackedLinear, PrepackedLinear]] = []
        self.projection: PrepackedLinear | None = None
        self.own = dtype == cnn.embedding.weight.dtype  # the encoder's own matrices do
        if self.own:
            return

        def prepacked(layer: nn.Linear) -> PrepackedLinear:
            return PrepackedLinear(layer.weight, layer.bias, ROWS, dtype)

        for highway in cnn.highways:
            assert isinstance(highway, Highway)
            self.highways.append((prepacked(highway.carry), prepacked(highway.transform)))
        self.projection = None if cnn.projection is None else prepacked(cnn.projection)

    def __call__(self, ids: Tensor) -> Tensor:
        """ids: *Shape:* (words, characters). Returns *Shape:* (words, projection_dim), float32."""
        if not len(ids):
            return ids.new_zeros(0, self.cnn.options.projection_dim, dtype=torch.float32)
        x = self.cnn.pool(ids, self.tables)
        if self.own:
            return self.cnn.project(x).float()
        for carry, transform in self.highways:
            x = carried(x, carry(x), transform(x))
        return x if self.projection is None else self.projection(x)
