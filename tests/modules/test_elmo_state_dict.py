"""What AllenNLP's Elmo saved loads; so does our own."""

import io
from pathlib import Path

import pytest
import torch
from allennlp_state import allennlp_state
from golden_files import GOLDEN_NAMES, datasets_in
from torch import nn

from spacy_elmo import Elmo, batch_to_ids

SENTENCES = [["We", "sat", "on", "the", "bank", "."], ["naïve", "東京"]]


def files(golden: Path, name: str) -> tuple[Path, Path]:
    return golden / name / "options.json", golden / name / "weights.hdf5"


def scrambled(golden: Path, name: str, outputs: int = 2) -> Elmo:
    """An Elmo of the right sizes with other weights."""
    elmo = Elmo(*files(golden, name), outputs, dropout=0.0)
    with torch.no_grad():
        for parameter in elmo.parameters():
            parameter.add_(torch.rand_like(parameter))
    return elmo


@pytest.mark.parametrize("name", GOLDEN_NAMES)
@pytest.mark.parametrize("prefix", ["", "embedder.elmo."])
def test_allennlps_state(golden: Path, name: str, prefix: str) -> None:
    layers = 3 if name == "random_a" else 4
    mixes = [[0.5, -1.0, 2.0, 0.1][:layers], [0.0] * layers]
    theirs = allennlp_state(datasets_in(golden / name / "weights.hdf5"), mixes, gamma=1.5)
    elmo = scrambled(golden, name)
    module = nn.ModuleDict({"embedder": nn.ModuleDict({"elmo": elmo})}) if prefix else elmo
    state = {prefix + key: tensor for key, tensor in theirs.items()}
    keys = list(state)
    result = module.load_state_dict(state)
    assert not result.missing_keys
    assert not result.unexpected_keys
    assert list(state) == keys  # the user's dict is as it was
    expected = Elmo(*files(golden, name), 1, dropout=0.0, scalar_mix_parameters=mixes[0])
    ids = batch_to_ids(SENTENCES)
    with torch.no_grad():
        got, plain = elmo(ids)["elmo_representations"], expected(ids)["elmo_representations"][0]
    torch.testing.assert_close(got[0], 1.5 * plain, rtol=0, atol=1e-5)
    uniform = Elmo(*files(golden, name), 1, dropout=0.0)(ids)["elmo_representations"][0]
    torch.testing.assert_close(got[1], 1.5 * uniform, rtol=0, atol=1e-5)


def test_with_their_word_embedding_and_boundary_buffers(golden: Path) -> None:
    theirs = allennlp_state(datasets_in(golden / "random_a" / "weights.hdf5"), [[0.0] * 3] * 2)
    theirs["_elmo_lstm._word_embedding.weight"] = torch.zeros(7, 16)
    theirs["_elmo_lstm._token_embedder._beginning_of_sentence_characters"] = torch.zeros(50)
    theirs["_elmo_lstm._token_embedder._end_of_sentence_characters"] = torch.zeros(50)
    elmo = Elmo(*files(golden, "random_a"), 2, vocab_to_cache=["pad", "We", "bank"])
    elmo.load_state_dict(theirs)


def test_what_does_not_fit_is_named(golden: Path) -> None:
    theirs = allennlp_state(datasets_in(golden / "random_a" / "weights.hdf5"), [[0.0] * 3] * 2)
    elmo = scrambled(golden, "random_a")
    missing = {key: tensor for key, tensor in theirs.items() if "char_conv_1.bias" not in key}
    with pytest.raises(RuntimeError, match=r"Missing key.*_elmo_lstm\.bilm\.char_cnn\.convolutions\.1\.bias"):
        elmo.load_state_dict(missing)
    one_direction = {key: tensor for key, tensor in theirs.items() if "backward_layer_0.input" not in key}
    with pytest.raises(RuntimeError, match=r"forward_layer_0\.input_linearity\.weight"):
        elmo.load_state_dict(one_direction)
    with pytest.raises(RuntimeError, match="size mismatch"):
        elmo.load_state_dict(theirs | {"scalar_mix_0.scalar_parameters.3": torch.zeros(1)})
    with pytest.raises(RuntimeError, match=r"Unexpected key.*other"):
        elmo.load_state_dict(theirs | {"other": torch.zeros(1)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        scrambled(golden, "random_b").load_state_dict(theirs, strict=False)


def test_our_own_state(golden: Path) -> None:
    elmo, other = scrambled(golden, "random_a"), scrambled(golden, "random_a")
    file = io.BytesIO()
    torch.save(elmo.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    ids = batch_to_ids(SENTENCES)
    for a, b in zip(elmo(ids)["elmo_representations"], other(ids)["elmo_representations"]):
        assert torch.equal(a, b)
