"""Compiled loops over plain arrays. They are optional.

If they were not built, or if the environment variable SPACY_ELMO_KERNELS is 0, torch computes the same.

setup.py builds them with the package. scan.c runs the layers of LSTMs in inference on each instruction set, amx_scan.c
on AMX, where amx_training.c trains them. The arrays of a loop are described above it in the C source, or in calls.h.
The caller passes each array through `address`, which checks it. A loop runs in the calling thread, which releases
Python's lock meanwhile.
"""

import ctypes
import hashlib
import os
import warnings
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

from ..errors import LoopsWarning, SettingsError, shown
from .calls import AmxBackwardCall, AmxForwardCall, AmxGradientCall, LayerCall, address, address_of_rows, bound

__all__ = ["address", "address_of_rows", "allows", "bound", "has", "load", "loops_state"]

FOLDER = Path(__file__).parent
SWITCH, LIMIT = "SPACY_ELMO_KERNELS", "SPACY_ELMO_ISA"
# What the loops of LSTMs are compiled for: has_NAME() of the library tells whether this machine runs them. The second
# name is that in the environment variable SPACY_ELMO_ISA, which allows those up to the one it names.
INSTRUCTION_SETS = {
    "neon": ("NEON", "neon"),
    "avx2": ("AVX2", "avx2"),
    "avx512": ("AVX-512", "avx512"),
    "avx512_bf16": ("AVX-512 BF16", "avx512"),
    "amx": ("AMX", "amx"),
}
LIMITS = ["none", "neon", "avx2", "avx512", "amx"]
# pip keeps a wheel that it has built, also one without loops, and would install it again
REBUILD = (
    "With a C compiler, python -m pip install --force-reinstall --no-deps --no-cache-dir --no-binary spacy-elmo "
    "spacy-elmo builds them; in a clone, python -m pip install -e . does."
)

_INT, _INT64, _ADDRESS, _REAL = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
_LAYER: list[type] = [ctypes.POINTER(LayerCall)]
_OF_BOTH_TYPES: dict[str, list[type]] = {
    "cell_forward": [_INT, _INT, *[_ADDRESS] * 7, _REAL],
    "cell_backward": [_INT, _INT, *[_ADDRESS] * 6, _REAL],
    "sampled_softmax": [_INT, _INT, *[_ADDRESS] * 7],
}
SIGNATURES: dict[str, list[type]] = {
    **{f"{name}_{kind}": types for name, types in _OF_BOTH_TYPES.items() for kind in ("float32", "bfloat16")},
    "cell_step": [_INT, _INT, *[_ADDRESS] * 5, _REAL],
    "convolve": [*[_INT] * 6, *[_ADDRESS] * 5],
    "convolve_maxima": [*[_INT] * 6, *[_ADDRESS] * 4],
    "convolve_backward": [*[_INT] * 6, *[_ADDRESS] * 4],
    "fill_rows": [*[_INT] * 4, *[_ADDRESS] * 4],
    "adam_rows": [_INT64, _INT, *[_ADDRESS] * 5, *[_REAL] * 5],
    "adagrad_rows": [_INT64, _INT, *[_ADDRESS] * 4, *[_REAL] * 2],
}

# the library has these functions only if it was compiled for AMX
AMX_SIGNATURES: dict[str, list[type]] = {
    "amx_pack": [*[_INT] * 4, *[_ADDRESS] * 2],
    "amx_pack_transposed": [*[_INT] * 2, *[_ADDRESS] * 2],
    "amx_pack_gates_transposed": [*[_INT] * 2, *[_ADDRESS] * 2],
    "amx_pack_left": [_INT64, _INT, *[_ADDRESS] * 2],
    "amx_layer": _LAYER,
    "amx_weight_gradient": [ctypes.POINTER(AmxGradientCall)],
    "amx_forward": [ctypes.POINTER(AmxForwardCall)],
    "amx_backward": [ctypes.POINTER(AmxBackwardCall)],
}


def fingerprint(folder: Path = FOLDER) -> str:
    """The hash of all C sources in a folder. setup.py writes the same hash into the library."""
    names = sorted(path.as_posix() for pattern in ("*.c", "*.h", "*.inc") for path in folder.glob(pattern))
    parts = [Path(name).read_bytes().replace(b"\r\n", b"\n") for name in names]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def library_path(folder: Path = FOLDER) -> Path | None:
    """The path of the library, or None. setup.py gives it the last of Python's suffixes, which all versions share."""
    paths = [folder / f"_loops{suffix}" for suffix in reversed(EXTENSION_SUFFIXES)]
    return next((path for path in paths if path.exists()), None)


def open_library(path: Path) -> ctypes.CDLL | None:
    """The library with the signatures of its functions; None if it can't be loaded, or is of other sources."""
    try:
        library = ctypes.CDLL(str(path))
        library.fingerprint.restype = ctypes.c_char_p
        if library.fingerprint().decode() != fingerprint(path.parent):
            return None
        signatures = dict(SIGNATURES)
        for name in INSTRUCTION_SETS:
            if getattr(library, f"has_{name}")():
                signatures |= AMX_SIGNATURES if name == "amx" else {f"{name}_layer": _LAYER}
        for name, types in signatures.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, None
    except (OSError, AttributeError):
        return None
    return library


@lru_cache(maxsize=1)
def load() -> ctypes.CDLL | None:
    """The library of compiled loops, or None if torch must do their work. It is loaded once; warns if it can't be."""
    if os.environ.get(SWITCH) == "0":
        return None
    path = library_path()
    library = None if path is None else open_library(path)
    if library is None:
        warnings.warn(
            f"spacy_elmo's compiled loops were {_why_missing()}. torch does their work, several times slower. "
            f"{REBUILD}",
            LoopsWarning,
            stacklevel=2,
        )
    return library


def _why_missing() -> str:
    path = library_path()  # there is none without a compiler; it is of other sources after `git pull` in a clone
    return "not built" if path is None else f"built from other sources, or are damaged: {path}"


def allows(name: str) -> bool:
    """Whether SPACY_ELMO_ISA allows an instruction set. Raises SettingsError if it has an unknown value."""
    limit = os.environ.get(LIMIT) or LIMITS[-1]
    if limit not in LIMITS:
        raise SettingsError(f"{LIMIT} is {shown(limit)}. Expected one of {', '.join(LIMITS)}, or nothing.")
    return LIMITS.index(INSTRUCTION_SETS[name][1]) <= LIMITS.index(limit)


def has(name: str, library: ctypes.CDLL | None) -> bool:
    """Whether the library has loops for an instruction set, this process may run them, and `allows` allows them."""
    return allows(name) and library is not None and bool(getattr(library, f"has_{name}")())


class State(NamedTuple):
    """What a bug report says of the compiled loops in this process.

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
        return State(True, "", tuple(title for name, (title, _) in INSTRUCTION_SETS.items() if has(name, library)))
    is_off = os.environ.get(SWITCH) == "0"
    return State(False, f"switched off by {SWITCH}=0" if is_off else f"{_why_missing()}. {REBUILD}", ())
