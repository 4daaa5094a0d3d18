"""Entry points that lead to the folder of a package's files."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from bilm_package import install_bilm, uninstall_all

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.names import find_point, folder_of

GROUP = "spacy_elmo_bilms"


@pytest.mark.parametrize("value", ["{module}", "{module}:folder"])
def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    package = install_bilm(monkeypatch, tmp_path, "some_bilm", None, value)
    point = find_point(GROUP, "some_bilm")
    assert point is not None
    assert folder_of(point) == package
    assert find_point(GROUP, "other_bilm") is None
    assert find_point("spacy_elmo_softmaxes", "some_bilm") is None
    uninstall_all(monkeypatch)
    assert find_point(GROUP, "some_bilm") is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("{module}:gone", "has no attribute 'gone'"),
        ("{module}:folder.__name__", "'str' object is not callable"),
        ("{module}.files", "files has no __init__.py"),
        ("{module}.wrong", "no such thing"),
        ("sys", "has no attribute '__file__'"),
        ("builtins:print", "NoneType"),
        ("a b c", "has no attribute"),
        ("{module}.leaves", "it ends here"),
        ("{module}.silent", "(SystemExit)"),
        ("os:curdir.strip", "'.' is not an absolute path"),
        ("{module}.long:folder", "File name too long"),
    ],
)
def test_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, reason: str) -> None:
    package = install_bilm(monkeypatch, tmp_path, "some_bilm", None)
    (package / "files").mkdir()
    (package / "wrong.py").write_text("raise OSError('no such thing')\n", encoding="utf8")
    (package / "leaves.py").write_text("raise SystemExit('it ends here')\n", encoding="utf8")
    (package / "silent.py").write_text("raise SystemExit\n", encoding="utf8")
    (package / "long.py").write_text("def folder():\n    return '/' + 'a' * 5000\n", encoding="utf8")
    value = value.format(module=package.name)
    with pytest.raises(WeightsError) as caught:
        folder_of(EntryPoint("some_bilm", value, GROUP))
    told = str(caught.value)
    assert told.startswith(f"some_bilm: the entry point {value} of the group spacy_elmo_bilms gives no folder (")
    assert reason in told
    assert "Install the package again, or uninstall it." in told
