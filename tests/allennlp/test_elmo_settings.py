"""Arguments of the AllenNLP-compatible module, and input that can't be used."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import run
from elmo_cases import SENTENCES, TOP, close, places
from golden_files import bilm_in
from torch import Tensor, nn

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.errors import ElmoError
from spacy_elmo.formats import words_to_ids

IDS = batch_to_ids([["a"]])


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("cached", [True, False])
def test_requires_grad(files: tuple[Path, Path], requires_grad: bool, cached: bool) -> None:
    vocabulary = ["pad", *"abc"]
    elmo = Elmo(*files, 1, requires_grad=requires_grad and not cached, vocab_to_cache=vocabulary if cached else None)
    if cached and requires_grad:
        elmo.requires_grad_()  # the argument is refused
    sentences = [["a", "b", "other"], ["c"]]
    words = places(sentences, vocabulary) if cached else None
    elmo(batch_to_ids(sentences), words)["elmo_representations"][0].square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in elmo.named_parameters()}
    assert all((gradients[name] is not None) == requires_grad for name in gradients if "_elmo_lstm" in name)
    assert all(gradients[f"scalar_mix_0.{name}"] is not None for name in ("w", "gamma"))
    if cached and requires_grad:  # the same as without a vocabulary
        other = Elmo(*files, 1, requires_grad=True, dropout=0)
        elmo.zero_grad()
        for module, given in ((elmo.eval(), words), (other, None)):
            module(batch_to_ids(sentences), given)["elmo_representations"][0].square().sum().backward()
        for (name, a), (_, b) in zip(elmo.named_parameters(), other.named_parameters()):
            assert torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-5), name  # type: ignore[arg-type]


def test_given_mix_parameters_are_not_trained(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 2, dropout=0, scalar_mix_parameters=TOP)
    assert not any(parameter.requires_grad for parameter in elmo.parameters())
    ids = batch_to_ids(SENTENCES)
    top = run(bilm_in(files[0].parent), SENTENCES)[0]
    for mixed in elmo(ids)["elmo_representations"]:
        close(mixed[1], top[1][-1])


class Theirs(nn.Module):
    """A module with AllenNLP's interface."""

    num_layers = 2

    def get_output_dim(self) -> int:
        return 4

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, object]:
        batch, tokens = inputs.shape[:2]
        ones = torch.ones(batch, tokens + 2, 4)
        mask = torch.ones(batch, tokens + 2, dtype=torch.long)
        mask[0, -1] = 0
        return {"activations": [ones, 3 * ones.masked_fill(mask[..., None] == 0, float("nan"))], "mask": mask}


def test_module(files: tuple[Path, Path]) -> None:
    ids = batch_to_ids(SENTENCES)
    elmo = Elmo(None, None, 2, dropout=0.0, module=bilm_in(files[0].parent))
    close(elmo(ids)["elmo_representations"][1], Elmo(*files, 1, dropout=0)(ids)["elmo_representations"][0].detach())
    other = Elmo(None, None, 1, dropout=0.0, module=Theirs())
    assert other.get_output_dim() == 4
    output = other(torch.ones(2, 3, 50, dtype=torch.long))
    assert output["mask"].tolist() == [[True, True, False], [True] * 3]
    close(output["elmo_representations"][0], np.array([[2, 2, 0], [2, 2, 2]])[..., None].repeat(4, 2))


def test_the_embedded_biLM() -> None:
    assert Elmo(None, None, 1).get_output_dim() == 256


def test_dropout_in_training_alone(files: tuple[Path, Path]) -> None:
    elmo, ids = Elmo(*files, 1, dropout=0.5), batch_to_ids(SENTENCES)
    share = float((elmo(ids)["elmo_representations"][0][1] == 0).float().mean())
    assert 0.3 < share < 0.7
    elmo.eval()
    assert torch.equal(elmo(ids)["elmo_representations"][0], elmo(ids)["elmo_representations"][0])


def test_dropout_of_everything(files: tuple[Path, Path]) -> None:
    """AllenNLP passes the share to torch.nn.Dropout, which accepts 1."""
    assert not Elmo(*files, 1, dropout=1)(batch_to_ids(SENTENCES))["elmo_representations"][0].any()


def test_requires_grad_is_ignored_with_a_module(files: tuple[Path, Path]) -> None:
    """In AllenNLP it is an argument of the biLM that is made from files, so a vocabulary is no reason to refuse it."""
    bilm = bilm_in(files[0].parent).requires_grad_(False)
    elmo = Elmo(None, None, 1, requires_grad=True, dropout=0, vocab_to_cache=["pad", "The"], module=bilm)
    assert not any(parameter.requires_grad for parameter in bilm.parameters())
    expected = Elmo(*files, 1, dropout=0)(batch_to_ids(SENTENCES))["elmo_representations"][0].detach()
    close(elmo(batch_to_ids(SENTENCES), places(SENTENCES, ["pad", "The"]))["elmo_representations"][0], expected)


def test_copies_and_precision(files: tuple[Path, Path]) -> None:
    elmo, ids = Elmo(*files, 1, dropout=0, stateful=True, vocab_to_cache=["pad", "The"]), batch_to_ids(SENTENCES)
    first = elmo(ids)["elmo_representations"][0].detach()
    for other in (copy.deepcopy(elmo), pickle.loads(pickle.dumps(elmo))):
        other.reset_states()
        close(other(ids)["elmo_representations"][0], first)
    carried = elmo.double()(ids)["elmo_representations"][0]
    assert carried.dtype == torch.float64
    assert not torch.allclose(carried.float(), first)


@pytest.mark.parametrize(
    ("sentences", "shape"), [([], (0, 0)), ([[]], (1, 0)), ([[], []], (2, 0)), ([["a"], []], (2, 1))]
)
def test_empty_batches_and_sentences(
    files: tuple[Path, Path], sentences: list[list[str]], shape: tuple[int, int]
) -> None:
    for vocabulary in (None, ["pad", "a"]):
        ids = batch_to_ids(sentences)
        assert ids.shape == (*shape, 50)
        words = None if vocabulary is None else torch.tensor([[1], [0]])[: shape[0], : shape[1]]
        output = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)(ids, words)
        assert output["elmo_representations"][0].shape == (*shape, 32)
        assert output["mask"].tolist() == [[bool(words)] * shape[1] for words in sentences]


def test_odd_words_have_the_originals_ids() -> None:
    ids = batch_to_ids([["", "a\ud800b", "<S>", "x" * 60]])
    assert ids.dtype == torch.int64
    assert ids[0, 0, :3].tolist() == [259, 260, 261]
    assert torch.equal(ids[0, 1], batch_to_ids([["ab"]])[0, 0])  # a lone surrogate has no bytes
    assert torch.equal(ids[0], torch.from_numpy(words_to_ids(["", "ab", "<S>", "x" * 48])))


VOCABULARY = {"vocab_to_cache": ["pad", "a"]}


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, [[["a", "b"]]], "inputs is list. Expected a tensor"),
        ({}, [IDS.float()], "inputs is a tensor of float32"),
        ({}, [IDS > 0], "inputs is a tensor of bool"),
        ({}, [IDS.to(torch.complex64)], "inputs is a tensor of complex64"),
        ({}, [IDS[0]], r"inputs has shape \(1, 50\)"),
        ({}, [IDS[:, :, :20]], r"has 20 characters a word.*max_characters=50"),
        ({}, [IDS + 100], "inputs holds 361"),
        ({}, [IDS.masked_fill(IDS == 261, 262)], "inputs holds 262"),  # 261, the padding of a word, is the highest id
        ({}, [IDS - 1000], "inputs holds -"),
        ({}, [IDS.to("meta")], r"inputs is on meta, but the biLM is on cpu.*inputs.to\('cpu'\)"),
        ({}, [batch_to_ids([["a", "b"], ["c"]]).flip(1)], "Sentence 1 of inputs has a word after padding"),
        (VOCABULARY, [IDS.expand(2, 3, 50), torch.tensor([[1, 0, 0], [1, 0, 1]])], "Sentence 1 of word_inputs has a"),
        (VOCABULARY, [IDS, torch.ones(1, 2, dtype=torch.long)], r"word_inputs has shape \(1, 2\)"),
        (VOCABULARY, [IDS, torch.tensor([[-1]])], "word_inputs holds -1"),
        (VOCABULARY, [IDS * 0, torch.tensor([[7]])], "word_inputs holds 7, but vocab_to_cache has 2 words"),
        (VOCABULARY, [IDS, torch.ones(1, 1)], "word_inputs is a tensor of float32"),
        (VOCABULARY, [torch.ones(2).long(), torch.ones(2).long()], r"inputs has shape \(2,\)"),
    ],
)
def test_tensors_that_can_not_be_used(
    files: tuple[Path, Path], settings: dict[str, list[str]], arguments: list[object], message: str
) -> None:
    with pytest.raises(ElmoError, match=message):
        Elmo(*files, 1, **settings)(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_output_representations": 0}, "num_output_representations is 0"),
        ({"num_output_representations": "2"}, "num_output_representations is '2'"),
        ({"dropout": 1.5}, "dropout is 1.5"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"dropout": "0.5"}, "dropout is '0.5'"),
        ({"dropout": None}, "dropout is None"),
        ({"scalar_mix_parameters": [1.0]}, "has 1 values. Expected 3"),
        ({"scalar_mix_parameters": 3.0}, "scalar_mix_parameters are 3.0. Expected finite numbers"),
        ({"scalar_mix_parameters": "abc"}, "scalar_mix_parameters are 'abc'"),
        ({"scalar_mix_parameters": [None, 1, 1]}, r"scalar_mix_parameters are \[None, 1, 1\]"),
        ({"scalar_mix_parameters": [float("nan"), 1, 1]}, r"scalar_mix_parameters are \[nan, 1, 1\]"),
        ({"vocab_to_cache": "words"}, "vocab_to_cache is 'words'"),
        ({"vocab_to_cache": ()}, "vocab_to_cache is"),
        ({"vocab_to_cache": ["pad"], "requires_grad": True}, "requires_grad is true together with vocab_to_cache"),
        ({"module": Theirs()}, "together with module"),
        ({"weight_file": None}, "options_file is set, but weight_file is not"),
        ({"options_file": b"options.json"}, "b'options.json' is no path.*fsdecode.*The setting options_file"),
        ({"options_file": {"lstm": {}}}, "is no path. Expected text or a pathlib"),
        ({"weight_file": 3}, "3 is no path.*The setting weight_file"),
        ({"options_file": "https://example.org/o.json"}, "spacy elmo download https://example.org/o.json"),
    ],
)
def test_settings_that_can_not_be_used(files: tuple[Path, Path], arguments: dict[str, object], message: str) -> None:
    given = {"options_file": files[0], "weight_file": files[1], "num_output_representations": 1} | arguments
    with pytest.raises(ElmoError, match=message):
        Elmo(**given)  # type: ignore[arg-type]


def test_numbers_of_numpy(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, np.int64(2), dropout=np.float32(0.5))
    assert len(elmo.eval()(batch_to_ids([["a"]], np.int64(50)))["elmo_representations"]) == 2
    assert type(elmo.num_output_representations) is int


def test_modules_that_can_not_carry_a_state_or_a_vocabulary() -> None:
    for settings in ({"stateful": True}, {"vocab_to_cache": ["pad"]}):
        with pytest.raises(ElmoError, match="not a BiLM of this package"):
            Elmo(None, None, 1, module=Theirs(), **settings)  # type: ignore[arg-type]


def test_a_text_is_not_taken_for_words() -> None:
    with pytest.raises(ElmoError, match="a sentence is the string 'The river'"):
        batch_to_ids(["The river"])


def test_sentences_and_words_can_be_any_iterables() -> None:
    expected = batch_to_ids([["The", "river"], ["a"]])
    assert torch.equal(batch_to_ids(iter([map(str, ["The", "river"]), ("a",)])), expected)
    assert torch.equal(batch_to_ids([np.array(["The", "river"]), {"a": 1}]), expected)
