"""What the scans of a layer use again in each update: their arrays, and on a GPU the calls that were recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Workspace(dict[str, Tensor]):
    """The arrays of a layer by their names. New memory would cost more time than the computation."""

    def __init__(self) -> None:
        super().__init__()
        self._recorded: dict[tuple[Any, ...], Replayed] = {}

    def array(self, name: str, like: Tensor, dtype: torch.dtype, *shape: int) -> Tensor:
        """Return an array on the device of `like`: the stored one, if its shape and type fit, else a new one."""
        stored = self.get(name)
        if stored is None or stored.shape != shape or stored.dtype != dtype:
            stored = self[name] = like.new_empty(shape, dtype=dtype)
        return stored

    def replayed(self, key: tuple[Any, ...], function: Callable[[], Any]) -> Any:
        """Return what a function of these arrays returns, as `Replayed` does. key: the places of the arrays."""
        if key not in self._recorded:
            self._recorded[key] = Replayed(function)
        return self._recorded[key]()


class Replayed:
    """A function whose kernels are recorded at its second call, and then started by one call instead of hundreds.

    At each call the function must read and write the same memory, and start the same kernels. It may not wait for the
    GPU. All later calls return the tensors of the second one, with new values: copy what must stay.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function, self._called = function, False
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> Any:
        """Compute the function."""
        if not self._called:  # compiles kernels and loads libraries, which can't be recorded
            self._called = True
            return self._function()
        if self._graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._result = self._function()
            self._graph = graph
        self._graph.replay()
        return self._result
