"""An exponential average of the weights, which is evaluated and saved in place of the weights themselves.

Polyak and Juditsky 1992 averaged the weights of stochastic approximation. Here the share of older weights falls
exponentially, as in torch.optim.swa_utils. That class copies a whole module; this one only needs its parameters.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

LARGEST_INTERVAL = 10  # updates from one averaging to the next: for en_mini an averaging takes 3 % of an update
PART_OF_HORIZON = 10  # of these intervals at least are in a horizon

Arrays = dict[str, np.ndarray]


class WeightAverage:
    """An average of weights over the latest updates of a run.

    Each averaging adds `share` of the weights' difference from the average, with share = interval / horizon. During the
    first horizon the average is the plain mean of all averaged weights, so that those of the start do not count more.

    named: the weights by their names. They are read at each averaging.
    horizon: number of updates after which a weight's share in the average has fallen to 1 / e, above 0.
    """

    def __init__(self, named: Mapping[str, Tensor], horizon: float) -> None:
        self.named, self.horizon = dict(named), horizon
        self.interval = max(1, min(LARGEST_INTERVAL, int(horizon / PART_OF_HORIZON)))
        self.averages = {name: torch.zeros_like(weight) for name, weight in self.named.items()}
        self.count = 0  # of averagings

    @torch.no_grad()
    def after_update(self, number: int) -> None:
        """Average, if this update is one of those after which it is done. number: of the update, from 1."""
        if number % self.interval:
            return
        self.count += 1
        share = min(1.0, max(1 / self.count, self.interval / self.horizon))
        torch._foreach_lerp_(list(self.averages.values()), list(self.named.values()), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the averages into the weights during a `with` block. Before the first averaging nothing is changed."""
        if not self.count:
            yield
            return
        kept = {name: weight.detach().clone() for name, weight in self.named.items()}
        try:
            self._put(self.averages)
            yield
        finally:
            self._put(kept)

    @torch.no_grad()
    def _put(self, values: Mapping[str, Tensor]) -> None:
        for name, weight in self.named.items():
            weight.copy_(values[name])

    def arrays(self) -> Arrays:
        """Return the averages by the names of the weights, and the number of averagings as "count"."""
        return {name: average.cpu().numpy().copy() for name, average in self.averages.items()} | {
            "count": np.array(self.count)
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set the averages. arrays: as `arrays` returned them."""
        for name, average in self.averages.items():
            average.copy_(torch.from_numpy(np.array(arrays[name])))
        self.count = int(arrays["count"])
