"""elmo._elmo_lstm._elmo_lstm, by which AllenNLP's users reach the LSTMs."""

import copy
from pathlib import Path

import pytest
import torch
from elmo_cases import SENTENCES, close, places
from torch import Tensor

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.errors import SettingsError

IDS = batch_to_ids(SENTENCES)


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


def run(elmo: Elmo) -> Tensor:
    representation: Tensor = elmo(IDS)["elmo_representations"][0]
    return representation.detach()


def test_its_parameters_are_those_of_the_lstms(files: tuple[Path, Path]) -> None:
    """AllenNLP's issue 1644: cached words stay as they are, while the LSTMs are trained."""
    vocabulary = ["pad", *dict.fromkeys(word for words in SENTENCES for word in words)]
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)
    for parameter in elmo._elmo_lstm._elmo_lstm.parameters():
        parameter.requires_grad = True
    trained = {name for name, p in elmo.named_parameters() if p.requires_grad and "scalar_mix" not in name}
    assert trained == {name for name, _ in elmo.named_parameters() if ".lstm." in name}
    assert trained
    elmo(IDS, places(SENTENCES, vocabulary))["elmo_representations"][0].sum().backward()
    gradients = {name for name, p in elmo.named_parameters() if p.grad is not None and "scalar_mix" not in name}
    assert gradients == trained


def test_none_resets_the_state(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0, stateful=True)
    first, second = run(elmo), run(elmo)
    assert not torch.allclose(first, second, atol=1e-4)
    elmo._elmo_lstm._elmo_lstm._states = None
    assert torch.equal(run(elmo), first)
    with pytest.raises(SettingsError, match=r"value of type tuple. Expected None"):
        elmo._elmo_lstm._elmo_lstm._states = (first, second)
    assert torch.equal(run(elmo), second)


def test_the_state_is_laid_out_as_in_allennlp(files: tuple[Path, Path]) -> None:
    """The last LSTM layer's h: the forward half is the output at the last word, </S>, less the skip connection."""
    elmo = Elmo(*files, 1, dropout=0, stateful=True)
    lstm = elmo._elmo_lstm._elmo_lstm
    assert lstm._states is None
    layers = elmo._elmo_lstm(IDS)["activations"]
    assert lstm._states is not None
    h, c = lstm._states
    options = elmo._elmo_lstm.bilm.options
    assert h.shape == (2, 2, options.width)
    assert c.shape == (2, 2, 2 * options.dim)
    half = options.width // 2
    for row, words in enumerate(SENTENCES):
        close(h[0, row, :half], layers[1][row, len(words) + 1, :half].detach())
        close(h[0, row, half:], layers[1][row, 0, half:].detach())
        close(h[1, row, :half], (layers[2] - layers[1])[row, len(words) + 1, :half].detach())


def test_stateful_can_be_changed(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0)
    elmo._elmo_lstm._elmo_lstm.stateful = True
    first, second = run(elmo), run(elmo)
    assert not torch.allclose(first, second, atol=1e-4)
    elmo._elmo_lstm._elmo_lstm.stateful = False
    assert not elmo._elmo_lstm.stateful
    assert torch.equal(run(elmo), first)


def test_a_copy_has_lstms_of_its_own(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0, stateful=True)
    other = copy.deepcopy(elmo)
    elmo._elmo_lstm._elmo_lstm.requires_grad_(True)
    run(elmo)
    assert other._elmo_lstm._elmo_lstm._states is None
    assert not any(p.requires_grad for p in other._elmo_lstm.parameters())
    assert list(elmo.state_dict()) == list(other.state_dict())
