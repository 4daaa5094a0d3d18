"""The bidirectional language model: character CNN and LSTM layers in two directions, with the outputs of all layers."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ElmoError
from ..formats.characters import boundary_ids
from ..formats.options import BiLMOptions
from ..formats.weights import ALIGNMENT
from .char_cnn import CharCnn
from .lstm import BiLstm
from .lstm_cell import LstmState


class BiLMOutput(NamedTuple):
    """What the biLM returns for a batch of sentences.

    layers: *Shape:* (n_layers + 1, batch, tokens + 2, width), with `<S>` and `</S>`; 0 after the end of a sentence.
    mask: *Shape:* (batch, tokens + 2), true at words and boundaries.
    state: the state at the end of each sentence. If the state at the start had more rows, they follow unchanged.
    """

    layers: Tensor
    mask: Tensor
    state: LstmState


class BiLM(nn.Module):
    """The network of Peters et al. 2018, as bilm-tf trains it and AllenNLP reads it.

    char_projection: whether there is a projection after the highway layers; None: only if n_filters != projection_dim.
    lstm_projection: whether the outputs of the LSTM cells are projected; None: only if dim != projection_dim.
    """

    def __init__(
        self, options: BiLMOptions, *, char_projection: bool | None = None, lstm_projection: bool | None = None
    ) -> None:
        super().__init__()
        self.options = options
        self.char_cnn = CharCnn(options, char_projection)
        self.lstm = BiLstm(options, lstm_projection)

    @property
    def boundary(self) -> Tensor:
        """Character ids of `<S>` and `</S>`, *Shape:* (2, characters), on the network's device."""
        # not a buffer: after to_empty() it would have no values, and load_state_dict() would not restore them
        return torch.from_numpy(boundary_ids(self.options.max_characters)).to(self.char_cnn.embedding.weight.device)

    @classmethod
    @torch.inference_mode(False)
    def from_arrays(cls, options: BiLMOptions, arrays: Mapping[str, np.ndarray]) -> "BiLM":
        """Return a network with the weights that `formats.read_weights` returned. It shares their memory if it can."""
        bilm = cls(
            options,
            char_projection="char_cnn.projection.weight" in arrays,
            lstm_projection="lstm.layers.0.projection" in arrays,
        )
        bilm.load_state_dict({name: as_tensor(array) for name, array in arrays.items()}, assign=True)
        return bilm

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return copies of the weights by parameter name, as `formats.write_weights` expects them."""
        return {name: in_float32(tensor.detach()).cpu().numpy().copy() for name, tensor in self.state_dict().items()}

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise as bilm-tf does, but filters before relu with a range of ±0.1, which is twice bilm-tf's.

        With the carry bias of -2 a highway layer passes most of its input on unchanged.

        generator: None: torch's default generator.
        """
        for name, parameter in self.named_parameters():
            of_encoder, shape = name.startswith("char_cnn."), parameter.shape
            if name.endswith("bias"):
                nn.init.constant_(parameter, -2.0 if ".carry." in name else 0.0)
            elif ".embedding." in name:
                nn.init.uniform_(parameter, -1.0, 1.0, generator=generator)
                parameter.data[0].zero_()  # the mask
            elif ".convolutions." in name and self.options.activation == "relu":
                nn.init.uniform_(parameter, -0.1, 0.1, generator=generator)
            elif of_encoder:
                nn.init.normal_(parameter, 0.0, math.sqrt(1.0 / shape[1:].numel()), generator=generator)
            else:
                # Glorot, TensorFlow's default. In bilm-tf's files the weights of input and state are one matrix, W_0
                inputs = shape[1] if name.endswith("projection") else 2 * shape[1]
                bound = math.sqrt(6.0 / (inputs + shape[2]))
                nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def train_from_top(self, parts: int) -> None:
        """Let training change only the topmost parts: each LSTM layer is one, the character encoder the lowest."""
        for number, part in enumerate([*reversed(self.lstm.layers), self.char_cnn]):
            part.requires_grad_(number < parts)

    def forward(self, character_ids: Tensor, state: LstmState | None = None) -> BiLMOutput:
        """Compute all layers of sentences.

        character_ids: *Shape:* (batch, tokens, characters), as `batch_to_ids` returns them; 0 after a sentence's end.
        state: the state to start from; None: zeros. As in AllenNLP it may be that of another number of sentences:
            additional rows are returned unchanged, and sentences without a row start from zeros.

        Raises ElmoError inside torch.jit.trace.
        """
        x, lengths = self.encode(character_ids)
        return self.read(x, lengths, state)

    def encode(self, character_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return layer 0 with `<S>` and `</S>`, *Shape:* (batch, tokens + 2, projection_dim), and numbers of words."""
        lengths = (character_ids > 0).any(2).sum(1)
        index, ids = self._with_boundaries(character_ids, lengths)
        with _own_precision(ids):
            return self.char_cnn(ids)[index], lengths

    def read(self, x: Tensor, lengths: Tensor, state: LstmState | None = None) -> BiLMOutput:
        """Compute all layers of sentences as `forward` does, from what `encode` returns."""
        # a trace would take the outputs of compiled loops for constants
        if torch.jit.is_tracing():  # type: ignore[attr-defined]  # torch documents it, but does not export it
            raise ElmoError(
                "torch.jit.trace can't record the biLM: the graph would give wrong vectors. Use the module "
                "itself, or torch.compile."
            )
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
        """Return each position's index into the distinct words, which begin with `<S>` and `</S>`, and their ids."""
        batch, tokens, characters = character_ids.shape
        words, inverse = torch.unique(character_ids.reshape(-1, characters), dim=0, return_inverse=True)
        index = torch.ones(batch, tokens + 2, dtype=torch.int64, device=lengths.device)
        index[:, 0] = 0
        index[:, 1:-1] = inverse.view(batch, tokens) + 2
        index[torch.arange(batch, device=lengths.device), lengths + 1] = 1
        return index, torch.cat([self.boundary, words])


def _own_precision(tensor: Tensor) -> torch.autocast:
    """Return a context without autocast, which would round the LSTM's state at each step."""
    return torch.autocast(tensor.device.type, enabled=False)


def in_float32(tensor: Tensor) -> Tensor:
    """Return weights in float32 if they are in float16; others stay as they are."""
    return tensor.float() if tensor.dtype == torch.float16 else tensor


def as_tensor(array: np.ndarray) -> Tensor:
    """Return a float32 tensor that shares the array's memory if torch could have allocated it, else a copy."""
    own = array.dtype == np.float32 and array.flags.c_contiguous and array.flags.writeable
    if own and array.ctypes.data % ALIGNMENT == 0:
        return torch.from_numpy(array)
    native = np.asarray(array, dtype=np.float32, order="C")  # torch reads no other byte order, and no negative strides
    return torch.tensor(native, dtype=torch.float32, device="cpu")
