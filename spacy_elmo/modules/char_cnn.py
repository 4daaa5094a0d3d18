"""Character CNN: a word's characters -> its context-independent vector."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..formats.characters import PADDING
from ..formats.options import BiLMOptions
from .char_table import character_table, maxima
from .highway import Highway
from .lstm.cell import loops
from .products import linear

N_IDS = 262  # 261 characters, and 0 for the mask
# words sorted by length are convolved in groups of this size, each cut to its own longest word
GROUP = 256
MOST_POSITIONS = 256  # the compiled loop keeps a position in a byte


def encoded_lengths(ids: Tensor) -> Tensor:
    """Characters of each word with its begin and end marks. ids: *Shape:* (words, characters); returns (words,)."""
    return (ids != PADDING + 1).sum(1)


class CharCnn(nn.Module):
    """Embedding, one convolution per filter, max over positions, activation, highways, projection.

    options: the network's sizes.
    char_projection: whether a projection follows the highways; None: only where n_filters != projection_dim
        (files of bilm-tf leave it out where the two agree).
    """

    def __init__(self, options: BiLMOptions, char_projection: bool | None = None) -> None:
        super().__init__()
        if char_projection is None:
            char_projection = options.has_char_projection
        self.options = options
        self.embedding = nn.Embedding(N_IDS, options.char_dim, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(options.char_dim, n, width) for width, n in options.filters)
        self.highways = nn.ModuleList(Highway(options.n_filters) for _ in range(options.n_highway))
        self.projection = nn.Linear(options.n_filters, options.projection_dim) if char_projection else None
        self.activation = {"relu": torch.relu_, "tanh": torch.tanh_}[options.activation]
        self.widest = max(width for width, _ in options.filters)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """bilm-tf's initialisation, with twice its range for relu filters (0.1)."""
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0, generator=generator)
        with torch.no_grad():
            self.embedding.weight[0].zero_()
        for convolution, (width, _) in zip(self.convolutions, self.options.filters):
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            if self.options.activation == "relu":
                nn.init.uniform_(convolution.weight, -0.1, 0.1, generator=generator)
            else:
                std = math.sqrt(1.0 / (width * self.options.char_dim))
                nn.init.normal_(convolution.weight, 0.0, std, generator=generator)
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            assert isinstance(highway, Highway)
            highway.reset_parameters(generator)
        if self.projection is not None:
            std = math.sqrt(1.0 / self.options.n_filters)
            nn.init.normal_(self.projection.weight, 0.0, std, generator=generator)
            nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor, products: torch.dtype | None = None) -> Tensor:
        """Encode words.

        ids: *Shape:* (words, characters), 0 = mask, 1..261 = characters; products: see products.linear.
        Returns *Shape:* (words, projection_dim).
        """
        if len(ids) == 0:
            return self.embedding.weight.new_zeros(0, self.options.projection_dim)
        return self.project(self.pool(ids), products)

    def project(self, x: Tensor, products: torch.dtype | None = None) -> Tensor:
        """The highways and the projection on what pool returns; see forward."""
        for highway in self.highways:
            x = highway(x, products)
        return x if self.projection is None else linear(x, self.projection, products)

    def tables(self) -> list[Tensor]:
        """Of each convolution; see char_table. They follow the weights only when they are made anew."""
        return [character_table(self.embedding.weight, c.get_parameter("weight")) for c in self.convolutions]

    def pool(self, ids: Tensor, tables: list[Tensor] | None = None) -> Tensor:
        """The activated maxima of words, *Shape:* (words, n_filters). tables: those of now; None: they are made."""
        # windows that lie wholly in padding are all alike: one is enough, so the rest can be cut off
        encoded, most = encoded_lengths(ids), ids.shape[1]
        library = loops(self.embedding.weight)
        if library is None or not self._fits_table(ids):
            return self.activation(self._by_windows(ids, (encoded + self.widest).clamp_(max=most)))
        tables = tables or self.tables()
        lengths = [(encoded + len(table)).clamp_(max=most).int() for table in tables]
        x = maxima(tables, ids.short(), lengths, library)
        return self.activation(x.add_(torch.cat([c.get_parameter("bias") for c in self.convolutions])))

    def _fits_table(self, ids: Tensor) -> bool:
        """Whether the compiled loop, which checks nothing, can take these ids; torch refuses those that are wrong."""
        if self.embedding.weight.dtype != torch.float32 or not self.widest <= ids.shape[1] <= MOST_POSITIONS:
            return False
        least, most = ids.aminmax()
        return int(least) >= 0 and int(most) < N_IDS

    def _by_windows(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """The maxima, group by group of words of like length."""
        order = torch.argsort(lengths, stable=True)
        pooled = []
        for group in order.split(GROUP):
            x = F.embedding(ids[group, : int(lengths[group[-1]])], self.embedding.weight, padding_idx=0)
            pooled.append(torch.cat([_convolve_and_pool(x, convolution) for convolution in self.convolutions], 1))
        restore = torch.empty_like(order)
        restore[order] = torch.arange(len(order), device=order.device)
        return torch.cat(pooled)[restore]


def _convolve_and_pool(x: Tensor, convolution: nn.Module) -> Tensor:
    """Convolution as one product over all windows (with 16 channels faster than conv1d), then the maximum.

    x: *Shape:* (words, characters, char_dim); convolution: nn.Conv1d of n filters. Returns (words, n).
    """
    weight, bias = convolution.get_parameter("weight"), convolution.get_parameter("bias")
    width = weight.shape[2]
    positions = x.shape[1] - width + 1
    windows = torch.cat([x[:, k : k + positions] for k in range(width)], 2)
    return F.linear(windows, weight.transpose(1, 2).flatten(1)).amax(1) + bias
