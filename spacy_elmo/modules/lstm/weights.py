"""The weights of an LSTM layer, as the files have them."""

from typing import NamedTuple

from torch import Tensor


class LayerWeights(NamedTuple):
    """The parameters of one layer.

    The shapes are those of both directions. Those of one direction have no first axis, or one of size 1.

    input_weight: *Shape:* (2, projection_dim, 4 dim).
    recurrent_weight: *Shape:* (2, projection_dim, 4 dim), weights of the previous state.
    bias: *Shape:* (2, 4 dim), without the forget bias.
    projection: *Shape:* (2, dim, projection_dim); None: there is none.
    """

    input_weight: Tensor
    recurrent_weight: Tensor
    bias: Tensor
    projection: Tensor | None

    @property
    def matrices(self) -> list[Tensor]:
        """Input weight, recurrent weight and, if there is one, the projection."""
        return [matrix for matrix in (self.input_weight, self.recurrent_weight, self.projection) if matrix is not None]
