"""The package built from a copy."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")


def build(project: Path, kind: str, **environment: str) -> Path:
    """As pip does it: `kind` is wheel or sdist; returns the one file that came out."""
    code = f"from setuptools import build_meta; build_meta.build_{kind}('dist')"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (made,) = (project / "dist").iterdir()
    return made


def unpacked(wheel: Path) -> Path:
    """The folder kernels of an unpacked wheel."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(wheel.with_suffix(""))
    return wheel.with_suffix("") / "spacy_elmo" / "kernels"


def run_tests_on(kernels: Path, selection: str, files: Iterable[str]) -> None:
    """Run tests on a built package, in its own process. They must pass, and none may be skipped.

    kernels: what `unpacked` returned.
    selection: pytest's -k.
    files: of the tests, from the folder `tests`.
    """
    built = kernels.parents[1]
    options = ["-q", "-k", selection, "-p", "no:cacheprovider", "-c", str(ROOT / "setup.cfg"), "--rootdir", str(ROOT)]
    options += ["-o", f"pythonpath={built} {ROOT / 'tests' / 'helpers'}"]  # the package that was built comes first
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(str(ROOT / "tests" / name) for name in files)],
        cwd=built,
        env={**os.environ, "PYTHONPATH": str(built)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    closing = result.stdout.splitlines()[-1]
    assert " passed" in closing
    assert "skipped" not in closing, result.stdout
