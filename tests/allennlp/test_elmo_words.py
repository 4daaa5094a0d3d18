"""vocab_to_cache and word_inputs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from elmo_cases import SENTENCES, close, places

from spacy_elmo import Elmo, batch_to_ids

IDS = batch_to_ids([["a"]])


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("copies", [(4,), (2, 3)])
def test_more_dimensions(files: tuple[Path, Path], cached: bool, copies: tuple[int, ...]) -> None:
    vocabulary = ["pad", *dict.fromkeys(word for words in SENTENCES for word in words)]
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary if cached else None)
    ids, words = batch_to_ids(SENTENCES), places(SENTENCES, vocabulary)
    several = ids[(slice(None), *[None] * len(copies))].expand(2, *copies, 7, 50)
    several_words = words[(slice(None), *[None] * len(copies))].expand(2, *copies, 7)
    output = elmo(several, several_words if cached else None)
    assert output["mask"].shape == (2, *copies, 7)
    expected = elmo(ids)["elmo_representations"][0]
    got = output["elmo_representations"][0]
    assert got.shape == (2, *copies, 7, 32)
    for k in np.ndindex(*copies):
        close(got[(slice(None), *k)], expected.detach())


def test_cached_words(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = ["@@PADDING@@", "@@UNKNOWN@@", "ELMo", "The", "."]
    plain, elmo = Elmo(*files, 1, dropout=0), Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)
    ids, words = batch_to_ids(SENTENCES), places(SENTENCES, vocabulary)
    expected = plain(ids)
    encoded: list[int] = []
    encoder = type(elmo._elmo_lstm.bilm.char_cnn)
    forward = encoder.forward
    monkeypatch.setattr(encoder, "forward", lambda self, x: (encoded.append(len(x)), forward(self, x))[1])
    for given in (words, words.where(words != 1000, 1)):  # AllenNLP's vocabularies call all other words 1
        output = elmo(ids, given)
        close(output["elmo_representations"][0], expected["elmo_representations"][0].detach())
        assert torch.equal(output["mask"], expected["mask"])
    assert encoded == [2 + 5, 5, 5]  # the vocabulary once; then what is not in it
    # AllenNLP takes the places alone, too
    known = [["The", "ELMo", "."]]
    close(
        elmo(places(known, vocabulary), places(known, vocabulary))["elmo_representations"][0],
        plain(batch_to_ids(known))["elmo_representations"][0].detach(),
    )


def test_cached_words_follow_the_weights(files: tuple[Path, Path]) -> None:
    vocabulary = ["pad", "The", "."]
    known = [["The", "."]]
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)
    words, ids = places(known, vocabulary), batch_to_ids(known)
    elmo(ids, words)
    state = elmo.state_dict()
    elmo.load_state_dict({name: 2 * tensor if "char_cnn" in name else tensor for name, tensor in state.items()})
    close(elmo(ids, words)["elmo_representations"][0], elmo(ids)["elmo_representations"][0].detach())
    elmo = elmo.double()
    assert elmo(ids, words)["elmo_representations"][0].dtype == torch.float64


def test_word_inputs_without_a_vocabulary(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0)
    with pytest.warns(UserWarning, match="vocab_to_cache was not"):
        got = elmo(IDS, torch.ones(1, 1, dtype=torch.long))
    close(got["elmo_representations"][0], elmo(IDS)["elmo_representations"][0].detach())
