"""Memory of this process, and random texts of all planes of Unicode."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random


def resident() -> float:
    """Return the memory of this process that is in use now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak() -> float:
    """Return the most memory that this process has used so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return kib * 1024 / 1e6


def character(random: Random) -> str:
    """Draw a character: half of them from the planes' first and most used blocks, surrogates left out."""
    while True:
        code = random.randrange(0x3000) if random.random() < 0.5 else random.randrange(0x110000)
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def text(random: Random) -> str:
    """Draw a text of 0 to 10 words of 1 to 12 characters."""
    words = ("".join(character(random) for _ in range(random.randint(1, 12))) for _ in range(random.randint(0, 10)))
    return " ".join(words)
