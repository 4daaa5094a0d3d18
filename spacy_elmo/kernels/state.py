"""What a bug report says of the compiled loops."""

import os
from typing import NamedTuple

from . import SWITCH, has_amx, has_avx512, has_avx512_bf16, library_path, load

INSTRUCTION_SETS = {"AVX-512": has_avx512, "AVX-512 BF16": has_avx512_bf16, "AMX": has_amx}


class State(NamedTuple):
    """The state of the compiled loops in this process.

    compiled: whether they are loaded. If they are not, torch does the same.
    reason: why they are not loaded; "" if they are.
    instruction_sets: those that the loops of the LSTMs use on this machine. If there are none, torch runs the LSTMs.
    """

    compiled: bool
    reason: str
    instruction_sets: tuple[str, ...]


def loops_state() -> State:
    """Return the state of the compiled loops, which are loaded if they were not."""
    library = load()
    if library is not None:
        return State(True, "", tuple(name for name, has in INSTRUCTION_SETS.items() if has(library)))
    if os.environ.get(SWITCH) == "0":
        reason = f"switched off by {SWITCH}=0"
    elif library_path() is None:
        reason = "not built: no C compiler worked, or these are sources that pip has not built"
    else:
        reason = "built from other sources, or damaged"
    return State(False, reason, ())
