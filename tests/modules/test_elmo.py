"""The AllenNLP-compatible module: its values, arguments and returns."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import run
from golden_files import GOLDEN_NAMES, Golden, bilm_in, datasets_in, read_golden, tiny_batches
from torch import Tensor, nn

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.errors import ElmoError
from spacy_elmo.formats import words_to_ids

SENTENCES = [["The", "sentence", "."], ["ELMo", "helps", "disambiguate", "ELMo", "from", "Elmo", "."]]
TOP = [-1e10, -1e10, 1.0]


@pytest.fixture(scope="module", params=GOLDEN_NAMES)
def reference(request: pytest.FixtureRequest, golden: Path) -> tuple[Golden, tuple[Path, Path]]:
    folder = golden / request.param
    return read_golden(folder), (folder / "options.json", folder / "weights.hdf5")


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


def close(got: Tensor, expected: object, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=0, atol=tolerance)  # type: ignore[arg-type]


def test_the_snippet_of_its_users(files: tuple[Path, Path]) -> None:
    options_file, weight_file = map(str, files)
    elmo = Elmo(options_file, weight_file, 2, dropout=0)
    sentences = [["First", "sentence", "."], ["Another", "."]]
    character_ids = batch_to_ids(sentences)
    embeddings = elmo(character_ids)
    assert [tuple(x.shape) for x in embeddings["elmo_representations"]] == [(2, 3, 32)] * 2
    assert embeddings["mask"].tolist() == [[True, True, True], [True, True, False]]
    assert elmo.get_output_dim() == 32
    assert not embeddings["elmo_representations"][0][1, 2].any()


@pytest.mark.parametrize("mix", ["plain", "uniform", "layer_norm"])
def test_mixes(reference: tuple[Golden, tuple[Path, Path]], mix: str) -> None:
    golden, files = reference
    attributes = golden.attributes[f"mix/{mix}"]
    parameters = [float(x) for x in attributes["scalar_parameters"]]
    elmo = Elmo(*files, 1, dropout=0, do_layer_norm=mix == "layer_norm", scalar_mix_parameters=parameters)
    elmo.scalar_mix_0.gamma.data.fill_(float(np.ravel(attributes["gamma"])[0]))  # type: ignore[union-attr]
    output = elmo(batch_to_ids(golden.sentences))
    expected = golden.expected[f"mix/{mix}"]
    for row, words in enumerate(golden.sentences):
        close(output["elmo_representations"][0][row, : len(words)], expected[row, : len(words)])
        assert output["mask"][row].sum() == len(words)


def test_zero_state_is_the_default(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    golden, files = reference
    elmo = Elmo(*files, 1, dropout=0)
    for _ in range(2):
        for i, words in enumerate(golden.sentences):
            got = elmo(batch_to_ids([words]))["elmo_representations"][0][0]
            close(got, golden.expected[f"zero_state/{i}"].mean(0))


def test_carried_state(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    golden, files = reference
    elmo = Elmo(*files, 1, dropout=0, stateful=True)
    for _ in range(2):
        for number, batch in enumerate(golden.carry_batches):
            got = elmo(batch_to_ids(batch))["elmo_representations"][0]
            for row, words in enumerate(batch):
                close(got[row, : len(words)], golden.expected[f"carried_state/{number}/{row}"].mean(0))
        elmo.reset_states()


def test_top_layer_of_the_original(tiny_fixture: Path) -> None:
    elmo = Elmo(
        tiny_fixture / "options.json",
        tiny_fixture / "lm_weights.hdf5",
        1,
        dropout=0,
        scalar_mix_parameters=TOP,
        stateful=True,
    )
    for sentences, expected in tiny_batches(tiny_fixture):
        output = elmo(batch_to_ids(sentences))
        assert output["mask"].sum(1).tolist() == [len(words) for words in sentences]
        for row, top in enumerate(expected):
            if top is not None:
                close(output["elmo_representations"][0][row, : len(sentences[row])], top, 2e-6)


def test_token_representations_of_the_original(tiny_fixture: Path) -> None:
    tokens = (tiny_fixture / "vocab_test.txt").read_text(encoding="utf8").strip().split("\n")
    files = tiny_fixture / "options.json", tiny_fixture / "lm_weights.hdf5"
    elmo = Elmo(*files, 1, dropout=0, scalar_mix_parameters=[1.0, -1e10, -1e10])
    output = elmo(batch_to_ids([tokens[k : k + 50] for k in range(0, len(tokens), 50)]))
    vectors = output["elmo_representations"][0][output["mask"]]
    expected = datasets_in(tiny_fixture / "elmo_token_embeddings.hdf5")["embedding"]
    close(vectors[:, :16], expected, 2e-6)
    close(vectors[:, 16:], expected, 2e-6)


def test_sentence_boundaries_can_be_kept(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    files = reference[1]
    ids = batch_to_ids(SENTENCES)
    kept = Elmo(*files, 2, dropout=0, keep_sentence_boundaries=True)(ids)
    plain = Elmo(*files, 1, dropout=0)(ids)
    assert kept["mask"].tolist() == [[True] * 5 + [False] * 4, [True] * 9]
    x, y = kept["elmo_representations"][1], plain["elmo_representations"][0]
    assert x.shape == (2, 9, y.shape[2])
    close(x[0, 1:4], y[0, :3].detach())
    close(x[1, 1:8], y[1].detach())
    assert not x[0, 5:].any()
    for row, position in ((0, 0), (0, 4), (1, 0), (1, 8)):
        assert x[row, position].any()
    four = torch.stack([ids, ids, ids], 1)
    assert Elmo(*files, 1, keep_sentence_boundaries=True)(four)["mask"].shape == (2, 3, 9)


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


def test_different_sentences_in_four_dimensions(files: tuple[Path, Path]) -> None:
    batches = [SENTENCES, [["1", "2"], [str(k) for k in range(7)]], [[*"1234", "50", "60", "70"], ["The"]]]
    ids = torch.stack([batch_to_ids(batch) for batch in batches], 1)
    elmo = Elmo(*files, 1, dropout=0)
    got = elmo(ids)["elmo_representations"][0]
    for k, batch in enumerate(batches):
        close(got[:, k], elmo(batch_to_ids(batch))["elmo_representations"][0].detach())


def places(sentences: list[list[str]], vocabulary: list[str]) -> Tensor:
    """Places in the vocabulary, 1000 for other words, 0 for padding."""
    longest = max(map(len, sentences))
    rows = [[vocabulary.index(word) if word in vocabulary else 1000 for word in words] for words in sentences]
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


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


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("cached", [True, False])
def test_requires_grad(files: tuple[Path, Path], requires_grad: bool, cached: bool) -> None:
    vocabulary = ["pad", *"abc"]
    elmo = Elmo(*files, 1, requires_grad=requires_grad, vocab_to_cache=vocabulary if cached else None)
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
IDS = batch_to_ids([["a"]])


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, [[["a", "b"]]], "inputs is list. Expected a tensor"),
        ({}, [IDS.float()], "inputs is a tensor of float32"),
        ({}, [IDS > 0], "inputs is a tensor of bool"),
        ({}, [IDS[0]], r"inputs has shape \(1, 50\)"),
        ({}, [IDS[:, :, :20]], r"has 20 characters a word.*max_characters=50"),
        ({}, [IDS + 100], "inputs holds 361"),
        ({}, [IDS - 1000], "inputs holds -"),
        (VOCABULARY, [IDS, torch.ones(1, 2, dtype=torch.long)], r"word_inputs has shape \(1, 2\)"),
        (VOCABULARY, [IDS, torch.tensor([[-1]])], "word_inputs holds -1"),
        (VOCABULARY, [IDS * 0, torch.tensor([[7]])], "word_inputs holds 7, but vocab_to_cache has 2 words"),
        (VOCABULARY, [IDS, torch.ones(1, 1)], "word_inputs is a tensor of float32"),
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
        ({"scalar_mix_parameters": [1.0]}, "has 1 values. Expected 3"),
        ({"vocab_to_cache": "words"}, "vocab_to_cache is 'words'"),
        ({"vocab_to_cache": []}, "vocab_to_cache is"),
        ({"module": Theirs()}, "together with module"),
        ({"weight_file": None}, "options_file is set, but weight_file is not"),
        ({"options_file": "https://example.org/o.json"}, "spacy elmo download https://example.org/o.json"),
    ],
)
def test_settings_that_can_not_be_used(files: tuple[Path, Path], arguments: dict[str, object], message: str) -> None:
    given = {"options_file": files[0], "weight_file": files[1], "num_output_representations": 1} | arguments
    with pytest.raises(ElmoError, match=message):
        Elmo(**given)  # type: ignore[arg-type]


def test_modules_that_can_not_carry_a_state_or_a_vocabulary() -> None:
    for settings in ({"stateful": True}, {"vocab_to_cache": ["pad"]}):
        with pytest.raises(ElmoError, match="not a BiLM of this package"):
            Elmo(None, None, 1, module=Theirs(), **settings)  # type: ignore[arg-type]


def test_word_inputs_without_a_vocabulary(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0)
    with pytest.warns(UserWarning, match="vocab_to_cache was not"):
        got = elmo(IDS, torch.ones(1, 1, dtype=torch.long))
    close(got["elmo_representations"][0], elmo(IDS)["elmo_representations"][0].detach())


def test_a_text_is_not_taken_for_words() -> None:
    with pytest.raises(ElmoError, match="a sentence is the string 'The river'"):
        batch_to_ids(["The river"])
