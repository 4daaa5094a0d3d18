"""Memory that a process occupies, as Linux tells it."""

from pathlib import Path

STATUS = Path("/proc/self/status")


def resident_mb(peak: bool = False) -> float:
    """Of this process, in MB (10^6 bytes): now, or the most since reset_peak.

    Raises OSError where there is no /proc.
    """
    name = "VmHWM:" if peak else "VmRSS:"
    for line in STATUS.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"{STATUS} has no {name}")


def reset_peak() -> None:
    """Let the peak begin at what is occupied now."""
    Path("/proc/self/clear_refs").write_text("5")
