"""The vectors of vocab_to_cache: never those of other weights, and only as many as are needed."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from elmo_cases import close
from torch import Tensor

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.modules.char_cnn import CharCnn

VOCABULARY = ["pad", "The", "bank", "Another"]
IDS, WORDS = batch_to_ids([["The", "bank"], ["Another"]]), torch.tensor([[1, 2], [3, 0]])


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


def cached(files: tuple[Path, Path], requires_grad: bool = False) -> Elmo:
    """An Elmo that has its words' vectors."""
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=VOCABULARY)
    if requires_grad:
        elmo.requires_grad_()  # the argument is refused
    with torch.no_grad():
        elmo(IDS, WORDS)
    return elmo


def assert_like_characters(elmo: Elmo) -> None:
    with torch.no_grad():
        expected = elmo(IDS)["elmo_representations"][0]
        close(elmo(IDS, WORDS)["elmo_representations"][0], expected, 1e-4 * float(expected.abs().max()))


def scaled(elmo: Elmo, factor: float) -> dict[str, Tensor]:
    return {name: tensor * factor for name, tensor in elmo.state_dict().items()}


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda elmo: pickle.loads(pickle.dumps(elmo))])
def test_weights_loaded_again_and_again(files: tuple[Path, Path], copied: Callable[[Elmo], Elmo], assign: bool) -> None:
    elmo = copied(cached(files))
    for factor in (1.5, 2.0, 0.5, 3.0):
        elmo.load_state_dict(scaled(elmo, factor), assign=assign)
        assert_like_characters(elmo)


def test_weights_set_and_converted(files: tuple[Path, Path]) -> None:
    elmo = cached(files)
    for _ in range(3):
        for parameter in elmo.parameters():
            parameter.data = parameter.data * 1.5
        assert_like_characters(elmo)
    elmo = cached(files)
    exact = elmo(IDS, WORDS)["elmo_representations"][0]
    elmo.bfloat16().float()  # rounded on the way
    rounded = elmo(IDS, WORDS)["elmo_representations"][0]
    assert not torch.allclose(rounded, exact, rtol=0, atol=1e-5)
    close(rounded, elmo(IDS)["elmo_representations"][0].detach())


@pytest.mark.slow
def test_evaluation_between_steps_of_training(files: tuple[Path, Path]) -> None:
    elmo = cached(files, requires_grad=True)
    optimizer = torch.optim.SGD(elmo.parameters(), 0.01)
    for _ in range(3):
        elmo(IDS, WORDS)["elmo_representations"][0].square().mean().backward()
        optimizer.step()
        assert_like_characters(elmo)


def test_a_state_is_carried_in_training_too(files: tuple[Path, Path]) -> None:
    """The places of words make no difference: each batch goes on from the state after the one before."""
    elmo, plain = (Elmo(*files, 1, dropout=0, stateful=True, vocab_to_cache=words) for words in (VOCABULARY, None))
    for module in (elmo, plain):
        module.requires_grad_()
    results = []
    for _ in range(2):
        got, expected = elmo(IDS, WORDS)["elmo_representations"][0], plain(IDS)["elmo_representations"][0]
        close(got, expected.detach())
        results.append(expected.detach())
    assert not torch.allclose(*results, atol=1e-4)


def test_made_and_run_in_inference_mode(files: tuple[Path, Path]) -> None:
    with torch.inference_mode():
        assert_like_characters(cached(files))
    elmo = cached(files)
    with torch.inference_mode():
        elmo(IDS, WORDS)
    elmo(IDS, WORDS)["elmo_representations"][0].sum().backward()


def test_how_many_words_are_encoded(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    forward = CharCnn.forward
    monkeypatch.setattr(CharCnn, "forward", lambda self, ids: (encoded.append(len(ids)), forward(self, ids))[1])
    vocabulary = [*VOCABULARY, *map(str, range(1000))]
    frozen = Elmo(*files, 1, vocab_to_cache=vocabulary)
    trained = Elmo(*files, 1, vocab_to_cache=vocabulary).requires_grad_()
    for elmo in (frozen, frozen, trained, trained):
        elmo(IDS, WORDS)
    # training: <S>, </S>, the three words and the padding; not the whole vocabulary at each step
    assert encoded == [2 + 1004, 6, 6]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.int64])
def test_every_type_of_integers(files: tuple[Path, Path], dtype: torch.dtype) -> None:
    n = min(300, torch.iinfo(dtype).max + 1)
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=[f"word{k}" for k in range(n)])
    sentences = [["word1", f"word{n - 2}", f"word{n - 1}"]]
    places, ids = torch.tensor([[1, n - 2, n - 1]]), batch_to_ids(sentences)
    expected = elmo(ids)["elmo_representations"][0].detach()
    for inputs in (ids, torch.zeros_like(ids)):
        close(elmo(inputs, places.to(dtype))["elmo_representations"][0], expected)
    if torch.iinfo(dtype).max >= 261:
        close(elmo(ids.to(dtype))["elmo_representations"][0], expected)
