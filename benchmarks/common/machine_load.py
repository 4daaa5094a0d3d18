"""How busy a machine is with other things than what is being measured (Linux; elsewhere nothing is known)."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DISTURBED = 0.1  # cores


class Load(NamedTuple):
    """How busy the machine was while something was measured; None: not known.

    before: the load average of one minute at the start. others: cores that other processes used meanwhile; time that a
    hypervisor used for other machines counts.
    """

    before: float | None
    others: float | None

    @property
    def disturbed(self) -> bool:
        """Whether others took more than a tenth of a core."""
        return self.others is not None and self.others > DISTURBED

    def __str__(self) -> str:
        before = "?" if self.before is None else f"{self.before:.2f}"
        return f"{before}, {'?' if self.others is None else f'{self.others:.2f}'}{' disturbed' * self.disturbed}"


class LoadMeter:
    """Measures the load from its construction to `stop`.

    processes: ids of those whose work does not count as others'.
    """

    def __init__(self, processes: Sequence[int]) -> None:
        self.processes = processes
        self.before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        self.ticks = _other_ticks(processes)
        self.begin = time.perf_counter()

    def stop(self) -> Load:
        """The load since construction."""
        seconds = time.perf_counter() - self.begin
        ticks = _other_ticks(self.processes)
        if ticks is None or self.ticks is None:
            return Load(self.before, None)
        return Load(self.before, max(0.0, (ticks - self.ticks) / os.sysconf("SC_CLK_TCK") / seconds))


def _other_ticks(processes: Sequence[int]) -> int | None:
    """Clock ticks that all processors have spent, without those of some processes; None: not known.

    processes: their ids. Their threads count as theirs, and so do their children that have ended.
    """
    try:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        )
        ours = 0
        for process in processes:
            # behind the name, which may contain anything
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ours += sum(map(int, fields[11:15]))
    except (OSError, ValueError):
        return None
    return user + nice + system + irq + softirq + steal - ours
