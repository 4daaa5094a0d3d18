"""The error if there is not enough memory."""

import numpy as np
import pytest
import torch

from spacy_elmo.errors import SettingsError
from spacy_elmo.pretraining.config import TrainingSettings
from spacy_elmo.pretraining.trainer import enough_memory

SETTINGS = TrainingSettings(streams=12, steps=1000)


@pytest.mark.parametrize("allocate", [lambda n: np.empty(n, np.int8), lambda n: torch.empty(n, dtype=torch.int8)])
def test_arrays_that_are_too_large(allocate: object) -> None:
    message = (
        r"there is not enough memory \(.*\)\. Lower training\.streams, which is 12, training\.steps, which is 1,000, "
    )
    with pytest.raises(SettingsError, match=message), enough_memory(SETTINGS):
        allocate(2**62)  # type: ignore[operator]


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="shapes"), enough_memory(SETTINGS):
        raise RuntimeError("shapes")
