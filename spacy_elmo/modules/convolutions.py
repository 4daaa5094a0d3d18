"""The first part of the character CNN: embedding, convolutions, maximum over positions, activation."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..formats.characters import PADDING
from ..formats.options import BiLMOptions
from ..kernels.constants import MAX_POSITIONS
from .char_table import character_table, maxima
from .loops import loops

N_IDS = 262  # 261 characters, and 0 for the mask
# Torch convolves words, sorted by length, in groups of this size. Each group is cut to its longest word.
WORDS_PER_GROUP = 256
GPU_SUMS = 1 << 21  # words of a group times the filters of one width, on a GPU, which must be kept busy


def encoded_lengths(ids: Tensor) -> Tensor:
    """Return the number of characters of each word, including begin-of-word and end-of-word.

    ids: *Shape:* (words, characters), character ids.

    Returns *Shape:* (words,).
    """
    return (ids != PADDING + 1).sum(1)


class Convolutions:
    """Computes the activated maxima of words from character ids. It shares the weights, and changes none.

    options: the biLM's sizes and activation.
    embedding: *Shape:* (characters, char_dim), the character embedding.
    filters: weight, *Shape:* (filters, char_dim, width), and bias, *Shape:* (filters,), of each convolution.
    """

    def __init__(self, options: BiLMOptions, embedding: Tensor, filters: Sequence[tuple[Tensor, Tensor]]) -> None:
        self.embedding, self.filters = embedding, filters
        self.activation = {"relu": torch.relu_, "tanh": torch.tanh_}[options.activation]
        self.widest = max(width for width, _ in options.filters)

    def tables(self) -> list[Tensor]:
        """Return the table of each convolution, *Shape:* (width, characters, filters) each (see `character_table`).

        Tables are computed from the weights. After the weights change, compute them again.
        """
        return [character_table(self.embedding, weight) for weight, _ in self.filters]

    def pool(self, ids: Tensor, tables: list[Tensor] | None = None) -> Tensor:
        """Embed and convolve characters, and apply the maximum over positions and the activation.

        ids: *Shape:* (words, characters), character ids.
        tables: what `tables` returns for the present weights; None: they are computed.

        Returns *Shape:* (words, n_filters).
        """
        # All windows that contain nothing but padding give the same sum. So one of them is enough for the maximum, and
        # the padding after it is cut off.
        encoded, n_positions = encoded_lengths(ids), ids.shape[1]
        library = loops(self.embedding)
        if library is None or not self._fits_compiled_loop(ids):
            return self.activation(self._pool_in_torch(ids, (encoded + self.widest).clamp_(max=n_positions)))
        tables = tables or self.tables()
        lengths = [(encoded + len(table)).clamp_(max=n_positions).int() for table in tables]
        x = maxima(tables, ids.short(), lengths, library)
        return self.activation(x.add_(torch.cat([bias for _, bias in self.filters])))

    def _fits_compiled_loop(self, ids: Tensor) -> bool:
        """Whether the compiled loop can read these ids. It checks nothing itself; torch raises for wrong ids."""
        if self.embedding.dtype != torch.float32 or not self.widest <= ids.shape[1] <= MAX_POSITIONS:
            return False
        lowest, highest = ids.aminmax()
        return int(lowest) >= 0 and int(highest) < N_IDS

    def _pool_in_torch(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the maxima before the activation, *Shape:* (words, n_filters), without the compiled loop.

        Words of similar length are computed together, so that little padding is convolved.

        ids: *Shape:* (words, characters), character ids.
        lengths: *Shape:* (words,), positions of each word that are convolved.
        """
        order, most = torch.argsort(lengths, stable=True), max(len(bias) for _, bias in self.filters)
        pooled = []
        for group in order.split(max(WORDS_PER_GROUP, GPU_SUMS // most) if ids.is_cuda else WORDS_PER_GROUP):
            x = F.embedding(ids[group, : int(lengths[group[-1]])], self.embedding, padding_idx=0)
            pooled.append(torch.cat([_convolve_and_pool(x, weight, bias) for weight, bias in self.filters], 1))
        restore = torch.empty_like(order)
        restore[order] = torch.arange(len(order), device=order.device)
        return torch.cat(pooled)[restore]


def _convolve_and_pool(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the maximum over positions of a convolution.

    The convolution is one matrix multiplication over all windows, which is faster than conv1d with 16 channels.

    x: *Shape:* (words, characters, char_dim).
    weight: *Shape:* (filters, char_dim, width).
    bias: *Shape:* (filters,).

    Returns *Shape:* (words, filters).
    """
    width = weight.shape[2]
    positions = x.shape[1] - width + 1
    windows = torch.cat([x[:, k : k + positions] for k in range(width)], 2)
    return F.linear(windows, weight.transpose(1, 2).flatten(1)).amax(1) + bias
