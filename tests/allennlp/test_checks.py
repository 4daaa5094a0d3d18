"""The checks, called as the modules call them. What they refuse is also tested through the modules."""

from pathlib import Path

import pytest
import torch
from elmo_cases import SENTENCES

from spacy_elmo import batch_to_ids
from spacy_elmo.allennlp.elmo_bilm import ElmoBiLM, checked_inputs
from spacy_elmo.errors import ElmoError
from spacy_elmo.modules import load_bilm


def test_what_is_returned(golden: Path) -> None:
    bilm = load_bilm(golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5")
    network, ids = ElmoBiLM(bilm, ["pad", "The"]), batch_to_ids(SENTENCES)
    got, words = checked_inputs(ids.int(), None, network)
    assert got.dtype == torch.int64
    assert torch.equal(got, ids)
    assert words is None
    indices = torch.tensor([[1, 1], [1, 0]])
    got, words = checked_inputs(indices, indices, network, dims=3)
    assert got.shape == (2, 2, 50)
    assert not got.any()
    assert words is indices
    assert checked_inputs(ids[None], None, network)[0].dim() == 4
    with pytest.raises(ElmoError, match=r"Expected \(batch, tokens, 50\): make"):
        checked_inputs(ids[None], None, network, dims=3)
