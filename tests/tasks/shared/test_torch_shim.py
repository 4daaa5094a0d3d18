"""A torch network in a Thinc model: built late, saved without pickle, and given the optimizer's averages."""

from typing import Any

import numpy as np
import pytest
import srsly
import torch
from thinc.api import Adam, ArgsKwargs

from spacy_elmo.errors import WeightsError
from spacy_elmo.tasks.shared import TorchShim


def build(width: int) -> torch.nn.Module:
    return torch.nn.Linear(width, 1)


def weights(shim: TorchShim) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy().copy() for name, tensor in shim.network.state_dict().items()}


def test_it_is_built_anew_each_time() -> None:
    shim = TorchShim(build)
    with pytest.raises(KeyError, match="not built yet"):
        _ = shim.network
    shim.prepare(width=3)
    with torch.no_grad():
        shim.network.weight[:] = 5  # out of the range of new weights
    shim.prepare(width=3)
    assert shim.network.weight.abs().max() < 1
    shim.prepare(width=4)
    assert shim.network.in_features == 4


def test_bytes() -> None:
    shim, other = TorchShim(build), TorchShim(build)
    assert TorchShim(build).from_bytes(shim.to_bytes()).sizes == {}
    shim.prepare(width=3)
    saved = shim.to_bytes()
    other.prepare(width=5)
    other.from_bytes(saved)
    assert other.sizes == {"width": 3}
    assert {name: array.tolist() for name, array in weights(other).items()} == {
        name: array.tolist() for name, array in weights(shim).items()
    }
    with torch.no_grad():  # the weights are its own
        other.network.weight += 1
    assert other.to_bytes() != saved == shim.to_bytes()


def test_weights_of_another_network() -> None:
    shim = TorchShim(build)
    shim.prepare(width=3)
    other = TorchShim(lambda width: torch.nn.Linear(width, 2))
    with pytest.raises(WeightsError, match=r"^the saved weights of a component are not those .* bias, weight differ"):
        other.from_bytes(shim.to_bytes())


@pytest.mark.parametrize(
    "damaged",
    [b"no message", b"", b"\x81", {"arrays": {}}, {"sizes": 5, "arrays": {}}, {"sizes": {"depth": 3}, "arrays": {}}],
)
def test_damaged_bytes_change_nothing(damaged: Any) -> None:
    shim = TorchShim(build)
    shim.prepare(width=3)
    before = shim.to_bytes()
    with pytest.raises(WeightsError, match="saved weights of a component are damaged"):
        shim.from_bytes(damaged if isinstance(damaged, bytes) else srsly.msgpack_dumps(damaged))
    assert shim.to_bytes() == before


def test_averages_reach_it() -> None:
    """Thinc's average after n updates: (1 - d) w + d a with d = min(0.9999, (n + 1) / (n + 10))."""
    shim, optimizer = TorchShim(build), Adam(0.1, use_averages=True)
    shim.finish_update(optimizer)
    shim.prepare(width=2)
    average = {name: np.zeros_like(array) for name, array in weights(shim).items()}
    for number in range(1, 4):
        output, backprop = shim.begin_update(ArgsKwargs((torch.ones(1, 2),), {}))
        backprop(ArgsKwargs(((output,),), {"grad_tensors": (torch.ones(1, 1),)}))
        shim.finish_update(optimizer)
        decay = min(0.9999, (number + 1) / (number + 10))
        average = {name: (1 - decay) * array + decay * average[name] for name, array in weights(shim).items()}
    last = weights(shim)
    with shim.use_params(optimizer.averages):
        for name, array in weights(shim).items():
            np.testing.assert_allclose(array, average[name], rtol=1e-5)
            assert not np.allclose(array, last[name])
    assert all((last[name] == array).all() for name, array in weights(shim).items())
