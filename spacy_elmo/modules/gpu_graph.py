"""Calls that a GPU repeats by itself: a CUDA graph of a function's kernels."""

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

Result = TypeVar("Result")


class Replayed(Generic[Result]):
    """A function whose kernels are recorded at its second call, and then started by one call instead of hundreds.

    At each call the function must read and write the same memory, and start the same kernels. It may not wait for the
    GPU. All later calls return the tensors of the second one, with new values: copy what must stay.

    function: without arguments.
    """

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function, self._called = function, False
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> Result:
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
