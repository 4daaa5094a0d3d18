"""The state that an LSTM starts from and ends with."""

from typing import NamedTuple

import torch
from torch import Tensor


class LstmState(NamedTuple):
    """The state of all layers and directions.

    h: *Shape:* (n_layers, 2, batch, projection_dim), the outputs of the layers without skip connections.
    c: *Shape:* (n_layers, 2, batch, dim), the cell states.
    """

    h: Tensor
    c: Tensor

    def rows(self, batch: int, zero: "LstmState") -> "LstmState":
        """Return the state of the first `batch` rows. If there are fewer rows, the others come from `zero`.

        batch: number of rows.
        zero: a state of `batch` rows.
        """
        return LstmState(*(torch.cat([s[:, :, :batch], z[:, :, s.shape[2] :]], 2) for s, z in zip(self, zero)))

    def followed_by(self, before: "LstmState") -> "LstmState":
        """Return this state, followed by the rows of `before` that a smaller batch did not change, as in AllenNLP.

        before: the state before the batch, of at least as many rows.
        """
        return LstmState(*(torch.cat([s, b[:, :, s.shape[2] :]], 2) for s, b in zip(self, before)))
