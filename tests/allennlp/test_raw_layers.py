"""The layers without a mix, as AllenNLP's _ElmoBiLm gives them."""

from pathlib import Path

import pytest
import torch
from elmo_cases import SENTENCES, close, places
from golden_files import GOLDEN_NAMES, read_golden

from spacy_elmo import Elmo, _ElmoBiLm, batch_to_ids
from spacy_elmo.errors import ElmoError, SettingsError


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_layers(golden: Path, name: str) -> None:
    """With the vectors of <S> and </S> around the words: row 0 and the row after the last word."""
    reference = read_golden(golden / name)
    network = _ElmoBiLm(golden / name / "options.json", golden / name / "weights.hdf5")
    for _ in range(2):
        output = network(batch_to_ids(reference.sentences))
        assert len(output["activations"]) == network.num_layers
        for row, words in enumerate(reference.sentences):
            assert output["mask"][row].sum() == len(words) + 2
            for layer, values in enumerate(output["activations"]):
                assert values.shape[2] == network.get_output_dim()
                close(values[row, 1 : len(words) + 1], reference.expected[f"zero_state/{row}"][layer])


def test_carried_state(golden: Path) -> None:
    reference = read_golden(golden / "random_a")
    network = _ElmoBiLm(golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5", stateful=True)
    for number, batch in enumerate(reference.carry_batches):
        layers = network(batch_to_ids(batch))["activations"]
        for row, words in enumerate(batch):
            close(layers[2][row, 1 : len(words) + 1], reference.expected[f"carried_state/{number}/{row}"][2])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_training(files: tuple[Path, Path], requires_grad: bool) -> None:
    network = _ElmoBiLm(*files, requires_grad=requires_grad)
    assert {parameter.requires_grad for parameter in network.parameters()} == {requires_grad}
    assert network(batch_to_ids(SENTENCES))["activations"][2].requires_grad is requires_grad


def test_cached_words(files: tuple[Path, Path]) -> None:
    vocabulary = ["pad", "The", "ELMo"]
    network, plain = _ElmoBiLm(*files, vocab_to_cache=vocabulary), _ElmoBiLm(*files, vocab_to_cache=[])
    ids, words = batch_to_ids(SENTENCES), places(SENTENCES, vocabulary)
    close(network(ids, words)["activations"][2], plain(ids)["activations"][2].detach())
    with pytest.warns(UserWarning, match="vocab_to_cache was not"):
        plain(ids, words)
    with pytest.raises(SettingsError, match="requires_grad is true together with vocab_to_cache"):
        _ElmoBiLm(*files, True, vocabulary)


def test_in_place_of_files(files: tuple[Path, Path]) -> None:
    ids = batch_to_ids(SENTENCES)
    made = Elmo(None, None, 1, dropout=0, module=_ElmoBiLm(*files))
    assert torch.equal(made(ids)["elmo_representations"][0], Elmo(*files, 1, dropout=0)(ids)["elmo_representations"][0])
    assert _ElmoBiLm(None, None).get_output_dim() == 256  # the embedded biLM


def test_refusals(files: tuple[Path, Path]) -> None:
    network, ids = _ElmoBiLm(*files), batch_to_ids(SENTENCES)
    with pytest.raises(ElmoError, match=r"shape \(1, 2, 7, 50\)\. Expected \(batch, tokens, 50\): make it"):
        network(ids[None])
    with pytest.raises(ElmoError, match=r"shape \(7, 50\)\. Expected \(batch, tokens, 50\)"):
        network(ids[0])
    with pytest.raises(ElmoError, match="inputs is list"):
        network(SENTENCES)
    with pytest.raises(ElmoError, match="has a word after padding"):
        network(ids.flip(1))
