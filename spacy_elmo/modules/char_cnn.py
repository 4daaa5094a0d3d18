"""Character CNN: from the characters of a word to its vector, which does not depend on the context."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..formats.characters import PADDING
from ..formats.options import BiLMOptions
from ..kernels import address, address_of_rows
from ..kernels.calls import MAX_POSITIONS
from .loops import loops

N_IDS = 262  # 261 characters, and 0 for the mask
# Torch convolves words, sorted by length, in groups of this size. Each group is cut to its longest word.
WORDS_PER_GROUP = 256
GPU_SUMS = 1 << 21  # words of a group times the filters of one width, on a GPU, which must be kept busy


class CharCnn(nn.Module):
    """Character embedding, convolutions, maximum over positions, activation, highway layers and projection.

    char_projection: whether there is a projection; None: only if n_filters != projection_dim, as in bilm-tf's files.
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

    def forward(self, ids: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Encode words. Returns *Shape:* (words, projection_dim), of the type of the weights.

        ids: *Shape:* (words, characters), character ids from 1 to 261, or 0 for the mask.
        matmul_dtype: type of the matrix multiplications of the highway layers and the projection (see `linear`).
        """
        if len(ids) == 0:
            return self.embedding.weight.new_zeros(0, self.options.projection_dim)
        # attributes and not get_parameter: torch.func and parametrizations put tensors in the place of parameters
        filters = [(c.weight, c.bias) for c in self.convolutions if isinstance(c, nn.Conv1d) and c.bias is not None]
        x = pool(self.options, self.embedding.weight, filters, ids)
        for highway in self.highways:
            x = highway(x, matmul_dtype)
        return x if self.projection is None else linear(x, self.projection, matmul_dtype)


class Highway(nn.Module):
    """y = carry * relu(x W_transform + b_transform) + (1 - carry) * x, with carry = sigmoid(x W_carry + b_carry).

    As in bilm-tf, "carry" is the share of the transformed input, not of the input.
    """

    def __init__(self, n_filters: int) -> None:
        super().__init__()
        self.carry = nn.Linear(n_filters, n_filters)
        self.transform = nn.Linear(n_filters, n_filters)

    def forward(self, x: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Return the layer's output, of the shape and type of x, (words, n_filters)."""
        carry, transform = linear(x, self.carry, matmul_dtype), linear(x, self.transform, matmul_dtype)
        return x + torch.sigmoid(carry) * (torch.relu(transform) - x)


def highway_sum_in_place(x: Tensor, carry: Tensor, transform: Tensor) -> Tensor:
    """Compute the last line of `Highway` in the memory of `transform`, without gradients. `carry` is overwritten too.

    This avoids new memory for each operation, which takes longer than the operations themselves (2.7 ms compared to
    0.3 ms for 192 words and 2,048 filters).
    """
    return transform.relu_().sub_(x).mul_(carry.sigmoid_()).add_(x)


def linear(x: Tensor, layer: nn.Linear, matmul_dtype: torch.dtype | None = None) -> Tensor:
    """Return layer(x), with the matrix multiplication in another type. The bias is added in the type of x."""
    if matmul_dtype is None or matmul_dtype == x.dtype:
        result: Tensor = layer(x)  # a call, so that hooks run, and what was put in the place of the layer
        return result
    return F.linear(x.to(matmul_dtype), layer.weight.to(matmul_dtype)).to(x.dtype) + layer.bias


def pool(
    options: BiLMOptions,
    embedding: Tensor,
    filters: Sequence[tuple[Tensor, Tensor]],
    ids: Tensor,
    tables: Sequence[Tensor] | None = None,
) -> Tensor:
    """Embed and convolve characters, and apply the maximum over positions and the activation.

    embedding: *Shape:* (characters, char_dim).
    filters: weight, *Shape:* (filters, char_dim, width), and bias, *Shape:* (filters,), of each convolution.
    ids: *Shape:* (words, characters), character ids.
    tables: `character_table` of each convolution; None: they are computed.

    Returns *Shape:* (words, n_filters).
    """
    activation = {"relu": torch.relu_, "tanh": torch.tanh_}[options.activation]
    widest = max(width for width, _ in options.filters)
    # All windows that contain nothing but padding give the same sum. So one of them is enough for the maximum, and
    # the padding after it is cut off. First the number of characters, with begin-of-word and end-of-word.
    encoded, n_positions = (ids != PADDING + 1).sum(1), ids.shape[1]
    library = loops(embedding) if embedding.dtype == torch.float32 else None
    if library is not None and widest <= n_positions <= MAX_POSITIONS:
        lowest, highest = ids.aminmax()  # the compiled loop checks nothing; torch raises for wrong ids
        if int(lowest) >= 0 and int(highest) < N_IDS:
            tables = tables or [character_table(embedding, weight) for weight, _ in filters]
            lengths = [(encoded + len(table)).clamp_(max=n_positions).int() for table in tables]
            x = maxima(tables, ids.short(), lengths, library)
            return activation(x.add_(torch.cat([bias for _, bias in filters])))
    # Words of similar length are computed together, so that little padding is convolved.
    lengths_in_torch = (encoded + widest).clamp_(max=n_positions)
    order, most = torch.argsort(lengths_in_torch, stable=True), max(len(bias) for _, bias in filters)
    pooled = []
    for group in order.split(max(WORDS_PER_GROUP, GPU_SUMS // most) if ids.is_cuda else WORDS_PER_GROUP):
        x = F.embedding(ids[group, : int(lengths_in_torch[group[-1]])], embedding, padding_idx=0)
        pooled.append(torch.cat([_convolve_and_pool(x, weight, bias) for weight, bias in filters], 1))
    restore = torch.empty_like(order)
    restore[order] = torch.arange(len(order), device=order.device)
    return activation(torch.cat(pooled)[restore])


def _convolve_and_pool(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the maximum over positions of a convolution, *Shape:* (words, filters).

    It is one matrix multiplication over all windows, which is faster than conv1d with 16 channels.
    """
    width = weight.shape[2]
    positions = x.shape[1] - width + 1
    windows = torch.cat([x[:, k : k + positions] for k in range(width)], 2)
    return F.linear(windows, weight.transpose(1, 2).flatten(1)).amax(1) + bias


def character_table(embedding: Tensor, weight: Tensor) -> Tensor:
    """Return the dot products of each character's embedding and each slice of the filters.

    The result has *Shape:* (width, characters, filters). The parameters are as in `pool`.
    """
    learned = torch.cat([embedding[:1].detach(), embedding[1:]])  # the mask is no character and stays 0
    return torch.einsum("cd,fdk->kcf", learned, weight).contiguous()


def maxima(tables: Sequence[Tensor], ids: Tensor, lengths: Sequence[Tensor], library: ctypes.CDLL) -> Tensor:
    """Return the maximum over all windows of each filter's sum, without the bias.

    tables: as `character_table` returns them, float32, one for each width of filters.
    ids: *Shape:* (words, positions), int16, character ids, at most 256 positions.
    lengths: for each table *Shape:* (words,), int32, number of positions of each word that are convolved, at least the
        table's width.

    Returns *Shape:* (words, filters), float32, the filters of all tables in their order.
    """
    ids, lengths = ids.contiguous(), [array.contiguous() for array in lengths]
    if torch.is_grad_enabled():
        return torch.cat([_Convolve.apply(table, ids, array, library) for table, array in zip(tables, lengths)], 1)
    words, stride = ids.shape
    out = torch.empty(words, sum(table.shape[2] for table in tables), dtype=torch.float32, device=ids.device)
    begin = 0
    for table, array in zip(tables, lengths):
        end = begin + table.shape[2]
        maxima_here = address_of_rows("out", out[:, begin:end], torch.float32, (words, end - begin))
        library.convolve_maxima(words, stride, *table.shape, out.shape[1], *_read(ids, array, table), maxima_here)
        begin = end
    return out


class _Convolve(torch.autograd.Function):
    """The maximum over windows of one table's sums, with the gradient of the table."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, lengths: Tensor, library: ctypes.CDLL) -> Tensor:
        (width, n_ids, filters), (words, stride) = table.shape, ids.shape
        out = torch.empty(words, filters, dtype=torch.float32, device=table.device)
        where = torch.empty(words, filters, dtype=torch.uint8, device=table.device)
        sizes = (words, stride, width, n_ids, filters, filters)
        library.convolve(
            *sizes,
            *_read(ids, lengths, table),
            address("out", out, torch.float32, (words, filters)),
            address("where", where, torch.uint8, (words, filters)),
        )
        ctx.save_for_backward(ids, where)
        ctx.sizes, ctx.library = sizes, library
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        ids, where = ctx.saved_tensors
        words, stride, width, n_ids, filters, _ = ctx.sizes
        d_table, d_out = torch.zeros(width, n_ids, filters, dtype=torch.float32, device=ids.device), d_out.contiguous()
        ctx.library.convolve_backward(
            *ctx.sizes,
            address("ids", ids, torch.int16, (words, stride)),
            address("d_out", d_out, torch.float32, (words, filters)),
            address("where", where, torch.uint8, (words, filters)),
            address("d_table", d_table, torch.float32, (width, n_ids, filters)),
        )
        return d_table, None, None, None


def _read(ids: Tensor, lengths: Tensor, table: Tensor) -> tuple[int, int, int]:
    """Return the addresses of the arrays that the compiled convolutions read."""
    return (
        address("ids", ids, torch.int16, tuple(ids.shape)),
        address("lengths", lengths, torch.int32, (len(ids),)),
        address("table", table, torch.float32, tuple(table.shape)),
    )
