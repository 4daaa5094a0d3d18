"""What C and Python must agree on."""

from __future__ import annotations

import ctypes
import re

import pytest

from spacy_elmo import kernels
from spacy_elmo.kernels import calls
from spacy_elmo.kernels import calls as constants

KINDS = {"int32_t": ctypes.c_int32, "float": ctypes.c_float}
STRUCTS = [calls.LayerCall, calls.AmxForwardCall, calls.AmxBackwardCall, calls.AmxGradientCall]


class Constant(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


def exported(library: ctypes.CDLL) -> dict[str, int]:
    library.constants.restype = ctypes.POINTER(Constant)
    found, table = {}, library.constants()
    while table[len(found)].name:
        found[table[len(found)].name.decode()] = table[len(found)].value
    return found


def test_constants(compiled: ctypes.CDLL) -> None:
    of_c = exported(compiled)
    of_python = {name: value for name, value in vars(constants).items() if name.isupper()}
    sizes = {struct.__name__: ctypes.sizeof(struct) for struct in STRUCTS}
    assert of_c == of_python | sizes


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_fields(struct: type[ctypes.Structure]) -> None:
    """Names, order and types, read from the C source."""
    (header,) = kernels.FOLDER.rglob("calls.h")
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf8"), flags=re.DOTALL)
    (body,) = re.findall(r"typedef struct \{([^{}]*)\} " + struct.__name__ + ";", text)
    fields = [re.fullmatch(r"\s*(?:const )?(\w+) (\*?)(\w+)\s*", line) for line in body.split(";")[:-1]]
    assert all(fields)
    of_c = [(f[3], ctypes.c_void_p if f[2] else KINDS[f[1]]) for f in fields if f]
    assert of_c == list(struct._fields_)


@pytest.mark.parametrize(("rows", "padded"), [(0, 0), (1, 32), (32, 32), (33, 64)])
def test_padded(rows: int, padded: int) -> None:
    assert constants.padded(rows) == padded
