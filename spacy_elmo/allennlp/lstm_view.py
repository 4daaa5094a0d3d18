"""The LSTMs of a biLM, under the name and with the attributes that AllenNLP gives them."""

from torch import Tensor, nn

from ..errors import Errors, SettingsError
from .carried import CarriedState, Carrying


class ElmoLstmView(Carrying, nn.Module):
    """What AllenNLP's users write as `elmo._elmo_lstm._elmo_lstm`: its parameters are those of the LSTMs alone.

    lstm: the LSTMs.
    carried: their state from batch to batch.
    """

    def __init__(self, lstm: nn.Module, carried: CarriedState) -> None:
        super().__init__()
        self.lstm, self._carried = lstm, carried

    @property
    def _states(self) -> tuple[Tensor, Tensor] | None:
        """The carried state as AllenNLP lays it out: h and c, *Shape:* (layers, batch, 2 * width) each; or None."""
        state = self._carried.state
        return None if state is None else (_side_by_side(state.h), _side_by_side(state.c))

    @_states.setter
    def _states(self, value: None) -> None:
        if value is not None:
            raise SettingsError(Errors.ELMO_STATES.format(got=type(value).__name__))
        self._carried.reset()

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Let the next batch start from the zero state. The mask is that of `ElmoBiLM.reset_states`."""
        self._carried.reset(mask)


def _side_by_side(state: Tensor) -> Tensor:
    """Join the directions. state: *Shape:* (layers, 2, batch, width)."""
    return state.transpose(1, 2).flatten(2)
