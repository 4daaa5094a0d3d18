"""The AllenNLP-compatible module: its values and returns."""

from __future__ import annotations

import copy
import pickle
from collections import UserDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from bilm_cases import run
from elmo_cases import IDS, SENTENCES, TOP, close, mix, places
from golden_files import GOLDEN_NAMES, Golden, bilm_in, datasets_in, read_golden
from torch import Tensor, nn

from spacy_elmo import Elmo, ElmoEmbedder, batch_to_ids
from spacy_elmo.errors import ElmoError, SettingsError


@pytest.fixture(scope="module", params=GOLDEN_NAMES)
def reference(request: pytest.FixtureRequest, golden: Path) -> tuple[Golden, tuple[Path, Path]]:
    folder = golden / request.param
    return read_golden(folder), (folder / "options.json", folder / "weights.hdf5")


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("between", [(), (3, 2)])
def test_all_tensors_are_contiguous(files: tuple[Path, Path], keep: bool, between: tuple[int, ...]) -> None:
    elmo = Elmo(*files, 2, keep_sentence_boundaries=keep, vocab_to_cache=["", "The"])
    for batch in (SENTENCES, SENTENCES[:1], [["a"], ["b"]]):
        ids = batch_to_ids(batch)
        inputs = ids.reshape(len(batch), *[1 for _ in between], *ids.shape[1:]).expand(-1, *between, -1, -1)
        for words in (None, (inputs > 0).any(-1).long()):
            output = elmo(inputs, words)
            for tensor in (*output["elmo_representations"], output["mask"]):
                assert tensor.is_contiguous()
                assert tensor.shape[: 2 + len(between)] == (len(batch), *between, max(map(len, batch)) + 2 * keep)
    embedder = ElmoEmbedder(*files, stateful=True)
    network = embedder.elmo_bilm
    returned = network(IDS)
    state = network._elmo_lstm._states
    assert state is not None
    for tensor in (*embedder.batch_to_embeddings(SENTENCES), *returned["activations"], returned["mask"], *state):
        assert tensor.is_contiguous()


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


def test_carried_state(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    golden, files = reference
    elmo = Elmo(*files, 1, dropout=0, stateful=True)
    for _ in range(2):
        for number, batch in enumerate(golden.carry_batches):
            got = mix(elmo, batch_to_ids(batch))
            for row, words in enumerate(batch):
                close(got[row, : len(words)], golden.expected[f"carried_state/{number}/{row}"].mean(0))
        elmo.reset_states()


def test_a_carried_state_has_no_gradient(files: tuple[Path, Path]) -> None:
    """The second backward pass ends at the state: its graph was freed by the first one."""
    elmo = Elmo(*files, 1, dropout=0, stateful=True, requires_grad=True)
    for _ in range(2):
        mix(elmo, batch_to_ids(SENTENCES)).square().sum().backward()
    assert [tensor.requires_grad for tensor in elmo._elmo_lstm._elmo_lstm._states] == [False, False]


def test_sentence_boundaries_can_be_kept(reference: tuple[Golden, tuple[Path, Path]]) -> None:
    files = reference[1]
    ids = batch_to_ids(SENTENCES)
    kept = Elmo(*files, 2, dropout=0, keep_sentence_boundaries=True)(ids)
    plain = Elmo(*files, 1, dropout=0)(ids)
    assert kept["mask"].tolist() == [[True] * 5 + [False] * 4, [True] * 9]
    x, y = kept["elmo_representations"][1], plain["elmo_representations"][0]
    assert x.shape == (2, 9, y.shape[2])
    close(x[0, 1:4], y[0, :3])
    close(x[1, 1:8], y[1])
    assert not x[0, 5:].any()
    for row, position in ((0, 0), (0, 4), (1, 0), (1, 8)):
        assert x[row, position].any()
    four = torch.stack([ids, ids, ids], 1)
    assert Elmo(*files, 1, keep_sentence_boundaries=True)(four)["mask"].shape == (2, 3, 9)


def test_the_boundaries_are_the_words_of_that_name() -> None:
    """As AllenNLP's token encoder has it: layer 0 of `<S>` is that of the word "<S>"; the same for `</S>`."""
    elmo = Elmo(None, None, 1, dropout=0.0, keep_sentence_boundaries=True, scalar_mix_parameters=[1.0, -1e10, -1e10])
    for word, place in (("<S>", 0), ("</S>", 2)):
        vectors = mix(elmo, batch_to_ids([[word]]))[0]
        assert torch.equal(vectors[place], vectors[1])


def gradients(elmo: nn.Module) -> dict[str, Tensor]:
    mix(elmo).double().square().sum().backward()
    return {name: parameter.grad.double() for name, parameter in elmo.named_parameters() if parameter.grad is not None}


# The error of a product is that of its rounded factors, about 2^-9 or 2^-12; three layers add up.
@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 0.03), (torch.float16, 0.004), (torch.float64, 1e-5)])
@pytest.mark.usefixtures("cell")
def test_other_types(files: tuple[Path, Path], dtype: torch.dtype, bound: float) -> None:
    exact = Elmo(*files, 1, requires_grad=True, dropout=0).double()
    elmo = Elmo(*files, 1, requires_grad=True, dropout=0).to(dtype)
    result, wanted = mix(elmo).detach(), mix(exact).detach()
    assert result.dtype == dtype
    assert float((result.double() - wanted).norm() / wanted.norm()) <= bound
    expected, got = gradients(exact), gradients(elmo)
    assert got.keys() == expected.keys()
    for name, gradient in got.items():
        # a maximum of the convolutions can be at another position, so that single values differ more
        assert torch.cosine_similarity(gradient.flatten(), expected[name].flatten(), 0) > 1 - 2 * bound, name


def test_autocast_rounds_nothing(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0)
    with torch.autocast("cpu", torch.bfloat16):
        got = mix(elmo)
    assert torch.equal(got, mix(elmo))


def test_functional_calls(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, requires_grad=True, dropout=0)
    expected, wanted = mix(elmo).detach(), gradients(elmo)
    given = {name: parameter.detach().clone().requires_grad_() for name, parameter in elmo.named_parameters()}
    with torch.no_grad():
        for parameter in elmo.parameters():
            parameter.zero_()
    got = torch.func.functional_call(elmo, given, (IDS,))["elmo_representations"][0]
    assert torch.equal(got, expected)
    got.square().sum().backward()
    for name, gradient in wanted.items():
        assert torch.allclose(given[name].grad.double(), gradient, rtol=1e-4, atol=1e-5), name  # type: ignore[union-attr]


class Adapted(nn.Module):
    """A linear layer with an adapter, as LoRA adds them: `weight` is that of the layer inside."""

    def __init__(self, inside: nn.Linear) -> None:
        super().__init__()
        self.inside, self.weight, self.bias = inside, inside.weight, inside.bias
        self.added = nn.Parameter(torch.ones(inside.out_features))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.inside(x) + self.added
        return result


@pytest.mark.parametrize(("module", "name"), [("char_cnn", "projection"), ("char_cnn.highways.0", "carry")])
def test_a_linear_layer_with_a_hook_or_another_in_its_place(files: tuple[Path, Path], module: str, name: str) -> None:
    elmo, other = Elmo(*files, 1, dropout=0), Elmo(*files, 1, dropout=0)
    part, changed = (one.get_submodule(f"_elmo_lstm.bilm.{module}") for one in (elmo, other))
    called: list[object] = []
    part.get_submodule(name).register_forward_hook(lambda *_: called.append(name))
    setattr(part, name, Adapted(part.get_submodule(name)))  # type: ignore[arg-type]
    with torch.no_grad():
        changed.get_parameter(f"{name}.bias").add_(1)
    close(mix(elmo), mix(other))
    mix(elmo).square().sum().backward()
    assert part.get_parameter(f"{name}.added").grad is not None
    assert called == [name] * 2


@pytest.mark.parametrize("vocabulary", [None, ["pad", "The", "ELMo"]])
def test_weights_loaded_into_empty_memory(files: tuple[Path, Path], vocabulary: list[str] | None) -> None:
    words = None if vocabulary is None else places(SENTENCES, vocabulary)
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)
    state, expected = elmo.state_dict(), mix(elmo, IDS, words).detach()
    loaded = elmo.to("meta").to_empty(device="cpu")
    with torch.no_grad():
        for tensor in [*loaded.parameters(), *loaded.buffers()]:
            tensor.fill_(300)  # what to_empty leaves there can be anything
    loaded.load_state_dict(state)
    assert torch.equal(mix(loaded, IDS, words), expected)


class First(nn.Module):
    """A model that returns a tensor, as a trace needs."""

    def __init__(self, elmo: Elmo) -> None:
        super().__init__()
        self.elmo = elmo

    def forward(self, ids: Tensor) -> Tensor:
        return mix(self.elmo, ids)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*is deprecated:DeprecationWarning")
def test_a_trace_is_refused(files: tuple[Path, Path]) -> None:
    with torch.no_grad(), pytest.raises(ElmoError, match=r"torch\.jit\.trace can't record"):
        torch.jit.trace(First(Elmo(*files, 1, dropout=0)), (IDS,))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those that the compiler causes inside torch
def test_compile(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, requires_grad=True, dropout=0)
    expected, wanted = mix(elmo).detach(), gradients(elmo)
    elmo.zero_grad()
    torch.compiler.reset()
    got = torch.compile(First(elmo), backend="eager")(IDS)
    assert torch.equal(got, expected)
    got.double().square().sum().backward()
    for name, parameter in elmo.named_parameters():
        assert torch.equal(parameter.grad.double(), wanted[name]), name  # type: ignore[union-attr]


ONE_WORD = batch_to_ids([["a"]])


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("vocabulary", [None, ["pad", *"abc"]])
def test_requires_grad(files: tuple[Path, Path], requires_grad: bool, vocabulary: list[str] | None) -> None:
    """With a vocabulary the argument is refused, but the parameters can be trained."""
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)
    elmo._elmo_lstm.requires_grad_(requires_grad)
    sentences = [["a", "b", "other"], ["c"]]
    words = None if vocabulary is None else places(sentences, vocabulary)
    other = Elmo(*files, 1, requires_grad=requires_grad, dropout=0)
    for module, inputs in ((elmo, words), (other, None)):
        mix(module, batch_to_ids(sentences), inputs).square().sum().backward()
    for (name, a), (_, b) in zip(elmo.named_parameters(), other.named_parameters()):
        assert (a.grad is not None) == (b.grad is not None) == (requires_grad or "scalar_mix" in name)
        assert a.grad is None or torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-5), name  # type: ignore[arg-type]


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
    close(elmo(ids)["elmo_representations"][1], mix(Elmo(*files, 1, dropout=0), ids))
    other = Elmo(None, None, 1, dropout=0.0, module=Theirs())
    assert other.get_output_dim() == 4
    output = other(torch.ones(2, 3, 50, dtype=torch.long))
    assert output["mask"].tolist() == [[True, True, False], [True] * 3]
    close(output["elmo_representations"][0], np.array([[2, 2, 0], [2, 2, 2]])[..., None].repeat(4, 2))
    for setting in ({"stateful": True}, {"vocab_to_cache": ["pad"]}):
        with pytest.raises(ElmoError, match="not a BiLM of this package"):
            Elmo(None, None, 1, module=Theirs(), **setting)  # type: ignore[arg-type]
    # requires_grad is an argument of the biLM that is made from files
    bilm = bilm_in(files[0].parent).requires_grad_(False)
    Elmo(None, None, 1, requires_grad=True, vocab_to_cache=["pad", "The"], module=bilm)
    assert not any(parameter.requires_grad for parameter in bilm.parameters())


def test_dropout_in_training_alone(files: tuple[Path, Path]) -> None:
    elmo, ids = Elmo(*files, 1, dropout=0.5), batch_to_ids(SENTENCES)
    share = float((mix(elmo, ids)[1] == 0).float().mean())
    assert 0.3 < share < 0.7
    elmo.eval()
    assert torch.equal(mix(elmo, ids), mix(elmo, ids))
    assert not mix(Elmo(*files, 1, dropout=1)).any()  # torch.nn.Dropout, to which AllenNLP passes the share, accepts 1


def test_copies_and_precision(files: tuple[Path, Path]) -> None:
    elmo, ids = Elmo(*files, 1, dropout=0, stateful=True, vocab_to_cache=["pad", "The"]), batch_to_ids(SENTENCES)
    first = mix(elmo, ids).detach()
    for other in (copy.deepcopy(elmo), pickle.loads(pickle.dumps(elmo))):
        assert list(other.state_dict()) == list(elmo.state_dict())
        other.reset_states()
        close(mix(other, ids), first)
    carried = mix(elmo.double(), ids)
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


VOCABULARY = {"vocab_to_cache": ["pad", "a"]}


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, [[["a", "b"]]], "inputs is list. Expected a tensor"),
        ({}, [ONE_WORD.float()], "inputs is a tensor of torch.float32"),
        ({}, [ONE_WORD[0]], r"inputs has shape \(1, 50\)"),
        ({}, [ONE_WORD[:, :, :20]], r"has 20 characters a word.*max_characters=50"),
        ({}, [ONE_WORD + 100], "inputs holds 359"),
        ({}, [ONE_WORD.masked_fill(ONE_WORD == 261, 262)], "inputs holds 262"),  # 261 is the highest id
        ({}, [ONE_WORD - 1000], "inputs holds -"),
        ({}, [ONE_WORD.to("meta")], r"inputs is on meta, but the biLM is on cpu.*inputs.to\('cpu'\)"),
        ({}, [batch_to_ids([["a", "b"], ["c"]]).flip(1)], "Sentence 1 of inputs has a word after padding"),
        (
            VOCABULARY,
            [ONE_WORD.expand(2, 3, 50), torch.tensor([[1, 0, 0], [1, 0, 1]])],
            "Sentence 1 of word_inputs has a",
        ),
        (VOCABULARY, [ONE_WORD, torch.ones(1, 2, dtype=torch.long)], r"word_inputs has shape \(1, 2\)"),
        (VOCABULARY, [ONE_WORD, torch.tensor([[-1]])], "word_inputs holds -1"),
        (VOCABULARY, [ONE_WORD * 0, torch.tensor([[7]])], "word_inputs holds 7, but vocab_to_cache has 2 words"),
        (VOCABULARY, [ONE_WORD, torch.ones(1, 1)], "word_inputs is a tensor of torch.float32"),
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
        ({"dropout": 1.5}, "dropout is 1.5"),
        ({"dropout": "0.5"}, "dropout is '0.5'"),
        ({"scalar_mix_parameters": [1.0]}, "has 1 values. Expected 3"),
        ({"scalar_mix_parameters": 3.0}, "scalar_mix_parameters are 3.0. Expected finite numbers"),
        ({"scalar_mix_parameters": [float("nan"), 1, 1]}, r"scalar_mix_parameters are \[nan, 1, 1\]"),
        ({"vocab_to_cache": "words"}, "vocab_to_cache is 'words'"),
        ({"vocab_to_cache": ["pad", 1]}, "a word is 1"),
        ({"vocab_to_cache": ["pad"], "requires_grad": True}, "requires_grad is true together with vocab_to_cache"),
        ({"module": Theirs()}, "together with module"),
        ({"weight_file": None}, "options_file is set, but weight_file is not"),
        ({"options_file": b"options.json"}, "b'options.json' is no path.*fsdecode.*The setting options_file"),
        ({"weight_file": 3}, "3 is no path.*The setting weight_file"),
        ({"options_file": "https://example.org/o.json"}, "spacy elmo download https://example.org/o.json"),
    ],
)
def test_settings_that_can_not_be_used(files: tuple[Path, Path], arguments: dict[str, object], message: str) -> None:
    given = {"options_file": files[0], "weight_file": files[1], "num_output_representations": 1} | arguments
    with pytest.raises(ElmoError, match=message):
        Elmo(**given)  # type: ignore[arg-type]


def test_sentences_and_words_can_be_any_iterables() -> None:
    expected = batch_to_ids([["The", "river"], ["a"]])
    assert torch.equal(batch_to_ids(iter([map(str, ["The", "river"]), ("a",)])), expected)
    assert torch.equal(batch_to_ids([np.array(["The", "river"]), {"a": 1}]), expected)


@pytest.fixture
def parameters(files: tuple[Path, Path]) -> dict[str, Any]:
    return {"options_file": str(files[0]), "weight_file": files[1]}


@pytest.mark.parametrize("mapping", [dict, UserDict])  # AllenNLP's Params is a mapping that is not a dict
def test_from_params(parameters: dict[str, Any], mapping: Any) -> None:
    settings = {
        "num_output_representations": 2,
        "requires_grad": True,
        "do_layer_norm": True,
        "dropout": 0,
        "keep_sentence_boundaries": True,
        "scalar_mix_parameters": [0.5, 0.0, -1.0],
        "vocab_to_cache": None,
    }
    params = mapping(parameters | settings)
    made, same = Elmo.from_params(params), Elmo(**parameters, **settings)
    assert dict(params) == parameters | settings
    assert all(parameter.requires_grad is True for parameter in made._elmo_lstm.parameters())
    ids = batch_to_ids(SENTENCES)
    for got, expected in zip(*(elmo(ids)["elmo_representations"] for elmo in (made, same)), strict=True):
        assert torch.equal(got, expected)
        assert got.shape[1] == max(map(len, SENTENCES)) + 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_outputs": 1}, "unexpected keyword argument 'num_outputs'. Expected some of: options_file, weight_file"),
        ({"num_output_representations": ...}, "missing a required argument: 'num_output_representations'"),
        ({"options_file": ...}, "argument: 'options_file'.* set options_file and weight_file to null"),
    ],
)
def test_params_that_can_not_be_used(parameters: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    given = parameters | {"num_output_representations": 1} | changes
    with pytest.raises(SettingsError, match=message):
        Elmo.from_params({name: value for name, value in given.items() if value is not ...})
    with pytest.raises(SettingsError, match="Expected a mapping"):
        Elmo.from_params(["options_file"])  # type: ignore[arg-type]


def test_scalar_mixes(parameters: dict[str, Any]) -> None:
    """A list in AllenNLP, whose items are also modules of these names."""
    elmo = Elmo(**parameters, num_output_representations=3)
    assert elmo._scalar_mixes == [elmo.scalar_mix_0, elmo.scalar_mix_1, elmo.scalar_mix_2]
    assert all(isinstance(mix, nn.Module) for mix in elmo._scalar_mixes)
    names = [name for name in elmo.state_dict() if "mix" in name]
    assert names == [f"scalar_mix_{k}.{name}" for k in range(3) for name in ("w", "gamma")]


def test_reset_states_as_its_users_write_it(parameters: dict[str, Any]) -> None:
    """The test test_elmo_4D_input of AllenNLP: row k of a tensor with four axes is the batch k from the zero state."""
    elmo = Elmo(**parameters, num_output_representations=1, dropout=0, stateful=True)
    batches = [[["The", "sentence", "."]], [["1", "2", "3"]], [["50", "60", "The"]]]
    ids = [batch_to_ids(batch) for batch in batches]
    together = mix(elmo, torch.stack(ids, 1))
    for k, batch_ids in enumerate(ids):
        elmo._elmo_lstm._elmo_lstm.reset_states()
        close(mix(elmo, batch_ids), together[:, k])
    assert sum("_elmo_lstm._elmo_lstm" in name for name in elmo.state_dict()) == 0


def test_some_rows_go_on(parameters: dict[str, Any]) -> None:
    """AllenNLP's _EncoderBase.reset_states: `new_state = ~mask * old_state` for each row."""
    elmo = Elmo(**parameters, num_output_representations=1, dropout=0, stateful=True)
    ids = batch_to_ids([["The", "sentence"], ["ELMo", "helps"]])
    first = mix(elmo, ids).detach()
    second = mix(elmo, ids).detach()
    assert not torch.allclose(first, second, atol=1e-4)
    elmo.reset_states()
    elmo(ids)
    elmo._elmo_lstm._elmo_lstm.reset_states(torch.tensor([True, False]))
    got = mix(elmo, ids)
    close(got[0], first[0])
    close(got[1], second[1])
    with pytest.raises(ElmoError, match=r"has shape \(3,\). Expected a tensor of shape \(2,\)"):
        elmo._elmo_lstm._elmo_lstm.reset_states(torch.ones(3, dtype=torch.bool))
    with pytest.raises(ElmoError, match=r"has type list. Expected a tensor of shape \(2,\)"):
        elmo._elmo_lstm._elmo_lstm.reset_states([True, False])  # type: ignore[arg-type]


Datasets = Mapping[str, npt.NDArray[np.generic]]


def allennlp_state(datasets: Datasets, mixes: list[list[float]], gamma: float = 1.0) -> dict[str, Tensor]:
    """A state_dict as AllenNLP's Elmo has it, made from the official file's datasets the way its loader does."""
    state: dict[str, npt.NDArray[np.generic]] = {}
    encoder = "_elmo_lstm._token_embedder."
    embedding = datasets["char_embed"]
    state[f"{encoder}_char_embedding_weights"] = np.concatenate([np.zeros_like(embedding[:1]), embedding])
    for i in range(sum(name.startswith("CNN/W") for name in datasets)):
        state[f"{encoder}char_conv_{i}.weight"] = datasets[f"CNN/W_cnn_{i}"][0].transpose(2, 1, 0)
        state[f"{encoder}char_conv_{i}.bias"] = datasets[f"CNN/b_cnn_{i}"]
    for k in range(sum(name.startswith("CNN_high") and name.endswith("W_carry") for name in datasets)):
        transform, carry = datasets[f"CNN_high_{k}/W_transform"].T, -datasets[f"CNN_high_{k}/W_carry"].T
        state[f"{encoder}_highways._layers.{k}.weight"] = np.concatenate([transform, carry])
        transform, carry = datasets[f"CNN_high_{k}/b_transform"], -datasets[f"CNN_high_{k}/b_carry"]
        state[f"{encoder}_highways._layers.{k}.bias"] = np.concatenate([transform, carry])
    state[f"{encoder}_projection.weight"] = datasets["CNN_proj/W_proj"].T
    state[f"{encoder}_projection.bias"] = datasets["CNN_proj/b_proj"]
    for d, direction in enumerate(("forward", "backward")):
        for k in range(sum(name.startswith("RNN_0") and name.endswith("W_0") for name in datasets)):
            name, cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{k}/LSTMCell/", f"_elmo_lstm._elmo_lstm.{direction}_layer_{k}."
            weights, bias = datasets[f"{name}W_0"].T, datasets[f"{name}B"].copy()
            size, width = len(bias) // 4, weights.shape[1] // 2
            bias[2 * size : 3 * size] += 1
            # their order is input, forget, memory, output; the file's is input, memory, forget, output
            order = np.concatenate([np.arange(4 * size).reshape(4, size)[gate] for gate in (0, 2, 1, 3)])
            state[f"{cell}input_linearity.weight"] = weights[order, :width]
            state[f"{cell}state_linearity.weight"] = weights[order, width:]
            state[f"{cell}state_linearity.bias"] = bias[order]
            state[f"{cell}state_projection.weight"] = datasets[f"{name}W_P_0"].T
    for k, parameters in enumerate(mixes):
        for layer, value in enumerate(parameters):
            state[f"scalar_mix_{k}.scalar_parameters.{layer}"] = np.array([value], np.float32)
        state[f"scalar_mix_{k}.gamma"] = np.array([gamma], np.float32)
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in state.items()}


OTHER_SENTENCES = [["We", "sat", "on", "the", "bank", "."], ["naïve", "東京"]]


def made_of(golden: Path, name: str, outputs: int, **settings: Any) -> Elmo:
    return Elmo(golden / name / "options.json", golden / name / "weights.hdf5", outputs, dropout=0.0, **settings)


def scrambled(golden: Path, name: str = "random_a") -> Elmo:
    """An Elmo of the right sizes with other weights."""
    elmo = made_of(golden, name, 2)
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
    expected = made_of(golden, name, 1, scalar_mix_parameters=mixes[0])
    ids = batch_to_ids(OTHER_SENTENCES)
    with torch.no_grad():
        got, plain = elmo(ids)["elmo_representations"], mix(expected, ids)
    torch.testing.assert_close(got[0], 1.5 * plain, rtol=0, atol=1e-5)
    uniform = mix(made_of(golden, name, 1), ids)
    torch.testing.assert_close(got[1], 1.5 * uniform, rtol=0, atol=1e-5)


def their_state(golden: Path) -> dict[str, Tensor]:
    return allennlp_state(datasets_in(golden / "random_a" / "weights.hdf5"), [[0.0] * 3] * 2)


def test_their_word_embedding_and_boundary_buffers_are_left_out(golden: Path) -> None:
    theirs = {"_elmo_lstm._word_embedding.weight": torch.zeros(7, 16)}
    for name in ("beginning", "end"):
        theirs[f"_elmo_lstm._token_embedder._{name}_of_sentence_characters"] = torch.zeros(50)
    made_of(golden, "random_a", 2, vocab_to_cache=["pad", "We"]).load_state_dict(their_state(golden) | theirs)


def test_what_is_missing_or_too_much_is_named(golden: Path) -> None:
    theirs, elmo = their_state(golden), scrambled(golden)
    for left_out, message in (
        ("char_conv_1.bias", r"Missing key.*_elmo_lstm\.bilm\.char_cnn\.convolutions\.1\.bias"),
        ("backward_layer_0.input", r"forward_layer_0\.input_linearity\.weight"),
        ("scalar_mix_1.scalar_parameters.1", r"Unexpected key.*scalar_mix_1\.scalar_parameters\.2"),
    ):
        with pytest.raises(RuntimeError, match=f"(?s){message}"):
            elmo.load_state_dict({key: tensor for key, tensor in theirs.items() if left_out not in key})
    for name, message in (("scalar_mix_0.scalar_parameters.3", "size mismatch"), ("other", "Unexpected key.*other")):
        with pytest.raises(RuntimeError, match=message):
            elmo.load_state_dict(theirs | {name: torch.zeros(1)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        scrambled(golden, "random_b").load_state_dict(theirs, strict=False)


class Foreign(nn.Module):
    """A biLM with AllenNLP's interface, and its names."""

    num_layers = 3

    def __init__(self) -> None:
        super().__init__()
        self._token_embedder = nn.ModuleDict({"char_conv_0": nn.Conv1d(2, 2, 1), "_projection": nn.Linear(2, 2)})
        self._elmo_lstm = nn.ModuleDict({"forward_layer_0": nn.ModuleDict({"input_linearity": nn.Linear(2, 4)})})
        self._word_embedding = nn.Embedding(3, 2)

    def get_output_dim(self) -> int:
        return 4


def test_the_state_of_a_module_with_allennlps_names() -> None:
    elmo, other = (Elmo(None, None, 2, module=Foreign()) for _ in range(2))
    other.load_state_dict(elmo.state_dict())
    for a, b in zip(elmo.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    theirs = {name: tensor for name, tensor in elmo.state_dict().items() if not name.endswith(".w")}
    theirs |= {f"scalar_mix_{k}.scalar_parameters.{j}": torch.tensor([float(j)]) for k in range(2) for j in range(3)}
    other.load_state_dict(theirs)
    assert other.state_dict()["scalar_mix_1.w"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_another_default_type(files: tuple[Path, Path], default: torch.dtype) -> None:
    expected = mix(Elmo(*files, 1, dropout=0))
    torch.set_default_dtype(default)
    try:
        got = mix(Elmo(*files, 1, dropout=0))
    finally:
        torch.set_default_dtype(torch.float32)
    assert got.dtype == torch.promote_types(default, torch.float32)
    close(got.float(), expected)
