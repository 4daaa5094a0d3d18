"""Bad options.json files of every kind, and atomic writing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spacy_elmo.errors import OptionsError
from spacy_elmo.formats import BiLMOptions, read_options, write_options
from spacy_elmo.formats.options import MAX_OPTIONS_BYTES

FILES = {
    "empty": b"",
    "cut": b'{"lstm": {',
    "not JSON": b"\x89HDF\r\n\x1a\n",
    "deep": b"[" * 100_000,
    "deep object": b'{"lstm":' * 100_000,
    "duplicate key": b'{"lstm": {}, "lstm": {}}',
    "long integer": b'{"lstm": ' + b"9" * 5_000 + b"}",
    "huge": b" " * (MAX_OPTIONS_BYTES + 1),
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_bad_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_bytes(content)
    with pytest.raises(OptionsError) as error:
        read_options(path)
    assert str(error.value).startswith(f"{path}: ")


def test_nan_and_nesting_in_a_value(options: BiLMOptions, tmp_path: Path) -> None:
    valid = options.to_dict()
    path = tmp_path / "options.json"
    for value, part in [("NaN", "nan"), ("1e999", "inf"), ("[" * 400 + "]" * 400, "[[[")]:
        path.write_text(
            json.dumps(valid | {"lstm": valid["lstm"] | {"cell_clip": 77}}).replace("77", value), encoding="utf-8"
        )
        with pytest.raises(OptionsError, match=r"lstm\.cell_clip is ") as error:
            read_options(path)
        assert part in str(error.value)


def test_missing_file_folder_and_special_file(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match="no such file"):
        read_options(tmp_path / "options.json")
    with pytest.raises(OptionsError, match="a folder"):
        read_options(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OptionsError, match="special file"):
            read_options(tmp_path / "pipe")


def test_byte_order_mark(options: BiLMOptions, tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text(json.dumps(options.to_dict()), encoding="utf-8-sig")
    assert read_options(tmp_path / "options.json") == options


def test_write_and_read(options: BiLMOptions, tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_text("an earlier file", encoding="utf-8")
    write_options(path, options)
    assert read_options(path) == options
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_keeps_the_earlier_file(
    options: BiLMOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "options.json"
    path.write_text("an earlier file", encoding="utf-8")

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", refuse)
        with pytest.raises(OptionsError, match="No space left"):
            write_options(path, options)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(OptionsError, match="No space left"):
            write_options(path, options)
    assert path.read_text(encoding="utf-8") == "an earlier file"
    assert list(tmp_path.iterdir()) == [path]


def test_write_without_a_folder(options: BiLMOptions, tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match=r"folder .* does not exist"):
        write_options(tmp_path / "no" / "options.json", options)
    with pytest.raises(OptionsError, match="it is a folder"):
        write_options(tmp_path, options)
