"""Where the time of our training step goes: torch's profiler over the step on one thread."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from spacy_elmo import kernels

LOOP = "loop::"
SHOWN = 6  # of the operations between
PARTS = {
    "matrices": ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"),
    "lstm": (f"{LOOP}amx_",),  # matrix multiplications and cell are one loop there
    "cell": (f"{LOOP}cell_",),
    "softmax": (f"{LOOP}sampled_softmax",),
    "characters": (f"{LOOP}convolve",),
    "updates": (f"{LOOP}adam_rows", f"{LOOP}adagrad_rows", "aten::_fused_adam"),
}


class Serial:
    """An executor that does everything at once, in the calling thread, which alone the profiler sees."""

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        """As an executor's."""
        return map(function, *arguments)

    def shutdown(self) -> None:
        """Nothing to end."""


class _Watched:
    """The compiled loops, each call a row of the profile."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.library, name)

        def call(*arguments: object) -> Any:
            with record_function(LOOP + name):
                return function(*arguments)

        return call


def shares(step: Callable[[], object], times: int) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of the time by part; "between": torch's operations around them (copies, additions, gathers); "python":
    what is left, the interpreter's. And those of the largest operations between.
    """
    library = kernels.load()
    load = kernels.load
    if library is not None:
        kernels.load = lambda: _Watched(library)  # type: ignore[assignment]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        step()
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            begin = time.perf_counter()
            for _ in range(times):
                step()
            seconds = time.perf_counter() - begin
    finally:
        kernels.load = load
        torch.set_num_threads(threads)
    found: Counter[str] = Counter()
    between: Counter[str] = Counter()
    for event in profiler.key_averages():
        share = event.self_cpu_time_total / 1e6 / seconds
        part = next((part for part, names in PARTS.items() if event.key.startswith(names)), "between")
        found[part] += share
        if part == "between":
            between[event.key] += share
    by_part = {part: found[part] for part in (*PARTS, "between")}
    return {**by_part, "python": 1 - found.total()}, dict(between.most_common(SHOWN))
