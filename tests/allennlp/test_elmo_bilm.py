"""The layers without a mix, as AllenNLP's _ElmoBiLm gives them."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from elmo_cases import IDS, SENTENCES, close, mix, places
from golden_files import GOLDEN_NAMES, read_golden
from torch import Tensor

from spacy_elmo import Elmo, _ElmoBiLm, _ElmoCharacterEncoder, batch_to_ids
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


def test_inner_parts(golden: Path, files: tuple[Path, Path]) -> None:
    """Those that public scripts use; layer 0 has the vector of the word twice."""
    reference, network = read_golden(golden / "random_a"), _ElmoBiLm(*files)
    for encoder in (network._token_embedder, _ElmoCharacterEncoder(*files)):
        output = encoder(batch_to_ids(reference.sentences))
        for row, words in enumerate(reference.sentences):
            assert output["mask"][row].sum() == len(words) + 2
            vectors = output["token_embedding"][row, 1 : len(words) + 1]
            close(torch.cat([vectors, vectors], 1), reference.expected[f"zero_state/{row}"][0])
        assert encoder.get_output_dim() == vectors.shape[1]
    sizes = json.loads(files[0].read_text())["lstm"]
    inner = network._elmo_lstm
    assert (inner.hidden_size, inner.input_size) == (sizes["projection_dim"], sizes["projection_dim"])
    assert (inner.cell_size, inner.num_layers) == (sizes["dim"], sizes["n_layers"])
    assert not network._requires_grad


def test_cached_words(files: tuple[Path, Path]) -> None:
    vocabulary = ["pad", "The", "ELMo"]
    network, plain = _ElmoBiLm(*files, vocab_to_cache=vocabulary), _ElmoBiLm(*files, vocab_to_cache=[])
    ids, words = batch_to_ids(SENTENCES), places(SENTENCES, vocabulary)
    close(network(ids, words)["activations"][2], plain(ids)["activations"][2])
    with pytest.warns(UserWarning, match="vocab_to_cache was not"):
        plain(ids, words)
    with pytest.raises(SettingsError, match="requires_grad is true together with vocab_to_cache"):
        _ElmoBiLm(*files, True, vocabulary)
    assert all(parameter.requires_grad for parameter in _ElmoBiLm(*files, True).parameters())
    made = Elmo(None, None, 1, dropout=0, module=network)
    assert torch.equal(mix(made, ids), mix(Elmo(*files, 1, dropout=0), ids))
    assert _ElmoBiLm(None, None).get_output_dim() == 512  # the embedded biLM


def test_refusals(files: tuple[Path, Path]) -> None:
    with pytest.raises(ElmoError, match=r"shape \(1, 2, 7, 50\)\. Expected \(batch, tokens, 50\): make it"):
        _ElmoBiLm(*files)(batch_to_ids(SENTENCES)[None])


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
    expected = mix(elmo, ids)
    got = output["elmo_representations"][0]
    assert got.shape == (2, *copies, 7, 32)
    for k in np.ndindex(*copies):
        close(got[(slice(None), *k)], expected)


def test_which_words_are_cached(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
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
        close(output["elmo_representations"][0], expected["elmo_representations"][0])
        assert torch.equal(output["mask"], expected["mask"])
    assert encoded == [2 + 5, 5, 5]  # the vocabulary once; then what is not in it
    mix(elmo.requires_grad_(), ids, words)  # training: what is there, not the vocabulary
    assert encoded[3:] == [11]
    # AllenNLP takes the places alone, too
    known = [["The", "ELMo", "."]]
    close(mix(elmo, places(known, vocabulary), places(known, vocabulary)), mix(plain, batch_to_ids(known)).detach())


VOCABULARY = ["pad", "The", "bank", "Another"]
IDS_OF_WORDS, WORDS = batch_to_ids([["The", "bank"], ["Another"]]), torch.tensor([[1, 2], [3, 0]])


def cached(files: tuple[Path, Path], requires_grad: bool = False) -> Elmo:
    """An Elmo that has its words' vectors."""
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=VOCABULARY)
    if requires_grad:
        elmo.requires_grad_()  # the argument is refused
    with torch.no_grad():
        elmo(IDS_OF_WORDS, WORDS)
    return elmo


def assert_like_characters(elmo: Elmo) -> None:
    with torch.no_grad():
        expected = mix(elmo, IDS_OF_WORDS)
        close(mix(elmo, IDS_OF_WORDS, WORDS), expected, 1e-4 * float(expected.abs().max()))


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
    with torch.inference_mode():
        assert_like_characters(cached(files))
    elmo = cached(files)
    exact = mix(elmo, IDS_OF_WORDS, WORDS)
    elmo.bfloat16().float()  # rounded on the way
    rounded = mix(elmo, IDS_OF_WORDS, WORDS)
    assert not torch.allclose(rounded, exact, rtol=0, atol=1e-5)
    close(rounded, mix(elmo, IDS_OF_WORDS))


def test_a_state_is_carried_in_training_too(files: tuple[Path, Path]) -> None:
    """The places of words make no difference: each batch goes on from the state after the one before."""
    elmo, plain = (Elmo(*files, 1, dropout=0, stateful=True, vocab_to_cache=words) for words in (VOCABULARY, None))
    for module in (elmo, plain):
        module.requires_grad_()
    results = []
    for _ in range(2):
        got, expected = (mix(elmo, IDS_OF_WORDS, WORDS), mix(plain, IDS_OF_WORDS))
        close(got, expected)
        results.append(expected.detach())
    assert not torch.allclose(*results, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.int64])
def test_every_type_of_integers(files: tuple[Path, Path], dtype: torch.dtype) -> None:
    n = min(300, torch.iinfo(dtype).max + 1)
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=[f"word{k}" for k in range(n)])
    sentences = [["word1", f"word{n - 2}", f"word{n - 1}"]]
    places, ids = torch.tensor([[1, n - 2, n - 1]]), batch_to_ids(sentences)
    expected = mix(elmo, ids).detach()
    for inputs in (ids, torch.zeros_like(ids)):
        close(mix(elmo, inputs, places.to(dtype)), expected)
    if torch.iinfo(dtype).max >= 261:
        close(mix(elmo, ids.to(dtype)), expected)


def test_its_parameters_are_those_of_the_lstms(files: tuple[Path, Path]) -> None:
    """AllenNLP's issue 1644: cached words stay as they are, while the LSTMs are trained."""
    vocabulary = ["pad", *dict.fromkeys(word for words in SENTENCES for word in words)]
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)
    for parameter in elmo._elmo_lstm._elmo_lstm.parameters():
        parameter.requires_grad = True
    trained = {name for name, p in elmo.named_parameters() if p.requires_grad and "scalar_mix" not in name}
    assert trained == {name for name, _ in elmo.named_parameters() if ".lstm." in name}
    assert trained
    mix(elmo, IDS, places(SENTENCES, vocabulary)).sum().backward()
    gradients = {name for name, p in elmo.named_parameters() if p.grad is not None and "scalar_mix" not in name}
    assert gradients == trained


def test_none_resets_the_state(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0)
    assert torch.equal(mix(elmo), mix(elmo))
    elmo._elmo_lstm._elmo_lstm.stateful = True
    first, second = mix(elmo), mix(elmo)
    assert not torch.allclose(first, second, atol=1e-4)
    elmo._elmo_lstm._elmo_lstm._states = None
    assert torch.equal(mix(elmo), first)
    with pytest.raises(SettingsError, match=r"value of type tuple. Expected None"):
        elmo._elmo_lstm._elmo_lstm._states = (first, second)
    assert torch.equal(mix(elmo), second)


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
        close(h[0, row, :half], layers[1][row, len(words) + 1, :half])
        close(h[0, row, half:], layers[1][row, 0, half:])
        close(h[1, row, :half], (layers[2] - layers[1])[row, len(words) + 1, :half])
