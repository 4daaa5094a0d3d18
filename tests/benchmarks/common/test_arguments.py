"""What the benchmarks' command lines refuse."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.common.arguments import count, counts, output, some_of, text_file


def test_numbers() -> None:
    assert count("12") == 12
    assert counts("1,32") == [1, 32]
    for text in ("0", "-1", "x", "1.5", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="no whole number of 1 or more"):
            count(text)
    with pytest.raises(argparse.ArgumentTypeError, match="'0' is no whole number"):
        counts("1,0")


def test_names() -> None:
    assert some_of(("a", "b"))("b,a") == ["b", "a"]
    with pytest.raises(argparse.ArgumentTypeError, match="unknown: 'c'; known: a, b"):
        some_of(("a", "b"))("a,c")


def test_output(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.json"
    assert output(".json")(str(path)) == path
    assert path.parent.is_dir()
    assert not path.exists()
    with pytest.raises(argparse.ArgumentTypeError, match=r"is no name of a \.png file"):
        output(".png")(str(path))
    with pytest.raises(argparse.ArgumentTypeError, match=r"is no name of a \.json file"):
        output(".json")(str(tmp_path))
    path.write_text("{}")
    with pytest.raises(argparse.ArgumentTypeError, match=r"x\.json"):
        output(".png")(str(path / "y.png"))


def test_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xff\xfe\x00")
    for bad in (path, tmp_path, tmp_path / "none"):
        with pytest.raises(argparse.ArgumentTypeError, match="can't be read as UTF-8 text"):
            text_file(str(bad))
    path.write_text("hello", encoding="utf-8")
    assert text_file(str(path)) == path
