"""What a run knows of itself beside the state of its trainer."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError, Errors

SMOOTHING = 0.98  # weight of earlier updates in the running mean of the training loss


@dataclass
class Progress:
    """What a checkpoint holds beside the state of the trainer.

    seconds: of training and evaluation, over all resumes.
    loss: smoothed training loss, in nats.
    best: lowest held-out perplexity so far.
    stale: number of evaluations since then.
    finished: whether the run has come to its end.
    """

    seconds: float = 0.0
    loss: float = math.nan
    best: float = math.inf
    stale: int = 0
    finished: bool = False

    def add_update(self, loss: float, seconds: float) -> None:
        """Take in an update. loss: mean of its predictions, in nats. seconds: that it took."""
        self.seconds += seconds
        self.loss = loss if math.isnan(self.loss) else SMOOTHING * self.loss + (1 - SMOOTHING) * loss

    def add_evaluation(self, perplexity: float) -> None:
        """Take in the held-out perplexity of an evaluation."""
        self.stale = 0 if perplexity < self.best else self.stale + 1
        self.best = min(self.best, perplexity)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the fields as arrays by their names in a checkpoint."""
        return {f"progress/{name}": np.array(value) for name, value in vars(self).items()}

    @classmethod
    def pop_from(cls, arrays: dict[str, npt.NDArray[Any]]) -> "Progress":
        """Remove the fields from a checkpoint's arrays and return them. Raises CheckpointError if they are wrong."""
        values = {name: arrays.pop(name) for name in [*arrays] if name.startswith("progress/")}
        kinds, expected = (
            {name: (a.dtype.kind, a.shape) for name, a in each.items()} for each in (values, cls().arrays())
        )
        if kinds == expected:
            progress = cls(**{name.removeprefix("progress/"): array.item() for name, array in values.items()})
            if progress.seconds >= 0 and progress.best > 0 and progress.stale >= 0:
                return progress
        raise CheckpointError(Errors.CHECKPOINT_PARTS.format(path="the checkpoint", problems="progress"))
