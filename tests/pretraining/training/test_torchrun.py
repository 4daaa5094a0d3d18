"""The environment variables that torchrun sets."""

import pytest

from spacy_elmo.errors import ProcessError
from spacy_elmo.pretraining.distributed import environment, local_rank, processes

GOOD = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def put(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str | None]) -> None:
    for name in GOOD:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        if value is not None:
            monkeypatch.setenv(name, value)


def test_a_process_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, GOOD)
    assert (environment(), local_rank()) == ((3, 4), 1)
    put(monkeypatch, GOOD | {"LOCAL_RANK": None})
    assert local_rank() == 0


@pytest.mark.parametrize("variables", [{}, {"RANK": "1"}, {"RANK": "x", "WORLD_SIZE": "1", "LOCAL_RANK": "x"}])
def test_a_process_alone(variables: dict[str, str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, variables)
    assert (environment(), local_rank()) == ((0, 1), 0)
    with processes("cpu") as group:
        assert (group.rank, group.size) == (0, 1)


@pytest.mark.parametrize(
    ("name", "value", "got", "expected"),
    [
        ("WORLD_SIZE", "garbage", "'garbage'", "a whole number from 1 to 2147483647"),
        ("WORLD_SIZE", "", "''", "a whole number"),
        ("WORLD_SIZE", "0", "'0'", "a whole number"),
        ("WORLD_SIZE", "-2", "'-2'", "a whole number"),
        ("WORLD_SIZE", "9" * 5_000, "'999", "a whole number"),
        ("RANK", "x", "'x'", "a whole number from 0 to 3"),
        ("RANK", "4", "'4'", "a whole number from 0 to 3"),
        ("RANK", None, "not set", "a whole number from 0 to 3"),
        ("LOCAL_RANK", "x", "'x'", "a whole number from 0 to 3"),
        ("MASTER_ADDR", None, "not set", "the address"),
        ("MASTER_ADDR", "", "''", "the address"),
        ("MASTER_PORT", None, "not set", "a whole number from 1 to 65535"),
        ("MASTER_PORT", "x", "'x'", "a whole number from 1 to 65535"),
        ("MASTER_PORT", "65536", "'65536'", "a whole number from 1 to 65535"),
    ],
)
def test_variables_that_torchrun_would_not_set(
    name: str, value: str | None, got: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(monkeypatch, GOOD | {name: value})
    with pytest.raises(ProcessError) as caught, processes("cpu"):
        pytest.fail("not reached")
    assert f"{name} is {got}" in str(caught.value)
    assert f"Expected {expected}" in str(caught.value)
    assert "torchrun sets it" in str(caught.value)
