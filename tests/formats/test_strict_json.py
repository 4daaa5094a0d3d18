"""JSON is read as Python does; what would be read wrongly, or ends in another error, is a ValueError."""

import json
import os
from pathlib import Path

import pytest

from spacy_elmo.formats.strict_json import read_json


@pytest.mark.parametrize("text", ['{"a": [1, -2.5e3, null, true, "\\ud83d\\ude00"], "b": {}}', "0", '"x"'])
def test_json(tmp_path: Path, text: str) -> None:
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "a.json").write_text(text, encoding=encoding)
        assert read_json(tmp_path / "a.json", 100) == json.loads(text)


REFUSED = {
    "Expecting|Extra data": [b"", b"{", b'{"a": 1}\0', b"[1, 2]\xef\xbb\xbf"],
    "can't decode": [b"\xff", '{"a": 1}'.encode("utf-16")],
    "occurs twice": [b'{"a": 1, "a": 2}', b'{"b": {"a": 1, "a": 1}}'],
    "finite number": [b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b"-1e999"],
    "limit": [b"1" * 5000],
    "nested": [b"[" * 100_000, b'{"a":' * 100_000],
    "more than 1,000,000 bytes": [b" " * 1_000_001],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_refused(tmp_path: Path, reason: str) -> None:
    for raw in REFUSED[reason]:
        (tmp_path / "a.json").write_bytes(raw)
        with pytest.raises(ValueError, match=reason):
            read_json(tmp_path / "a.json", 1_000_000)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="special file"):
        read_json(tmp_path / "pipe", 6)
    with pytest.raises(OSError, match="nothing"):
        read_json(tmp_path / "nothing", 6)
