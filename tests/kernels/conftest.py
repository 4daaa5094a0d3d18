"""A copy of the project to build."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from build_cases import FILES, ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what an installation is made of, without what was built here."""
    folder = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.hdf5", "*.pyc")
    shutil.copytree(ROOT / "spacy_elmo", folder / "spacy_elmo", ignore=ignored)
    for name in (*FILES, "MANIFEST.in"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder)
    return folder
