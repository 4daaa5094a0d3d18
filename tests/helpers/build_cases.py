"""The package built from a copy."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
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
