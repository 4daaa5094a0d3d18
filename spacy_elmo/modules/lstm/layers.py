"""The stack of LSTM layers of both directions, with projection, clips and skip connections."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...formats.options import BiLMOptions
from .cell import Clips, add_skip
from .scan import Workspace, lstm_scan


class LstmState(NamedTuple):
    """State of all layers and directions.

    h: *Shape:* (n_layers, 2, batch, projection_dim); c: *Shape:* (n_layers, 2, batch, dim).
    """

    h: Tensor
    c: Tensor

    def rows(self, batch: int, zero: "LstmState") -> "LstmState":
        """The state of the first `batch` rows, where there are fewer filled up from `zero`, of `batch` rows."""
        return LstmState(*(torch.cat([s[:, :, :batch], z[:, :, s.shape[2] :]], 2) for s, z in zip(self, zero)))

    def followed_by(self, before: "LstmState") -> "LstmState":
        """This state, then the further rows of `before` unchanged, as a smaller batch leaves them (AllenNLP)."""
        return LstmState(*(torch.cat([s, b[:, :, s.shape[2] :]], 2) for s, b in zip(self, before)))


class LayerWeights(NamedTuple):
    """One layer's parameters, of one direction or both; shapes: see lstm_scan. projection: None where there is none."""

    input_weight: Tensor
    recurrent_weight: Tensor
    bias: Tensor
    projection: Tensor | None

    @property
    def matrices(self) -> list[Tensor]:
        """All but the bias, in this order."""
        return [matrix for matrix in (self.input_weight, self.recurrent_weight, self.projection) if matrix is not None]


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
    """Run a stack of layers over steps, each direction in its own reading order.

    options: clips and skip connections.
    layers: the weights of each layer, for these directions.
    x: *Shape:* (directions, steps, batch, projection_dim), the input of the first layer.
    state: before the first step, of the same directions.
    keep, matmul_dtype: as in lstm_scan.
    drop: dropout, for the input of each layer; None: no dropout.
    workspaces: for each layer its workspace, as in lstm_scan.
    Returns three lists, an item a layer: the layer's output (with its skip connection) and the state h, both
    (directions, steps, batch, projection_dim), and the state c (directions, steps, batch, dim), after each step; with
    workspaces c after the last step alone, (directions, 1, batch, dim).
    """
    clips = Clips.of(options)
    outputs, hs, cs = [], [], []
    for k, layer in enumerate(layers):
        workspace = None if workspaces is None else workspaces[k]
        given = x if drop is None else drop(x)
        h, c = lstm_scan(given, *layer, state.h[k], state.c[k], keep, clips, matmul_dtype, workspace, workspace is None)
        x = add_skip(options, k, h, given)  # with dropout it is the input after dropout that is added, as in bilm-tf
        outputs.append(x)
        hs.append(h)
        cs.append(c)
    return outputs, hs, cs


class LstmLayer(nn.Module):
    """One layer's parameters, as in the files but with the directions stacked: index 0 forward, 1 backward."""

    def __init__(self, options: BiLMOptions, projection: bool) -> None:
        super().__init__()
        dim, width = options.dim, options.projection_dim
        self.input_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.recurrent_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.bias = nn.Parameter(torch.empty(2, 4 * dim))
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if projection else None

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """TensorFlow's default: Glorot uniform over the whole of W_0 and over W_P_0; biases 0."""
        _, width, gates = self.input_weight.shape
        bound = math.sqrt(6.0 / (2 * width + gates))
        nn.init.uniform_(self.input_weight, -bound, bound, generator=generator)
        nn.init.uniform_(self.recurrent_weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = math.sqrt(6.0 / (self.projection.shape[1] + self.projection.shape[2]))
            nn.init.uniform_(self.projection, -bound, bound, generator=generator)


class BiLstm(nn.Module):
    """n_layers of both directions.

    projection: whether the cells' outputs are projected; None: only where dim != projection_dim.
    """

    def __init__(self, options: BiLMOptions, projection: bool | None = None) -> None:
        super().__init__()
        if projection is None:
            projection = options.has_lstm_projection
        self.options = options
        self.layers = nn.ModuleList(LstmLayer(options, projection) for _ in range(options.n_layers))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise all layers."""
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            layer.reset_parameters(generator)

    def zero_state(self, batch: int) -> LstmState:
        """The state before anything was read."""
        weight = self.get_parameter("layers.0.bias")
        layers, dim, width = self.options.n_layers, self.options.dim, self.options.projection_dim
        return LstmState(weight.new_zeros(layers, 2, batch, width), weight.new_zeros(layers, 2, batch, dim))

    def weights(self) -> list[LayerWeights]:
        """Each layer's parameters, as scan_layers takes them."""
        return [
            LayerWeights(layer.input_weight, layer.recurrent_weight, layer.bias, layer.projection)
            for layer in self.layers
            if isinstance(layer, LstmLayer)
        ]

    def scan(
        self, x: Tensor, state: LstmState, keep: Tensor | None = None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Run the stack over steps; see scan_layers."""
        return scan_layers(self.options, self.weights(), x, state, keep)

    def forward(self, x: Tensor, lengths: Tensor, state: LstmState) -> tuple[list[Tensor], LstmState]:
        """Run over rows of different lengths, the backward direction from each row's own end.

        x: *Shape:* (batch, steps, projection_dim); lengths: *Shape:* (batch,).
        Returns each layer's output (batch, steps, 2 * projection_dim), forward and backward side by side (what lies
        behind a row's length means nothing), and the state at each row's own end; a row of length 0 keeps its state.
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
        last = (lengths - 1).clamp(min=0)
        read = (lengths > 0)[None, None, :, None]
        h = torch.stack([h[:, last, rows[:, 0]] for h in hs])
        c = torch.stack([c[:, last, rows[:, 0]] for c in cs])
        return layers, LstmState(torch.where(read, h, state.h), torch.where(read, c, state.c))


def reversing_index(lengths: Tensor, steps: int) -> Tensor:
    """*Shape:* (batch, steps): position t of a row reads length - 1 - t; positions behind the end read themselves."""
    positions = torch.arange(steps, device=lengths.device)[None, :]
    reversed_ = lengths[:, None] - 1 - positions
    return torch.where(reversed_ >= 0, reversed_, positions)
