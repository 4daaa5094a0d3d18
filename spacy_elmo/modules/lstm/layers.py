"""The stack of LSTM layers of both directions, with projection, clips and skip connections."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ...formats.options import BiLMOptions
from .cell import Clips, add_skip
from .scan import Workspace, lstm_scan
from .state import LstmState
from .weights import LayerWeights


def scan_layers(
    options: BiLMOptions,
    layers: Sequence[LayerWeights],
    x: Tensor,
    state: LstmState,
    keep: Tensor | None = None,
    *,
    drop: Callable[[Tensor], Tensor] | None = None,
    matmul_dtype: torch.dtype | None = None,
    workspaces: Sequence[Workspace] | None = None,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Run a stack of layers over a window of steps.

    options: clips and skip connections.
    layers: the weights of each layer, for these directions.
    x: *Shape:* (directions, steps, batch, projection_dim), the input of the first layer. Each direction is in the order
        in which it reads.
    state: the state before the first step, of the same directions.
    keep: *Shape:* (steps, batch, 1), 0 if the state is forgotten before a step, else 1; None: it is never forgotten.
    drop: applies dropout to the input of each layer; None: no dropout.
    matmul_dtype: type of the matrix multiplications; None: the type of x.
    workspaces: memory for each layer that the next call uses again, as in `lstm_scan`; None: new memory.

    Returns three lists with an item for each layer, of the values after each step: the layer's output with its skip
    connection and the state h, *Shape:* (directions, steps, batch, projection_dim) both, and the cell state c, *Shape:*
    (directions, steps, batch, dim). With workspaces, c is that after the last step only, (directions, 1, batch, dim).
    """
    clips = Clips.of(options)
    outputs, hs, cs = [], [], []
    for k, layer in enumerate(layers):
        workspace = None if workspaces is None else workspaces[k]
        layer_input = x if drop is None else drop(x)
        h, c = lstm_scan(
            layer_input,
            layer,
            LstmState(state.h[k], state.c[k]),
            keep,
            clips,
            matmul_dtype=matmul_dtype,
            workspace=workspace,
            all_cells=workspace is None,
        )
        x = add_skip(options, k, h, layer_input)  # as in bilm-tf, the input is added after dropout
        outputs.append(x)
        hs.append(h)
        cs.append(c)
    return outputs, hs, cs


class LstmLayer(nn.Module):
    """The parameters of one layer, with the directions stacked: index 0 is forward, 1 is backward.

    options: the biLM's sizes.
    projection: whether the layer has a projection.
    """

    def __init__(self, options: BiLMOptions, projection: bool) -> None:
        super().__init__()
        dim, width = options.dim, options.projection_dim
        self.input_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.recurrent_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.bias = nn.Parameter(torch.empty(2, 4 * dim))
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if projection else None

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise as TensorFlow does by default: Glorot uniform, biases 0.

        In bilm-tf's files the weights of input and previous state are one matrix, W_0. So its size gives their bound.

        generator: source of the random numbers; None: torch's default generator.
        """
        _, width, gates = self.input_weight.shape
        bound = math.sqrt(6.0 / (2 * width + gates))
        nn.init.uniform_(self.input_weight, -bound, bound, generator=generator)
        nn.init.uniform_(self.recurrent_weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = math.sqrt(6.0 / (self.projection.shape[1] + self.projection.shape[2]))
            nn.init.uniform_(self.projection, -bound, bound, generator=generator)


class BiLstm(nn.Module):
    """The stack of LSTM layers of both directions.

    options: the biLM's sizes, clips and skip connections.
    projection: whether the cells' outputs are projected; None: only if dim != projection_dim.
    """

    def __init__(self, options: BiLMOptions, projection: bool | None = None) -> None:
        super().__init__()
        if projection is None:
            projection = options.has_lstm_projection
        self.options = options
        self.layers = nn.ModuleList(LstmLayer(options, projection) for _ in range(options.n_layers))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise all layers for training.

        generator: source of the random numbers; None: torch's default generator.
        """
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            layer.reset_parameters(generator)

    def zero_state(self, batch: int) -> LstmState:
        """Return the state before the first word, all zeros. batch: number of rows.

        The cell state is float32 at least, also if the weights are bfloat16 or float16.
        """
        weight = self.weights()[0].bias
        layers, dim, width = self.options.n_layers, self.options.dim, self.options.projection_dim
        cell_type = torch.promote_types(weight.dtype, torch.float32)
        cells = weight.new_zeros(layers, 2, batch, dim, dtype=cell_type)
        return LstmState(weight.new_zeros(layers, 2, batch, width), cells)

    def weights(self) -> list[LayerWeights]:
        """Return the parameters of each layer, as `scan_layers` expects them."""
        return [
            LayerWeights(layer.input_weight, layer.recurrent_weight, layer.bias, layer.projection)
            for layer in self.layers
            if isinstance(layer, LstmLayer)
        ]

    def scan(
        self, x: Tensor, state: LstmState, keep: Tensor | None = None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Run all layers over a window of steps, as `scan_layers` does, and return what it returns.

        x: *Shape:* (2, steps, batch, projection_dim), each direction in the order in which it reads.
        state: the state before the first step.
        keep: *Shape:* (steps, batch, 1), 0 if the state is forgotten before a step, else 1; None: it never is.
        """
        return scan_layers(self.options, self.weights(), x, state, keep)

    def forward(self, x: Tensor, lengths: Tensor, state: LstmState) -> tuple[list[Tensor], LstmState]:
        """Run all layers over rows of different lengths. The backward direction starts at each row's own end.

        x: *Shape:* (batch, steps, projection_dim).
        lengths: *Shape:* (batch,), number of steps of each row, at least 1.
        state: the state to start from.

        Returns each layer's output, *Shape:* (batch, steps, 2 * projection_dim), forward and then backward, and the
        state at each row's own end. Outputs after a row's end have no meaning.
        """
        batch, steps, _ = x.shape
        reverse = reversing_index(lengths, steps)
        rows = torch.arange(batch, device=x.device)[:, None]
        both = torch.stack([x, x[rows, reverse]]).transpose(1, 2)
        outputs, hs, cs = self.scan(both, state)
        layers = []
        for output in outputs:
            forward, backward = output.transpose(1, 2)
            layers.append(torch.cat([forward, backward[rows, reverse]], 2))
        at_end = (slice(None), lengths - 1, rows[:, 0])
        return layers, LstmState(torch.stack([h[at_end] for h in hs]), torch.stack([c[at_end] for c in cs]))


def reversing_index(lengths: Tensor, steps: int) -> Tensor:
    """Return an index that reverses rows of different lengths, *Shape:* (batch, steps).

    It is length - 1 - t at position t of a row, and t at positions after the row's end.

    lengths: *Shape:* (batch,), number of steps of each row.
    steps: number of steps of the longest row, at least.
    """
    positions = torch.arange(steps, device=lengths.device)[None, :]
    reversed_ = lengths[:, None] - 1 - positions
    return torch.where(reversed_ >= 0, reversed_, positions)
