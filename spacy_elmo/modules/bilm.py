"""The bidirectional language model: character CNN, two stacks of LSTMs, all layers."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..formats.characters import boundary_ids
from ..formats.options import BiLMOptions
from ..formats.weights.hdf5 import ALIGNMENT
from .char_cnn import CharCnn
from .lstm.layers import BiLstm, LstmState


class BiLMOutput(NamedTuple):
    """layers: *Shape:* (n_layers + 1, batch, tokens + 2, width), with `<S>` and `</S>`; 0 behind a row's end.
    mask: *Shape:* (batch, tokens + 2), true at words and boundaries. state: at each row's end, of all rows known.
    """

    layers: Tensor
    mask: Tensor
    state: LstmState


class BiLM(nn.Module):
    """The network of Peters et al. 2018, as bilm-tf trains and AllenNLP reads it.

    options: sizes; char_projection, lstm_projection: see CharCnn and BiLstm.
    """

    boundary: Tensor

    def __init__(
        self, options: BiLMOptions, *, char_projection: bool | None = None, lstm_projection: bool | None = None
    ) -> None:
        super().__init__()
        self.options = options
        self.char_cnn = CharCnn(options, char_projection)
        self.lstm = BiLstm(options, lstm_projection)
        self.register_buffer("boundary", torch.from_numpy(boundary_ids(options.max_characters)), persistent=False)

    @classmethod
    @torch.inference_mode(False)
    def from_arrays(cls, options: BiLMOptions, arrays: Mapping[str, np.ndarray]) -> "BiLM":
        """A network with the weights that formats.read_weights returned.

        options: the sizes.
        arrays: the weights by parameter name; the network shares their memory if torch could have made them.
        """
        bilm = cls(
            options,
            char_projection="char_cnn.projection.weight" in arrays,
            lstm_projection="lstm.layers.0.projection" in arrays,
        )
        bilm.load_state_dict({name: as_tensor(array) for name, array in arrays.items()}, assign=True)
        return bilm

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Copies of the weights, as formats.write_weights takes them."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.state_dict().items()}

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise for training."""
        self.char_cnn.reset_parameters(generator)
        self.lstm.reset_parameters(generator)

    def train_from_top(self, parts: int) -> None:
        """Let training reach the topmost parts alone.

        parts: how many: LSTM layers, and below them the character encoder.
        """
        for number, part in enumerate([*reversed(self.lstm.layers), self.char_cnn]):
            part.requires_grad_(number < parts)

    def forward(self, character_ids: Tensor, state: LstmState | None = None) -> BiLMOutput:
        """Run sentences.

        character_ids: *Shape:* (batch, tokens, characters), 0 behind a sentence's end (see batch_to_ids).
        state: rows to start from; None: the zero state. Where it has more rows than the batch, the further rows are
            handed on unchanged; where it has fewer, the further sentences start from zero (AllenNLP's carried state).
        """
        lengths = (character_ids > 0).any(2).sum(1)
        index, ids = self._with_boundaries(character_ids, lengths)
        with _own_precision(ids):
            x = self.char_cnn(ids)[index]
        return self.read(x, lengths, state)

    def read(self, x: Tensor, lengths: Tensor, state: LstmState | None = None) -> BiLMOutput:
        """Run sentences from layer 0 on.

        x: *Shape:* (batch, tokens + 2, projection_dim), the character encoder's vectors, `<S>` before a sentence's
            words and `</S>` behind them.
        lengths: *Shape:* (batch,), words of each sentence; state: see forward.
        """
        batch, positions, _ = x.shape
        start = self.lstm.zero_state(batch)
        if state is not None:
            start = state.rows(batch, start)
        with _own_precision(x):
            layers, end = self.lstm(x, lengths + 2, start)
        if state is not None:
            end = end.followed_by(state)
        mask = torch.arange(positions, device=lengths.device)[None] < (lengths + 2)[:, None]
        stacked = torch.stack([torch.cat([x, x], 2), *layers])
        return BiLMOutput(stacked * mask[None, :, :, None], mask, end)

    def _with_boundaries(self, character_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Index (batch, tokens + 2) into distinct words' ids (words, characters): `<S>`, `</S>`, then the others."""
        batch, tokens, characters = character_ids.shape
        words, inverse = torch.unique(character_ids.reshape(-1, characters), dim=0, return_inverse=True)
        index = torch.ones(batch, tokens + 2, dtype=torch.int64, device=lengths.device)
        index[:, 0] = 0
        index[:, 1:-1] = inverse.view(batch, tokens) + 2
        index[torch.arange(batch, device=lengths.device), lengths + 1] = 1
        return index, torch.cat([self.boundary, words])


def _own_precision(tensor: Tensor) -> torch.autocast:
    """Leave autocast: the LSTM's state must keep its precision over the steps."""
    return torch.autocast(tensor.device.type, enabled=False)


def as_tensor(array: np.ndarray) -> Tensor:
    """The array's own memory if it could be torch's, else a float32 copy.

    array: of any shape.
    """
    own = array.dtype == np.float32 and array.flags.c_contiguous and array.flags.writeable
    if own and array.ctypes.data % ALIGNMENT == 0:
        return torch.from_numpy(array)
    return torch.tensor(array, dtype=torch.float32, device="cpu")
