"""The AllenNLP-compatible module inside other code for torch: types, devices, functional calls, parts replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from elmo_cases import SENTENCES, close, places
from golden_files import bilm_in
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from spacy_elmo import Elmo, batch_to_ids
from spacy_elmo.errors import ElmoError

IDS = batch_to_ids(SENTENCES)


@pytest.fixture(scope="module")
def files(golden: Path) -> tuple[Path, Path]:
    return golden / "random_a" / "options.json", golden / "random_a" / "weights.hdf5"


def mix(elmo: nn.Module, ids: Tensor = IDS) -> Tensor:
    result: Tensor = elmo(ids)["elmo_representations"][0]
    return result


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


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_another_default_type(files: tuple[Path, Path], default: torch.dtype) -> None:
    expected = mix(Elmo(*files, 1, dropout=0))
    torch.set_default_dtype(default)
    try:
        got = mix(Elmo(*files, 1, dropout=0))
    finally:
        torch.set_default_dtype(torch.float32)
    assert got.dtype == torch.promote_types(default, torch.float32)
    close(got.float(), expected.detach())


def test_a_module_of_another_type(golden: Path, files: tuple[Path, Path]) -> None:
    elmo = Elmo(None, None, 1, dropout=0, module=bilm_in(golden / "random_a").double())
    assert mix(elmo).dtype == torch.float64
    close(mix(elmo).float(), mix(Elmo(*files, 1, dropout=0)).detach())


def test_autocast_rounds_nothing(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0)
    with torch.autocast("cpu", torch.bfloat16):
        got = mix(elmo)
    assert torch.equal(got, mix(elmo))


def test_functional_calls(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, requires_grad=True, dropout=0)
    expected = mix(elmo).detach()
    given = {name: parameter.detach().clone().requires_grad_() for name, parameter in elmo.named_parameters()}
    with torch.no_grad():
        for parameter in elmo.parameters():
            parameter.zero_()
    got = torch.func.functional_call(elmo, given, (IDS,))["elmo_representations"][0]
    assert torch.equal(got, expected)
    got.square().sum().backward()
    for name, gradient in gradients(Elmo(*files, 1, requires_grad=True, dropout=0)).items():
        assert torch.allclose(given[name].grad.double(), gradient, rtol=1e-4, atol=1e-5), name  # type: ignore[union-attr]


class Same(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.clone()


def test_parametrizations(files: tuple[Path, Path]) -> None:
    elmo = Elmo(*files, 1, dropout=0)
    expected = mix(elmo).detach()
    for module in list(elmo.modules()):
        if isinstance(module, nn.Conv1d):
            parametrizations.weight_norm(module)
        elif not parametrize.is_parametrized(module):
            for name, _ in list(module.named_parameters(recurse=False)):
                parametrize.register_parametrization(module, name, Same())
    close(mix(elmo), expected)


class Adapted(nn.Module):
    """A linear layer with an adapter, as LoRA adds them: `weight` is that of the layer inside."""

    def __init__(self, inside: nn.Linear) -> None:
        super().__init__()
        self.inside, self.weight, self.bias = inside, inside.weight, inside.bias
        self.added = nn.Parameter(torch.ones(inside.out_features))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.inside(x) + self.added
        return result


def parts_of_highway(elmo: nn.Module) -> list[tuple[nn.Module, str]]:
    encoder = elmo.get_submodule("_elmo_lstm.bilm.char_cnn")
    return [(encoder, "projection"), (encoder.get_submodule("highways.0"), "carry")]


@pytest.mark.parametrize("part", [0, 1], ids=["projection", "carry"])
def test_a_layer_that_was_replaced_is_called(files: tuple[Path, Path], part: int) -> None:
    elmo, other = Elmo(*files, 1, dropout=0), Elmo(*files, 1, dropout=0)
    module, name = parts_of_highway(elmo)[part]
    setattr(module, name, Adapted(module.get_submodule(name)))  # type: ignore[arg-type]
    module, name = parts_of_highway(other)[part]
    with torch.no_grad():
        module.get_parameter(f"{name}.bias").add_(1)
    close(mix(elmo), mix(other).detach())
    mix(elmo).square().sum().backward()
    assert parts_of_highway(elmo)[part][0].get_parameter(f"{name}.added").grad is not None


def test_hooks_of_linear_layers(files: tuple[Path, Path]) -> None:
    elmo, called = Elmo(*files, 1, dropout=0), []
    for module, name in parts_of_highway(elmo):
        module.get_submodule(name).register_forward_hook(lambda *_, name=name: called.append(name))  # type: ignore[misc]
    mix(elmo)
    assert sorted(called) == ["carry", "projection"]


@pytest.mark.parametrize("vocabulary", [None, ["pad", "The", "ELMo"]])
def test_weights_loaded_into_empty_memory(files: tuple[Path, Path], vocabulary: list[str] | None) -> None:
    words = None if vocabulary is None else places(SENTENCES, vocabulary)
    elmo = Elmo(*files, 1, dropout=0, vocab_to_cache=vocabulary)
    state, expected = elmo.state_dict(), elmo(IDS, words)["elmo_representations"][0].detach()
    loaded = elmo.to("meta").to_empty(device="cpu")
    with torch.no_grad():
        for tensor in [*loaded.parameters(), *loaded.buffers()]:
            tensor.fill_(300)  # what to_empty leaves there can be anything
    loaded.load_state_dict(state)
    assert torch.equal(loaded(IDS, words)["elmo_representations"][0], expected)


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
@pytest.mark.parametrize("left_out", [False, True])
def test_compile(files: tuple[Path, Path], left_out: bool) -> None:
    elmo = Elmo(*files, 1, requires_grad=True, dropout=0)
    expected, wanted = mix(elmo).detach(), gradients(elmo)
    elmo.zero_grad()
    torch.compiler.reset()
    if left_out:
        elmo.forward = torch.compiler.disable(elmo.forward)  # type: ignore[method-assign]
    got = torch.compile(First(elmo), backend="eager")(IDS)
    assert torch.equal(got, expected)
    got.double().square().sum().backward()
    for name, parameter in elmo.named_parameters():
        assert torch.equal(parameter.grad.double(), wanted[name]), name  # type: ignore[union-attr]
