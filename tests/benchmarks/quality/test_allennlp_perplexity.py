"""The softmax that is put on AllenNLP's activations: on our own network's it gives the package's losses."""

from pathlib import Path

import numpy as np
import pytest
import torch
from embedded_case import model_of

from benchmarks.quality.allennlp_perplexity import losses, read_softmax
from spacy_elmo.formats import batch_to_ids_array
from spacy_elmo.pretraining.scoring import score_text


def test_losses(tmp_path: Path) -> None:
    model = model_of()
    model.save(tmp_path / "files")
    softmax = read_softmax(tmp_path / "files" / "softmax.hdf5")
    for sentence in (["the", "cat", "sat", "."], ["the", "newt"]):
        with torch.no_grad():
            output = model.bilm(torch.from_numpy(batch_to_ids_array([sentence], 20)), model.bilm.lstm.zero_state(1))
        top = output.layers[-1, 0, : len(sentence) + 2].double().numpy()
        expected = score_text(model, [sentence]).loss
        assert losses(top, model.ids(sentence).tolist(), *softmax) == pytest.approx(expected, rel=1e-6)
        assert not np.isclose(*expected)
