"""The LSTMs of a biLM, under the name and with the attributes that AllenNLP gives them."""

from typing import Protocol

from torch import Tensor, nn

from ..errors import Errors, SettingsError
from ..modules.lstm.state import LstmState


class StateOwner(Protocol):
    """What carries the state of the LSTMs: an ElmoBiLM."""

    stateful: bool
    _state: LstmState | None

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Set the state to zero."""


class ElmoLstmView(nn.Module):
    """What AllenNLP's users write as `elmo._elmo_lstm._elmo_lstm`: its parameters are those of the LSTMs alone.

    lstm: the LSTMs.
    owner: carries their state from batch to batch.
    """

    def __init__(self, lstm: nn.Module, owner: StateOwner) -> None:
        super().__init__()
        self.lstm = lstm
        self._owner = (owner,)  # in a tuple, because torch would take the owner for a part of this module

    @property
    def stateful(self) -> bool:
        """Whether row i of a batch starts from the state after row i of the previous batch."""
        return self._owner[0].stateful

    @stateful.setter
    def stateful(self, value: bool) -> None:
        self._owner[0].stateful = bool(value)

    @property
    def _states(self) -> tuple[Tensor, Tensor] | None:
        """The carried state as AllenNLP lays it out: h and c, *Shape:* (layers, batch, 2 * width) each; or None."""
        state = self._owner[0]._state
        return None if state is None else (_side_by_side(state.h), _side_by_side(state.c))

    @_states.setter
    def _states(self, value: None) -> None:
        if value is not None:
            raise SettingsError(Errors.ELMO_STATES.format(got=type(value).__name__))
        self.reset_states()

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Let the next batch start from the zero state. The mask is that of `ElmoBiLM.reset_states`."""
        self._owner[0].reset_states(mask)


def _side_by_side(state: Tensor) -> Tensor:
    """Join the directions. state: *Shape:* (layers, 2, batch, width)."""
    return state.transpose(1, 2).flatten(2)
