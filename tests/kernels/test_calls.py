"""What the compiled loops are given is checked, whatever Python's -O leaves out."""

from __future__ import annotations

import ast
import ctypes
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from spacy_elmo import kernels
from spacy_elmo.errors import ElmoError, KernelError
from spacy_elmo.kernels import calls

PACKAGE = Path(kernels.__file__).parents[1]


def test_the_address_of_an_array() -> None:
    array, tensor = np.zeros((2, 3), np.float32), torch.zeros(2, 3, dtype=torch.int32)
    assert kernels.address("x", array, np.float32, (2, 3)) == array.ctypes.data
    assert kernels.address("x", array, np.float32, (None, 3)) == array.ctypes.data
    assert kernels.address("x", tensor, torch.int32, (2, 3)) == tensor.data_ptr()
    assert kernels.address("x", tensor[1], torch.int32, (3,)) == tensor.data_ptr() + 12


BAD = {
    "dtype": (torch.zeros(2, 3, dtype=torch.float64), torch.float32, (2, 3), 1),
    "dtype of numpy": (np.zeros((2, 3)), np.float32, (2, 3), 1),
    "fewer rows": (torch.zeros(1, 3), torch.float32, (2, 3), 1),
    "other columns": (torch.zeros(2, 4), torch.float32, (None, 3), 1),
    "fewer axes": (torch.zeros(6), torch.float32, (2, 3), 1),
    "not contiguous": (torch.zeros(3, 2).t(), torch.float32, (2, 3), 1),
    "numpy, not contiguous": (np.zeros((3, 2), np.float32).T, np.float32, (2, 3), 1),
    "alignment": (torch.zeros(7)[1:].view(2, 3), torch.float32, (2, 3), 64),
    "another device": (torch.zeros(2, 3, device="meta"), torch.float32, (2, 3), 1),
}


@pytest.mark.parametrize("case", BAD)
def test_what_a_loop_can_not_read_is_refused(case: str) -> None:
    array, dtype, shape, alignment = BAD[case]
    with pytest.raises(KernelError, match="was given layer 3 as") as caught:
        kernels.address("layer 3", array, dtype, shape, alignment)
    assert isinstance(caught.value, ElmoError)
    assert "float32" in str(caught.value)
    assert "SPACY_ELMO_KERNELS=0" in str(caught.value)


def test_rows_any_number_of_values_apart() -> None:
    tensor = torch.zeros(4, 6)
    assert kernels.address_of_rows("x", tensor[:, 2:5], torch.float32, (4, 3)) == tensor.data_ptr() + 8
    assert kernels.address_of_rows("x", tensor[:1].expand(9, -1), torch.float32, (9, 6)) == tensor.data_ptr()
    for bad, shape in ((tensor.t(), (6, 4)), (tensor[:, ::2], (4, 3)), (tensor[:, :2], (4, 3)), (tensor[0], (None, 6))):
        with pytest.raises(KernelError):
            kernels.address_of_rows("x", bad, torch.float32, shape)


def test_who_calls_a_loop_gets_addresses_from_the_helper_alone() -> None:
    signatures = {*kernels.SIGNATURES, *kernels.AMX_SIGNATURES}
    callers = []
    for path in {*PACKAGE.rglob("*.py")} - {*(PACKAGE / "kernels").iterdir()}:
        tree = ast.parse(path.read_text(encoding="utf8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        calls = {name for name in names if name in signatures or name.endswith(("Call", "_layer"))}
        if calls or {"loops", "LayerCall", "AmxForwardCall"} & imported:
            callers.append(path)
            assert not names & {"data_ptr", "ctypes"}, path
    assert callers


KINDS = {"int32_t": ctypes.c_int32, "float": ctypes.c_float}
STRUCTS = [calls.LayerCall, calls.AmxForwardCall, calls.AmxBackwardCall, calls.AmxGradientCall]


HEADER = (kernels.FOLDER / "calls.h").read_text(encoding="utf8")


def test_constants() -> None:
    of_c = {name: int(value) for name, value in re.findall(r"#define (\w+) (\d+) ", HEADER)}
    (gates,) = re.findall(r"enum Gate \{ (.*) \};", HEADER)
    of_c |= {name: number for number, name in enumerate(gates.split(", "))}
    assert of_c == {name: value for name, value in vars(calls).items() if name.isupper() and name[0] != "_"}


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_fields(struct: type[ctypes.Structure]) -> None:
    """Names, order and types, read from the C source."""
    text = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    (body,) = re.findall(r"typedef struct \{([^{}]*)\} " + struct.__name__ + ";", text)
    fields = [re.fullmatch(r"\s*(?:const )?(\w+) (\*?)(\w+)\s*", line) for line in body.split(";")[:-1]]
    assert all(fields)
    of_c = [(f[3], ctypes.c_void_p if f[2] else KINDS[f[1]]) for f in fields if f]
    assert of_c == list(struct._fields_)
