"""Character CNN: from the characters of a word to its vector, which does not depend on the context."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..formats.characters import PADDING
from ..formats.options import BiLMOptions
from ..kernels.constants import MAX_POSITIONS
from .char_table import character_table, maxima
from .highway import Highway
from .loops import loops
from .matmul import linear

N_IDS = 262  # 261 characters, and 0 for the mask
# Torch convolves words, sorted by length, in groups of this size. Each group is cut to its longest word.
WORDS_PER_GROUP = 256


def encoded_lengths(ids: Tensor) -> Tensor:
    """Return the number of characters of each word, including begin-of-word and end-of-word.

    ids: *Shape:* (words, characters), character ids.

    Returns *Shape:* (words,).
    """
    return (ids != PADDING + 1).sum(1)


class CharCnn(nn.Module):
    """Character embedding, convolutions, maximum over positions, activation, highway layers and projection.

    options: the biLM's sizes.
    char_projection: whether there is a projection after the highway layers; None: only if n_filters != projection_dim,
        as in the files of bilm-tf.
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
        """Initialise as bilm-tf does, but filters before relu with a range of ±0.1, which is twice bilm-tf's.

        generator: source of the random numbers; None: torch's default generator.
        """
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

    def forward(self, ids: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Encode words.

        ids: *Shape:* (words, characters), character ids from 1 to 261, or 0 for the mask.
        matmul_dtype: type of the matrix multiplications of the highway layers and the projection; None: the type of
            the weights.

        Returns *Shape:* (words, projection_dim), of the type of the weights.
        """
        if len(ids) == 0:
            return self.embedding.weight.new_zeros(0, self.options.projection_dim)
        return self.project(self.pool(ids), matmul_dtype)

    def project(self, x: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Apply the highway layers and the projection.

        x: *Shape:* (words, n_filters), as `pool` returns it.
        matmul_dtype: type of the matrix multiplications; None: the type of x.

        Returns *Shape:* (words, projection_dim), or (words, n_filters) if there is no projection.
        """
        for highway in self.highways:
            x = highway(x, matmul_dtype)
        return x if self.projection is None else linear(x, self.projection, matmul_dtype)

    def tables(self) -> list[Tensor]:
        """Return the table of each convolution, *Shape:* (width, characters, filters) each (see `char_table`).

        Tables are computed from the weights. After the weights change, compute them again.
        """
        return [character_table(self.embedding.weight, c.get_parameter("weight")) for c in self.convolutions]

    def pool(self, ids: Tensor, tables: list[Tensor] | None = None) -> Tensor:
        """Embed and convolve characters, and apply the maximum over positions and the activation.

        ids: *Shape:* (words, characters), character ids.
        tables: what `tables` returns for the present weights; None: they are computed.

        Returns *Shape:* (words, n_filters).
        """
        # All windows that contain nothing but padding give the same sum. So one of them is enough for the maximum, and
        # the padding after it is cut off.
        encoded, n_positions = encoded_lengths(ids), ids.shape[1]
        library = loops(self.embedding.weight)
        if library is None or not self._fits_compiled_loop(ids):
            return self.activation(self._pool_in_torch(ids, (encoded + self.widest).clamp_(max=n_positions)))
        tables = tables or self.tables()
        lengths = [(encoded + len(table)).clamp_(max=n_positions).int() for table in tables]
        x = maxima(tables, ids.short(), lengths, library)
        return self.activation(x.add_(torch.cat([c.get_parameter("bias") for c in self.convolutions])))

    def _fits_compiled_loop(self, ids: Tensor) -> bool:
        """Whether the compiled loop can read these ids. It checks nothing itself; torch raises for wrong ids."""
        if self.embedding.weight.dtype != torch.float32 or not self.widest <= ids.shape[1] <= MAX_POSITIONS:
            return False
        lowest, highest = ids.aminmax()
        return int(lowest) >= 0 and int(highest) < N_IDS

    def _pool_in_torch(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the maxima before the activation, *Shape:* (words, n_filters), without the compiled loop.

        Words of similar length are computed together, so that little padding is convolved.

        ids: *Shape:* (words, characters), character ids.
        lengths: *Shape:* (words,), positions of each word that are convolved.
        """
        order = torch.argsort(lengths, stable=True)
        pooled = []
        for group in order.split(WORDS_PER_GROUP):
            x = F.embedding(ids[group, : int(lengths[group[-1]])], self.embedding.weight, padding_idx=0)
            pooled.append(torch.cat([_convolve_and_pool(x, convolution) for convolution in self.convolutions], 1))
        restore = torch.empty_like(order)
        restore[order] = torch.arange(len(order), device=order.device)
        return torch.cat(pooled)[restore]


def _convolve_and_pool(x: Tensor, convolution: nn.Module) -> Tensor:
    """Return the maximum over positions of a convolution.

    The convolution is one matrix multiplication over all windows, which is faster than conv1d with 16 channels.

    x: *Shape:* (words, characters, char_dim).
    convolution: nn.Conv1d.

    Returns *Shape:* (words, filters).
    """
    weight, bias = convolution.get_parameter("weight"), convolution.get_parameter("bias")
    width = weight.shape[2]
    positions = x.shape[1] - width + 1
    windows = torch.cat([x[:, k : k + positions] for k in range(width)], 2)
    return F.linear(windows, weight.transpose(1, 2).flatten(1)).amax(1) + bias
