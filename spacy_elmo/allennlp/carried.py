"""The LSTMs' state between two batches, which a network and an embedder may share."""

from dataclasses import dataclass

from torch import Tensor

from ..errors import ElmoError, Errors
from ..modules.lstm.state import LstmState


@dataclass
class CarriedState:
    """What the next batch starts from.

    stateful: whether row i of a batch starts from the state after row i of the previous batch.
    state: the state after the previous batch; None: the zero state.
    """

    stateful: bool
    state: LstmState | None = None

    def on_device_of(self, zero: LstmState) -> LstmState:
        """Return the state on the device and in the type of the zero state, which is returned if there is none.

        zero: the zero state of any number of rows.
        """
        if self.state is None:
            return zero
        return LstmState(*(part.to(other) for part, other in zip(self.state, zero)))

    def reset(self, mask: Tensor | None = None) -> None:
        """Let the next batch start from the zero state.

        mask: *Shape:* (batch,), bool, true at the rows that start from it; the others go on. None: all rows do.

        Raises ElmoError if the mask is no tensor, or if there is not a state for each of its rows.
        """
        if mask is None:
            self.state = None
            return
        rows = 0 if self.state is None else self.state.h.shape[2]
        if not isinstance(mask, Tensor) or mask.shape != (rows,):
            got = f"shape {tuple(mask.shape)}" if isinstance(mask, Tensor) else f"type {type(mask).__name__}"
            raise ElmoError(Errors.ELMO_RESET.format(got=got, expected=(rows,)))
        if self.state is not None:
            places = mask.bool()[:, None]
            self.state = LstmState(*(part.masked_fill(places.to(part.device), 0.0) for part in self.state))


class Carrying:
    """Mixin of what runs batches from a carried state, `_carried`."""

    _carried: CarriedState

    @property
    def stateful(self) -> bool:
        """Whether row i of a batch starts from the state after row i of the previous batch."""
        return self._carried.stateful

    @stateful.setter
    def stateful(self, value: bool) -> None:
        self._carried.stateful = bool(value)
