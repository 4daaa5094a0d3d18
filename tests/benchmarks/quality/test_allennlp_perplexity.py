"""The softmax that is put on AllenNLP's activations: on our own network's it gives the package's perplexities."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from embedded_case import TEXT, model_of

from benchmarks.quality import allennlp_perplexity
from benchmarks.quality.allennlp_perplexity import compare, main
from spacy_elmo.formats import batch_to_ids_array

MODEL = model_of()


def activations(folder: Path, sentences: Sequence[Sequence[str]]) -> Iterator[npt.NDArray[np.float64]]:
    """As the worker gives them."""
    for sentence in sentences:
        with torch.no_grad():
            output = MODEL.bilm(torch.from_numpy(batch_to_ids_array([sentence], 20)), MODEL.bilm.lstm.zero_state(1))
        yield output.layers[-1, 0, : len(sentence) + 2].double().numpy()


def test_perplexities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allennlp_perplexity, "activations", activations)
    MODEL.save(tmp_path / "files")
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    for n, sentences in ((2, 2), (100, 3)):
        ours, theirs = compare(str(tmp_path / "files"), tmp_path / "text.txt", n)
        assert ours.sentences == sentences
        assert theirs == pytest.approx(list(ours.perplexities), rel=1e-6)
        assert not np.isclose(theirs[0], theirs[1])


def test_a_bilm_without_a_softmax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MODEL.save(tmp_path / "files")
    (tmp_path / "files" / "softmax.hdf5").unlink()
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf8")
    monkeypatch.setattr("sys.argv", ["x", str(tmp_path / "files"), str(tmp_path / "text.txt")])
    with pytest.raises(SystemExit, match=r"✘ .*no softmax\.hdf5"):
        main()
