"""The LSTM layers of one direction over a packed batch: by a compiled call for each layer, or in torch."""

import ctypes
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import kernels
from ..formats.options import BiLMOptions
from ..kernels import address, address_of_rows, bound
from ..kernels.calls import AMX_SIZE_MULTIPLE, GATES, INPUTS_ALIGNMENT, UNITS, LayerCall, padded
from ..modules.loops import loops
from ..modules.lstm_cell import Clips, LayerWeights, LstmState, cell_in_torch, clip_in_place, has_skip, with_forget_bias
from .linear import PrepackedLinear, products_of, rounded
from .packing import Batch, Buffers, Packing, Plan, in_large_pages


def make_direction(
    options: BiLMOptions, projection: bool, dtype: torch.dtype, device: torch.device, buffers: Buffers, input_rows: int
) -> "Direction":
    """Return a direction that has no layers yet: compiled if this machine has loops for it, else in torch.

    projection: whether the layers have a projection.
    dtype: type of the weights.
    buffers: memory that both directions of an engine share. A thread runs one of them at a time.
    input_rows: number of rows, at most, whose input sums torch computes at a time.
    """
    library = kernels.load() if device.type == "cpu" and projection else None
    sizes = (options.dim, options.projection_dim)
    for kind in KINDS:
        fits = kind.operands in (dtype, torch.float32) and not any(size % kind.columns for size in sizes)
        if library is not None and fits and kernels.has(kind.name, library):
            return CompiledDirection(options, kind, dtype, library, buffers)
    return TorchDirection(options, products_of(dtype, device), buffers, input_rows)


class Axes(NamedTuple):
    """How a matrix is packed: into which sizes its rows and its columns are split, and the order of all these axes."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    order: tuple[int, ...]

    def pack(self, matrix: Tensor) -> Tensor:
        """Return a view of a matrix, *Shape:* (rows, columns), with its axes in the order in which they are packed."""
        axes: Tensor = matrix.unflatten(1, self.columns).unflatten(0, self.rows)
        return axes.permute(self.order)


class Kind(NamedTuple):
    """A kind of compiled layer call.

    name: the call is named `name`_layer in the library.
    operands: type of the operands of the matrix multiplications.
    sums: type in which the sums of the gates' inputs are stored.
    columns: of a weight that lie together. dim and projection_dim must be multiples of it.
    lanes: columns of a register.
    gates: how the weights of the input and of the state are packed.
    projection: how the projection is packed.
    """

    name: str
    operands: torch.dtype
    sums: torch.dtype
    columns: int
    lanes: int
    gates: Axes
    projection: Axes


# In each type the fastest kind comes first. Kinds in float32 also run bfloat16: they widen the weights in registers.
_LOW, _HIGH = (torch.bfloat16, torch.float16), (torch.float32, torch.float32)
_GATES_16, _PROJECTION_16 = Axes((-1,), (4, -1, UNITS), (2, 1, 0, 3)), Axes((-1,), (-1, UNITS), (1, 0, 2))
KINDS = (
    Kind(
        "amx", *_LOW, AMX_SIZE_MULTIPLE, 16,
        Axes((-1, 16, 2), (4, -1, UNITS), (4, 0, 3, 1, 5, 2)),
        Axes((-1, 16, 2), (-1, 4, UNITS), (3, 0, 4, 1, 5, 2)),
    ),
    Kind(
        "avx512_bf16", *_LOW, 32, 16,
        Axes((-1, 2), (2, 2, -1, UNITS), (4, 2, 0, 3, 5, 1)),
        Axes((-1, 2), (-1, 2, UNITS), (2, 0, 3, 4, 1)),
    ),
    Kind(
        "avx512", *_HIGH, 32, 16,
        Axes((-1,), (2, 2, -1, UNITS), (3, 1, 0, 2, 4)),
        Axes((-1,), (-1, 2, UNITS), (1, 0, 2, 3)),
    ),
    Kind("avx2", *_HIGH, 16, 8, _GATES_16, _PROJECTION_16),
    Kind("neon", *_HIGH, 16, 4, _GATES_16, _PROJECTION_16),
)  # fmt: skip


class _CompiledLayer(NamedTuple):
    packed: list[Tensor]  # weights of input and previous state, (projection_dim, 4 dim), and projection
    bias: Tensor  # (4 dim,), float32, with 1 added for the forget gate
    is_narrow: bool  # whether the packed weights are bfloat16, although the operands are float32
    addresses: tuple[int, ...]  # of packed and bias, which are checked once for all calls


class CompiledDirection:
    """The layers of one direction with a projection, each of which is one compiled call.

    dtype: type of the weights. float32 weights are stored as bfloat16 as well if that loses nothing.
    """

    def __init__(
        self, options: BiLMOptions, kind: Kind, dtype: torch.dtype, library: ctypes.CDLL, buffers: Buffers
    ) -> None:
        self.options, self.clips, self.buffers = options, Clips.of(options), buffers
        self.kind, self.dtype, self.library = kind, dtype, library
        self.axes = (kind.gates, kind.gates, kind.projection)
        self.layers: list[_CompiledLayer] = []

    def __str__(self) -> str:
        return f"{self.kind.name} in {self.kind.operands}"

    def add(self, weights: LayerWeights) -> None:
        """Add the next layer. It copies the weights of one direction."""
        dim, width = self.options.dim, self.options.projection_dim
        matrices = [matrix.float() for matrix in weights.matrices]
        bias = with_forget_bias(weights.bias, torch.float32)
        if narrow := _as_bfloat16(matrices):
            matrices = narrow
        elif self.dtype == torch.bfloat16:
            matrices = [rounded(matrix) for matrix in matrices]
        stored = matrices[0].dtype
        is_narrow = stored != self.kind.operands
        packed = []
        for axes, matrix in zip(self.axes, matrices):
            values = axes.pack(matrix)
            if is_narrow:  # each column beside the one that is a register away
                values = values.reshape(-1, 2, self.kind.lanes).transpose(1, 2)
            packed.append(in_large_pages(values).reshape(matrix.shape))
        addresses = (
            address("packed inputs", packed[0], stored, (width, GATES * dim)),
            address("packed recurrent", packed[1], stored, (width, GATES * dim)),
            address("packed projection", packed[2], stored, (dim, width)),
            address("bias", bias, torch.float32, (GATES * dim,)),
        )
        self.layers.append(_CompiledLayer(packed, bias, is_narrow, addresses))

    def run(
        self, words: Tensor, batch: Batch, state: LstmState, ends: LstmState | None, backward: bool
    ) -> list[Tensor]:
        """Run all layers over a batch, and return the outputs of each layer, with its skip connection.

        words: *Shape:* (words, projection_dim), the input of the first layer, a row for each distinct word.
        state: the state to start from, h *Shape:* (layers, rows, projection_dim) and c *Shape:* (layers, rows, dim),
            with any strides. The rows are in the order of `packing.order`.
        ends: receives the state at the end of each row, of the same shapes; None: it is not needed.
        backward: whether each row is read from its last position to its first.

        Returns for each layer *Shape:* (positions, projection_dim), float32, in the packed order. The next call in the
        same thread overwrites them.
        """
        packing, kind, operands, empty = batch.packing, self.kind, self.kind.operands, self.buffers.empty
        dim, width, n = self.options.dim, self.options.projection_dim, len(packing.order)
        active, offsets, rows = packing.active, packing.offsets, self._padded(n)
        if backward:
            active, offsets = active[::-1].copy(), offsets[::-1].copy()
        # calls.h describes the layouts of the arrays
        cells = empty("cells", dim // UNITS, rows, UNITS)
        hidden, outs = empty("state", rows, width, dtype=operands), empty("outs", rows, dim, dtype=operands)
        call = LayerCall(
            batch=n,
            dim=dim,
            width=width,
            active=address("active", active, np.int32, (None,)),
            offsets=address("offsets", offsets, np.int64, (len(active),)),
            cells=address("cells", cells, torch.float32, (dim // UNITS, rows, UNITS)),
            state=address("state", hidden, operands, (rows, width)),
            outs=address("outs", outs, operands, (rows, dim)),
            cell_bound=bound(self.clips.cell),
            proj_bound=bound(self.clips.proj),
        )
        outputs: list[Tensor] = []
        for k, layer in enumerate(self.layers):
            x, plan = (outputs[-1], batch.later) if k else (words, batch.first)
            chunks, h, c = plan.chunks_read(backward), _with_dense_rows(state.h[k]), _with_dense_rows(state.c[k])
            n_precomputed, n_sums = len(plan.precomputed), plan.n_sums
            blocked_rows = self._padded(max(n_precomputed, n_sums - n_precomputed))
            blocked = empty("blocked", blocked_rows, width, dtype=operands)
            inputs = empty("inputs", n_sums, GATES * dim, dtype=kind.sums)
            out = empty(f"out {k}", len(packing.source), width)
            call.n_precomputed, call.n_inputs, call.n_chunks = n_precomputed, n_sums, len(chunks)
            call.h_stride, call.c_stride, call.narrow = h.stride(0), c.stride(0), layer.is_narrow
            call.chunks = address("chunks", chunks, np.int64, (None, 4))
            call.precomputed = address("precomputed", plan.precomputed, torch.int64, (n_precomputed,))
            call.by_chunk = None if plan.by_chunk is None else address("by_chunk", plan.by_chunk, torch.int64, (None,))
            call.places = address("places", plan.places, torch.int32, out.shape[:1])
            call.x = address("x", x, torch.float32, (None, width))
            call.h = address_of_rows("h", h, torch.float32, (n, width))
            call.c = address_of_rows("c", c, torch.float32, (n, dim))
            call.packed_inputs, call.packed_recurrent, call.packed_w_p, call.bias = layer.addresses
            call.blocked = address("blocked", blocked, operands, (None, width))
            call.inputs = address("inputs", inputs, kind.sums, (n_sums, GATES * dim), INPUTS_ALIGNMENT)
            call.out = address("out", out, torch.float32, (None, width))
            getattr(self.library, f"{kind.name}_layer")(ctypes.byref(call))
            if ends is not None:
                last = torch.arange(n, device="cpu") if backward else torch.from_numpy(packing.ends)
                torch.index_select(out, 0, last, out=ends.h[k])
                ends.c[k].copy_(cells[:, :n].transpose(0, 1).flatten(1))
            if has_skip(self.options, k):
                out.add_(x)
            outputs.append(out)
        return outputs

    def _padded(self, n: int) -> int:
        """Return the number of rows of a work array that has room for `n` rows."""
        return padded(n) if self.kind.name == "amx" else n | 1


def _as_bfloat16(matrices: list[Tensor]) -> list[Tensor] | None:
    """Return float32 matrices as bfloat16; None: some value would change. The first row alone tells of most."""
    if not all(torch.equal(matrix[:1], matrix[:1].bfloat16().float()) for matrix in matrices):
        return None
    narrow = [matrix.bfloat16() for matrix in matrices]
    return narrow if all(torch.equal(*both) for both in zip(matrices, (one.float() for one in narrow))) else None


def _with_dense_rows(part: Tensor) -> Tensor:
    """Return a tensor whose rows are contiguous each. All rows may be at the same address, as after `expand`."""
    return part if part.stride(1) == 1 else part.contiguous()


STEP_ROWS = 128  # usual number of rows of a step, for which the weights are prepacked


class _TorchLayer(NamedTuple):
    inputs: PrepackedLinear  # with the bias
    recurrent: PrepackedLinear
    projection: PrepackedLinear | None


class TorchDirection:
    """The same in torch, for layers of any size on any device. The steps of the cell are compiled if that is possible.

    dtype: type of the matrix multiplications.
    """

    def __init__(self, options: BiLMOptions, dtype: torch.dtype, buffers: Buffers, input_rows: int) -> None:
        self.options, self.clips, self.buffers = options, Clips.of(options), buffers
        self.dtype, self.input_rows = dtype, input_rows
        self.layers: list[_TorchLayer] = []

    def __str__(self) -> str:
        return f"torch in {self.dtype}"

    def add(self, weights: LayerWeights) -> None:
        """Add the next layer. It copies the weights of one direction."""

        def made(matrix: Tensor, rows: int, bias: Tensor | None = None) -> PrepackedLinear:
            # the projection has many columns and few outputs: its parts are added in more time than they gain
            prepacks = self.dtype != torch.float32 or matrix is not w_p
            return PrepackedLinear(matrix.float().t(), bias, rows, self.dtype, prepacks=prepacks)

        bias, w_p = with_forget_bias(weights.bias, torch.float32), weights.projection
        inputs, recurrent = made(weights.input_weight, self.input_rows, bias), made(weights.recurrent_weight, STEP_ROWS)
        self.layers.append(_TorchLayer(inputs, recurrent, None if w_p is None else made(w_p, STEP_ROWS)))

    def run(
        self, words: Tensor, batch: Batch, state: LstmState, ends: LstmState | None, backward: bool
    ) -> list[Tensor]:
        """Run all layers over a batch, as `CompiledDirection.run` does."""
        n_positions, width = len(batch.packing.source), self.options.projection_dim
        outputs: list[Tensor] = []
        for k, layer in enumerate(self.layers):
            x, plan = (outputs[-1], batch.later) if k else (words, batch.first)
            out = self.buffers.empty(f"out {k}", n_positions, width, device=words.device)
            own = LstmState(*(part[k].clone(memory_format=torch.contiguous_format) for part in state))
            self._run_layer(layer, x, batch.packing, plan, own, out, backward)
            for end, part in zip(ends or (), own):
                end[k].copy_(part)
            if has_skip(self.options, k):
                out.add_(x)
            outputs.append(out)
        return outputs

    def _run_layer(
        self, layer: _TorchLayer, x: Tensor, packing: Packing, plan: Plan, state: LstmState, out: Tensor, backward: bool
    ) -> None:
        """Run a layer with the input x, and write its outputs into `out`. The state becomes that at the end."""
        library, n_precomputed, (h, c) = loops(x), len(plan.precomputed), state
        if n_precomputed:
            inputs = self.buffers.empty("inputs", plan.n_sums, GATES * self.options.dim, device=x.device)
            parts = inputs[:n_precomputed].split(self.input_rows), x[plan.precomputed].split(self.input_rows)
            for sums, rows in zip(*parts):
                sums.copy_(layer.inputs(rows))
        for first, n_steps, begin, n_rows in plan.chunks[::-1].tolist() if backward else plan.chunks.tolist():
            here = slice(begin, begin + n_rows)
            rows = x[here] if plan.by_chunk is None else x[plan.by_chunk[here]]
            if not n_precomputed:
                inputs = layer.inputs(rows)
            elif n_rows:
                inputs[n_precomputed : n_precomputed + n_rows] = layer.inputs(rows)
            steps = range(first, first + n_steps)
            for t in reversed(steps) if backward else steps:
                n, place = int(packing.active[t]), int(packing.offsets[t])
                here = slice(place, place + n)
                hidden = self._step(layer, library, inputs, plan.places[here], h[:n], c[:n])
                h[:n].copy_(hidden)
                out[here].copy_(hidden)

    def _step(
        self, layer: _TorchLayer, library: ctypes.CDLL | None, inputs: Tensor, rows: Tensor, h: Tensor, c: Tensor
    ) -> Tensor:
        """Return the outputs of one step from (h, c), and overwrite c. rows: which of the sums in `inputs` are read."""
        (n, dim), sums = c.shape, layer.recurrent(h)
        if library is None:
            hidden = cell_in_torch(sums.add_(inputs[rows.long()]), c, c, self.clips.cell)
        else:
            hidden = torch.empty_like(c)
            library.cell_step(
                n,
                dim,
                address("sums", sums, torch.float32, (n, GATES * dim)),
                address("inputs", inputs, torch.float32, (None, GATES * dim)),
                address("rows", rows, torch.int32, (n,)),
                address("c", c, torch.float32, (n, dim)),
                address("out", hidden, torch.float32, (n, dim)),
                bound(self.clips.cell),
            )
        if layer.projection is not None:
            hidden = clip_in_place(layer.projection(hidden), self.clips.proj)
        return hidden


Direction = CompiledDirection | TorchDirection
