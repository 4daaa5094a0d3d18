"""Optional compiled loops over plain arrays. Nothing needs them: where they were not built, torch does the same."""

import ctypes
import subprocess
from functools import lru_cache
from pathlib import Path

SOURCE = Path(__file__).parent / "cell.c"
LIBRARY = Path(__file__).parent / "_cell.so"
# no -ffast-math: linked into a library it switches off denormal numbers for the whole process
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared")


def build(library: Path = LIBRARY, compiler: str = "cc") -> Path:
    """Compile for this machine's processor; written beside and renamed. Raises CalledProcessError or OSError."""
    temporary = library.with_name(library.name + ".part")
    try:
        subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(temporary), "-lm"], check=True)
        temporary.replace(library)
    finally:
        temporary.unlink(missing_ok=True)
    load.cache_clear()
    return library


@lru_cache(maxsize=1)
def load(library: Path = LIBRARY) -> "Cell | None":
    """The compiled cell, or None where it was not built."""
    return Cell(library) if library.exists() else None


class Cell:
    """One LSTM step, see cell.c. All arguments are addresses of contiguous float32 arrays; 0 stands for none."""

    def __init__(self, library: Path) -> None:
        functions = ctypes.CDLL(str(library))
        number, address, real = ctypes.c_int, ctypes.c_void_p, ctypes.c_float
        self.forward = functions.cell_forward
        self.forward.argtypes = [number, number, *[address] * 5, real]
        self.forward.restype = None
        self.backward = functions.cell_backward
        self.backward.argtypes = [number, number, *[address] * 7, real]
        self.backward.restype = None
