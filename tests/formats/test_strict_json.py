"""JSON is parsed as Python does; what would be read wrongly, or ends in another error, is a ValueError."""

import json
import os
from pathlib import Path

import pytest

from spacy_elmo.formats.strict_json import parse_json, read_json


@pytest.mark.parametrize("text", ['{"a": [1, -2.5e3, null, true, "\\ud83d\\ude00"], "b": {}}', "0", '"x"'])
def test_json(text: str) -> None:
    assert (
        parse_json(text)
        == parse_json(text.encode())
        == parse_json("\ufeff".encode() + text.encode())
        == json.loads(text)
    )


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"\xff", '{"a": 1}'.encode("utf-16"), '{"a": 1}\0'),
        *('{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 1}}'),
        *("NaN", "[Infinity]", "-Infinity", "1e999", "-1e999", "1" * 5000),
    ],
)
def test_what_is_refused(raw: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(raw)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_deep_nesting(text: str) -> None:
    with pytest.raises(ValueError, match="nested"):
        parse_json(text)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[1, 2]", encoding="utf8")
    assert read_json(path, 6) == [1, 2]
    with pytest.raises(ValueError, match="more than 5 bytes"):
        read_json(path, 5)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="special file"):
        read_json(tmp_path / "pipe", 6)
    with pytest.raises(OSError, match="nothing"):
        read_json(tmp_path / "nothing", 6)
