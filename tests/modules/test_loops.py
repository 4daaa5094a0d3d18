"""Whether Triton's kernels are used: on a GPU for which they compile, and with a warning if they do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from spacy_elmo.modules import loops as triton_trial
from spacy_elmo.modules.loops import triton_kernels as kernels


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    triton_trial.triton_kernels.cache_clear()
    yield monkeypatch
    triton_trial.triton_kernels.cache_clear()


@pytest.mark.parametrize(
    ("device", "triton", "capability"),
    [("cpu", object(), (9, 0)), ("cuda:0", None, (9, 0)), ("cuda:0", object(), (6, 1))],
)
def test_no_kernels_on_the_cpu_without_triton_or_on_an_old_gpu(
    device: str, triton: object, capability: tuple[int, int], fresh: pytest.MonkeyPatch
) -> None:
    fresh.setattr(triton_trial, "find_spec", lambda _: triton)
    fresh.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert kernels(torch.device(device)) is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="the GPU 9 is asked for, which must not be there")
def test_a_warning_if_they_do_not_compile(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(triton_trial, "find_spec", lambda _: object())
    fresh.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    with pytest.warns(RuntimeWarning, match="Triton can't compile for cuda:9, so torch computes the same more slowly"):
        assert kernels(torch.device("cuda", 9)) is None
    assert kernels(torch.device("cuda", 9)) is None  # told once
