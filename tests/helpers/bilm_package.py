"""A package that brings a biLM, as pip installs it: a module with the files, and a dist-info folder."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

import pytest


def install_bilm(
    monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, source: Path | None, value: str = "{module}:folder"
) -> Path:
    """Install a package whose biLM has a name, for one test; return the folder of its files.

    folder: of the test; its name makes that of the module, since a name is imported only once.
    source: a folder whose files are copied into the package.
    value: of the entry point.
    """
    module = f"{name}_of_{folder.name}"
    package, about = folder / "site" / module, folder / "site" / f"{module}-1.0.dist-info"
    for made in (package, about):
        made.mkdir(parents=True)
    if source is not None:
        shutil.copytree(source, package, dirs_exist_ok=True)
    code = "from pathlib import Path\n\ndef folder():\n    return Path(__file__).parent\n"
    (package / "__init__.py").write_text(code, encoding="utf8")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf8")
    point = f"[spacy_elmo_bilms]\n{name} = {value.format(module=module)}\n"
    (about / "entry_points.txt").write_text(point, encoding="utf8")
    monkeypatch.syspath_prepend(str(folder / "site"))
    return package


def uninstall_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no package with an entry point."""
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: metadata.EntryPoints().select(**wanted))
