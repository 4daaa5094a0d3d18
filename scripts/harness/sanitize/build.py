"""Builds the compiled loops with AddressSanitizer and UBSan, each time beside a copy of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from spacy_elmo import kernels

ROOT = Path(__file__).parents[3]
TILES = ROOT / "tests" / "kernels" / "emulated_tiles.h"
# -O1: each access that the source has is made and checked. -fno-sanitize-recover: a finding ends the process.
_FLAGS = [
    *("-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    *("-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-fvisibility=hidden", "-mprefer-vector-width=512"),
]
# what common.h compiles for three processors is compiled for the named one only
_CLONES = "-Dtarget_clones(newest,older,any)=target({})"
BUILDS: dict[str, list[str]] = {
    "newest": ["-include", str(TILES)],
    "x86-64-v3": [_CLONES.format("older")],
    "x86-64": [_CLONES.format('"arch=x86-64"')],
}


def build(name: str, folder: Path) -> Path:
    """Return a folder with a copy of the package whose loops are sanitized. Raises CalledProcessError.

    name: a key of BUILDS. "newest" has the loops that the machine selects itself, and emulated AMX.
    folder: a folder of its own in it is made anew.
    """
    copy = folder / name
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(ROOT / "spacy_elmo", copy / "spacy_elmo", ignore=ignored)
    target = copy / "spacy_elmo" / "kernels"
    sources = sorted(str(path) for path in target.glob("*/*.c"))
    fingerprint = f'-DFINGERPRINT="{kernels.fingerprint(target)}"'
    library = str(target / f"_loops{EXTENSION_SUFFIXES[0]}")
    subprocess.run(["gcc", *_FLAGS, fingerprint, *BUILDS[name], *sources, "-o", library, "-lm"], check=True)
    return copy


def environment(package: Path) -> dict[str, str]:
    """Return the environment in which Python imports a sanitized copy of the package.

    package: the folder that `build` returned.
    """
    names = ("libasan.so", "libubsan.so")
    found = [subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip() for name in names]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python and torch free little at their end
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that each object has its own redzones
        "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]),
    }
