"""The Thinc shim that holds a component's torch network. It is built when its sizes are known, and saves no pickle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import srsly
import torch
from thinc.api import Model, PyTorchShim
from thinc.util import get_torch_default_device, xp2torch

from ...errors import Errors, WeightsError
from ...models import shim as _  # noqa: F401  # torch in forked processes runs on one thread, or it would hang


class TorchShim(PyTorchShim):
    """Holds a torch network that is built late, when the width of its input (or the number of labels) is known.

    build: function from sizes, as keyword arguments, to the network. It has to be at module level (or a partial of
        such a function), so that pipelines pickle.
    sizes: attribute; the sizes that the network was built with; empty before `prepare`.

    In contrast to Thinc's own shim, `use_params` gives the network the optimizer's averages, and the bytes are
    msgpack of numpy arrays.
    """

    def __init__(self, build: Callable[..., torch.nn.Module]) -> None:
        super().__init__(None)
        self.build = build
        self.sizes: dict[str, int] = {}

    @property
    def network(self) -> Any:
        """The network. Raises KeyError before `prepare`, as Thinc does for a weight: spaCy then asks to initialize."""
        if self._model is None:
            raise KeyError(Errors.TASK_NOT_READY)
        return self._model

    def prepare(self, **sizes: int) -> None:
        """Build the network, with new weights: each `nlp.initialize` begins anew, as with spaCy's own layers."""
        self._model = self.build(**sizes).to(get_torch_default_device())
        self.sizes = sizes

    def finish_update(self, optimizer: Any) -> None:
        """Apply the gradients of the last backward pass; none before `prepare`."""
        if self._model is not None:
            super().finish_update(optimizer)

    @contextmanager
    def use_params(self, params: Mapping[tuple[int, str], Any]) -> Iterator[None]:
        """Use other weights for a while, such as the optimizer's averages. params: (id, name of a weight) -> array."""
        named = dict(self._model.named_parameters()) if self._model is not None else {}
        others = {name: params[self.id, name] for name in named if (self.id, name) in params}
        own = {name: named[name].data for name in others}
        for name, values in others.items():
            named[name].data = xp2torch(values, device=named[name].device)
        try:
            yield
        finally:
            for name, data in own.items():
                named[name].data = data

    def to_bytes(self) -> Any:
        """Return sizes and weights as msgpack."""
        state = {} if self._model is None else self._model.state_dict()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
        return srsly.msgpack_dumps({"sizes": self.sizes, "arrays": arrays})

    def from_bytes(self, bytes_data: bytes) -> TorchShim:
        """Build the network of the saved sizes, and give it the saved weights.

        Raises WeightsError if the weights are not those of such a network, or if the bytes are damaged. The network
        stays as it was then.
        """
        try:
            message = srsly.msgpack_loads(bytes_data)
            sizes, arrays = message["sizes"], message["arrays"]
            network = self._built(sizes, arrays) if sizes else None
        except WeightsError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # msgpack's own errors are ValueErrors
            raise WeightsError(Errors.TASK_DAMAGED.format(reason=error)) from error
        self._model, self.sizes = network, sizes
        return self

    def _built(self, sizes: Mapping[str, int], arrays: Mapping[str, Any]) -> torch.nn.Module:
        network = self.build(**sizes).to(get_torch_default_device())
        expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        got = {name: tuple(array.shape) for name, array in arrays.items()}
        if got != expected:
            wrong = sorted(name for name in got.keys() | expected.keys() if got.get(name) != expected.get(name))
            raise WeightsError(Errors.TASK_WEIGHTS.format(names=", ".join(wrong)))
        network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        return network


def shim_of(model: Model[Any, Any]) -> TorchShim:
    """Return the shim of a layer that has one, a TorchShim."""
    (shim,) = model.shims
    assert isinstance(shim, TorchShim)
    return shim
