"""The message of a DocBin: lists are counted before they take memory."""

from __future__ import annotations

import zlib

import pytest
import srsly
from srsly.msgpack.exceptions import UnpackException

from spacy_elmo.formats import docbin as docbin_message
from spacy_elmo.formats.docbin import read_parts, read_user_data


@pytest.mark.parametrize("name", ["flags", "user_data"])
def test_lists_are_counted_before_they_are_read(name: str) -> None:
    part = srsly.msgpack_dumps(name) + b"\xdd\xff\xff\xff\xff"
    lengths = srsly.msgpack_dumps("lengths") + srsly.msgpack_dumps(bytes(8))
    with pytest.raises(ValueError, match=f"4,294,967,295 {name}, which are not as many as docs"):
        read_parts(zlib.compress(b"\x82" + lengths + part), 1 << 20, user_data=True)
    with pytest.raises(ValueError, match=f"no lengths of docs before the {name}"):
        read_parts(zlib.compress(b"\x82" + part + lengths), 1 << 20, user_data=True)


def test_user_data() -> None:
    data = {("._.", "mood", 3, None): ["a", 1.5, None, {"b": (True,)}], "x": b"y"}
    assert read_user_data(srsly.msgpack_dumps(data)) == srsly.msgpack_loads(srsly.msgpack_dumps(data), use_list=False)


def test_user_data_of_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = srsly.msgpack_dumps({"x": [[]] * 1000})  # 1 for each list, 1,000 inside, and 2 of the dict and its entry
    monkeypatch.setattr(docbin_message, "_VALUES", 2003)
    assert len(read_user_data(packed)["x"]) == 1000
    monkeypatch.setattr(docbin_message, "_VALUES", 2002)
    with pytest.raises(ValueError, match="user data of more than 2,002 values"):
        read_user_data(packed)


def test_a_list_is_refused_before_it_has_its_size() -> None:
    with pytest.raises(ValueError, match="exceeds max_array_len"):
        read_user_data(b"\x81\xa1x\xdd" + (200_000_000).to_bytes(4) + b"\x90" * 1000)


@pytest.mark.parametrize("packed", [b"", b"\x90", b"\xc0", b"\x81\xa1x", b"\xc1"])
def test_damaged_user_data(packed: bytes) -> None:
    with pytest.raises((ValueError, UnpackException)):
        read_user_data(packed)
