"""What the benchmarks' command lines refuse."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.common.arguments import add_common, count, counts, output, parser_of, some_of, text_file


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


def test_help_prints_the_description_as_it_is_and_the_defaults() -> None:
    parser = parser_of("First line.\n\n    an example\n")
    add_common(parser, "size", "precisions", "threads")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    parser.add_argument("--links", type=float, nargs="*", default=[1.0, 2.0], help="speeds")
    parser.add_argument("--json", help="file (default: none)")
    parser.add_argument("--quick", action="store_true", help="less")
    text = " ".join(parser.format_help().split())
    assert "\n\n    an example\n" in parser.format_help()
    for part in ("original)", "float32,bfloat16)", "2)", "0)", "1.0 2.0)", "none)"):
        assert f"(default: {part}" in text
    assert text.count("(default") == 6


def test_common_arguments() -> None:
    parser = parser_of(None)
    add_common(parser, "size", "precisions", "threads")
    args = parser.parse_args(["--size", "mini", "--precisions", "bfloat16"])
    assert (args.size, args.precisions, args.threads) == ("mini", ["bfloat16"], 2)
    alone = parser_of(None)
    add_common(alone, "threads")
    assert vars(alone.parse_args([])) == {"threads": 2}
