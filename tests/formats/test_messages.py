"""Messages of srsly are read as srsly reads them; anything that srsly does not write is refused."""

import gc
import pickle
from typing import Any

import numpy as np
import pytest
import srsly

from spacy_elmo.formats.messages import read_message


def read(data: object) -> Any:
    return read_message(data, longest_list=100, longest_map=100)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.zeros((0, 3), np.float16),
        np.array(True),
        np.arange(3, dtype=">f8"),
        np.float32(1.5),
        np.arange(12, dtype=np.int64)[::3],
    ],
)
def test_arrays(array: Any) -> None:
    message = srsly.msgpack_dumps({"a": [array]})
    np.testing.assert_array_equal(read(message)["a"][0], srsly.msgpack_loads(message)["a"][0], strict=True)


def test_everything_else() -> None:
    value = {"é": [1, -(2**63), 2**64 - 1, 1.5, None, True, "x", b"y", {}], "": {"b": {"c": []}}}
    assert read(srsly.msgpack_dumps(value)) == value


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        raise AssertionError("it was unpickled")


def described(**changes: object) -> bytes:
    fields = {"nd": True, "type": "<f4", "kind": b"", "shape": [2], "data": bytes(8)} | changes
    return srsly.msgpack_dumps({"a": {name.encode(): value for name, value in fields.items()}})


OTHER_FIELDS: dict[str, list[object]] = {
    "type": ["<f3", "(1000000000,)f4", "<f4\n", "(", b"<f4", "|V8"],
    "shape": [[3], [-1], [2**62, 2**62, 0, 5], [True, 2], [2.0], "2", None, [1] * 40 + [2]],
    "data": ["x" * 8, None],
    "nd": [1, False],
    "more": [1],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "|O", "data": pickle.dumps(Evil)[:8]},
        {"type": "|O", "kind": b"O", "data": pickle.dumps(Evil)},
        {"type": [["a", "<f4"]], "kind": b"V"},
        *({name: value} for name, values in OTHER_FIELDS.items() for value in values),
    ],
)
def test_other_descriptions_of_arrays(changes: dict[str, object]) -> None:
    assert read(described())["a"].tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"array|key"):
        read(described(**changes))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x81",
        b"\xc1",
        b"\x01\x02",  # two values
        b"\x81\x01\x02",  # a number as key
        b"\x81\xc4\x01a\x02",  # bytes as key
        b"\x82\xa1a\x01\xa1a\x02",  # a key twice
        b"\xa1\xff",  # no UTF-8
        b"\xd4\x01a",  # an extension
        b"\xd6\xff\0\0\0\0",  # a time
        b"\xc7\x00\x05",  # an empty extension
        b"\x81\xc4\x07complex\xc3",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff" * 1000,  # lists of 4 billion values
        b"\xdf\xff\xff\xff\xff" * 1000,
        b"\xc6\xff\xff\xff\xff",
        b"\xdc\x00\x65" + b"\x01" * 101,  # a list of 101
        b"\x81\x91\xa1a\x01",  # a list as key
        None,
        "text",
    ],
)
def test_damaged_messages(data: object) -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match=r".") as error:
        read(data)
    assert len(str(error.value)) < 300
    assert gc.isenabled()  # srsly leaves the garbage collector off
