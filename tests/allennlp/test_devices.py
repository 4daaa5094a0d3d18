"""The number of a GPU: those that torch sees are counted from 0, and -1 is the CPU."""

import pytest
import torch

from spacy_elmo.allennlp.embedder import device_of
from spacy_elmo.errors import SettingsError


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_numbers(monkeypatch: pytest.MonkeyPatch, seen: int) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: seen)
    assert device_of(-1) == torch.device("cpu")
    for number in range(seen):
        assert device_of(number) == torch.device("cuda", number)
    for number in (seen, seen + 1):
        with pytest.raises(SettingsError, match=f"the GPU {number} was asked for"):
            device_of(number)
