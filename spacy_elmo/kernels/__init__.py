"""Optional compiled loops over plain arrays. Nothing needs them: where they were not built, torch does the same."""

import ctypes
import hashlib
import platform
import subprocess
from functools import lru_cache
from pathlib import Path

SOURCE = Path(__file__).parent / "cell.c"
# no -ffast-math: linked into a library it switches off denormal numbers for the whole process
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared")


def library_path() -> Path:
    """Where the compiled library belongs: its name tells source, flags and processor, so that none other is loaded."""
    parts = [SOURCE.read_bytes(), " ".join(FLAGS).encode(), platform.platform().encode(), _processor()]
    return SOURCE.parent / f"_cell_{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}.so"


def _processor() -> bytes:
    """What -march=native looks at; empty where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        return b""
    return next((line for line in lines if line.startswith((b"flags", b"Features"))), b"")


def build(library: Path | None = None, compiler: str = "cc") -> Path:
    """Compile for this machine's processor; written beside and renamed. Raises CalledProcessError or OSError."""
    library = library_path() if library is None else library
    temporary = library.with_name(library.name + ".part")
    try:
        subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(temporary), "-lm"], check=True)
        temporary.replace(library)
    finally:
        temporary.unlink(missing_ok=True)
    load.cache_clear()
    return library


@lru_cache(maxsize=1)
def load() -> "Cell | None":
    """The compiled cell, or None where it was not built or can't be loaded."""
    library = library_path()
    try:
        return Cell(library) if library.exists() else None
    except OSError:
        return None


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
