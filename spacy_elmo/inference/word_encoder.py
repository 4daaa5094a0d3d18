"""The character encoder laid out for speed: tables made once, and its matrices in the products' type."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..modules.char_cnn import CharCnn
from ..modules.highway import Highway, highway_sum_in_place
from .linear import PrepackedLinear
from .split import joined, split

ROWS = 128  # usual number of words
ROWS_OF = 16  # products take a multiple of so many rows


class _Taken(NamedTuple):
    """A weight that was emptied, its product, and what that lacks in bfloat16."""

    weight: Tensor
    product: PrepackedLinear
    rest: Tensor | None


class WordEncoder:
    """cnn: its weights must not change but by `take`; dtype: of the highways' and the projection's products."""

    def __init__(self, cnn: CharCnn, dtype: torch.dtype) -> None:
        self.cnn = cnn
        self.tables = cnn.tables()
        own_dtype = cnn.embedding.weight.dtype
        self.splits = (own_dtype, dtype) == (torch.float32, torch.bfloat16)
        self.gives_back = self.splits or own_dtype == dtype
        self._taken: list[_Taken] = []
        self._products: dict[nn.Linear, PrepackedLinear] = {}
        for layer in _layers(cnn):
            weight = split(layer.weight)[0] if self.splits else layer.weight.detach()
            self._products[layer] = PrepackedLinear(weight, layer.bias, ROWS, dtype)

    def take(self) -> None:
        """Empty those of the encoder's matrices that can be put together again, until `matrices` gives them back."""
        for layer, product in self._products.items() if self.gives_back else ():
            rest = split(layer.weight)[1] if self.splits else None  # which only those need who take
            self._taken.append(_Taken(layer.weight, product, rest))
            layer.weight.data = layer.weight.data.new_empty(0)

    def matrices(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The parameters that were taken, each with its values, bit for bit."""
        for weight, product, rest in self._taken:
            yield weight, product.plain if rest is None else joined(product.plain, rest)

    @property
    def is_taken(self) -> bool:
        """Whether the network lacks matrices."""
        return bool(self._taken)

    def forget_taken(self) -> None:
        """They were given back."""
        self._taken = []

    def __call__(self, ids: Tensor) -> Tensor:
        """ids: *Shape:* (words, characters). Returns *Shape:* (words, projection_dim), float32."""
        if not len(ids):
            return ids.new_zeros(0, self.cnn.options.projection_dim, dtype=torch.float32)
        # as linear.rows_taken, but once for all products, and in larger steps: nobody waits for few words
        x = F.pad(self.cnn.pool(ids, self.tables).float(), (0, 0, 0, -len(ids) % ROWS_OF))
        for highway in self.cnn.highways:
            assert isinstance(highway, Highway)
            x = highway_sum_in_place(x, self._products[highway.carry](x), self._products[highway.transform](x))
        return (x if self.cnn.projection is None else self._products[self.cnn.projection](x))[: len(ids)]


def _layers(cnn: CharCnn) -> Iterator[nn.Linear]:
    for highway in cnn.highways:
        assert isinstance(highway, Highway)
        yield from (highway.carry, highway.transform)
    if cnn.projection is not None:
        yield cnn.projection
