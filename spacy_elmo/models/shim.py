"""The Thinc shim that holds a biLM's weights. It reads their files when they are first needed, and saves no pickle."""

import copy
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import srsly
import torch
from thinc.api import Model, Optimizer, Shim
from thinc.types import FloatsXd
from thinc.util import get_torch_default_device, torch2xp, xp2torch

from ..errors import ElmoError, WeightsError, check_whole
from ..formats.characters import TruncatedWords
from ..formats.hdf5 import in_float16
from ..formats.options import BiLMOptions
from ..formats.weights import check_arrays, expected_parameters
from ..inference import CACHED_WORDS, Embedder, LayerCache, Precision, dtype_of
from ..locks import Lock
from ..modules import Arrays, BiLM, check_files, load_arrays, load_options


@dataclass(frozen=True)
class PipeSettings:
    """What an elmo pipe decides about its biLM. A copy of the biLM is not the pipe's, so it has the defaults again."""

    tuned: bool = False
    learn_rate_factor: float = 1.0
    max_batch_tokens: int = 8192
    cache: LayerCache | None = None


class BiLMShim(Shim):
    """Holds the embedder of a biLM, whose network owns the weights, and trains this network.

    In training, gradients may arrive after spaCy has asked for the update (see step.py). So each method that needs the
    current weights first ends the open step, which applies the gradients that it has summed. Properties change nothing.

    The files are read when weights are first needed. A saved pipeline contains its weights and never reads them.

    pipe_settings: those of the elmo pipe that has this biLM.
    end_step: ends the open step; None: there is none.
    truncated: counts the tokens that have more bytes than the biLM reads.
    """

    def __init__(
        self,
        options_file: str | None,
        weight_file: str | None,
        precision: Precision = "float32",
        cached_words: int = CACHED_WORDS,
        bilm: str | None = None,
    ) -> None:
        super().__init__(None)
        check_files(options_file, weight_file, bilm)
        check_whole(0, cached_words=cached_words)
        # the device of Thinc's ops at the time when the layer is built; other threads may have other ops
        self._device = get_torch_default_device()
        dtype_of(precision, self._device)
        self.options_file, self.weight_file, self.bilm = options_file, weight_file, bilm
        self.precision, self.cached_words = precision, cached_words
        self.pipe_settings = PipeSettings()
        self.truncated = TruncatedWords("the n of model.shims[0].truncated")
        self._embedder: Embedder | None = None  # None: the files have not been read
        self.end_step: Callable[[], None] | None = None
        self._lock = Lock()

    @property
    def options(self) -> BiLMOptions:
        """The biLM's options. Before weights are read they come from their file. Raises ElmoError if it is wrong."""
        embedder = self._embedder
        return load_options(self.options_file, self.bilm) if embedder is None else embedder.options

    def load(self) -> Embedder:
        """Return the embedder with the current weights: an open step of training, if there is one, is ended first.

        Read the files if there is no embedder yet. Raises ElmoError if they can't be used.
        """
        with self._lock:
            self._end_open_step()
            return self._embedder or self.set_weights(*load_arrays(self.options_file, self.weight_file, self.bilm))

    def to_arrays(self) -> Arrays:
        """Return copies of the current weights by parameter name."""
        with self._lock:
            return self.load().bilm.to_arrays()

    def compute_fingerprint(self) -> str:
        """Return a digest of options and weights."""
        with self._lock:
            return self.load().fingerprint

    def unfreeze(self) -> BiLM:
        """Return the network, to train it.

        A new engine is made after `finish_update`, `use_params` and `from_bytes`, but not after other changes of the
        network.
        """
        with self._lock:
            return self.load().network()

    def _end_open_step(self) -> None:
        if self.end_step is not None:
            self.end_step()

    def finish_update(self, optimizer: Optimizer) -> None:
        """Apply the gradients that backprop has summed, and clear them."""
        with self._lock:
            self._end_open_step()
            if self._embedder is not None:  # else it has never been run, so there are no gradients
                self._update(self._embedder, optimizer)

    def _update(self, embedder: Embedder, optimizer: Optimizer) -> None:
        of_thinc = isinstance(optimizer, Optimizer)  # spaCy's rehearsal has a function in its place
        l2 = optimizer.L2 if of_thinc else 0.0
        with embedder.lock:
            for name, parameter in embedder.bilm.named_parameters():
                if parameter.grad is None:
                    continue
                key = (self.id, name)
                weights = cast(FloatsXd, torch2xp(parameter.data))
                gradient = cast(FloatsXd, torch2xp(parameter.grad))
                # Averages begin with the weights before their first update. Thinc would begin with 0, and after that
                # update an average would be 9/11 of the weight: its decay is (1 + t) / (10 + t) after t updates.
                if of_thinc and optimizer.averages is not None and key not in optimizer.averages:
                    optimizer.averages[key] = weights.copy()
                # No L2 for biases. The LSTM adds 1 to the stored bias of its forget gate, so L2 would pull the sum to
                # 1, where it pulls to 0 in AllenNLP, which stores the sum.
                if of_thinc and name.endswith("bias"):
                    optimizer.L2 = 0.0
                try:
                    updated, _ = optimizer(key, weights, gradient, lr_scale=self.pipe_settings.learn_rate_factor)
                finally:
                    if of_thinc:
                        optimizer.L2 = l2
                parameter.data.copy_(xp2torch(updated, device=parameter.device))
                parameter.grad = None
                embedder.changed()

    @contextmanager
    def use_params(self, params: Mapping[tuple[int, str], Any]) -> Iterator[None]:
        """Use other weights for a while, such as an optimizer's averages, by (id of a shim, parameter name)."""
        own = {name for owner, name in params if owner == self.id}
        # another layer may have the same id: layers and shims are counted separately, both from 1
        names = own & expected_parameters(self.options, own).keys() if own and self._embedder is not None else set()
        if not names:
            yield
            return
        embedder, parameters = self.load(), dict(self.unfreeze().named_parameters())
        before = {name: parameters[name].data for name in names}

        def assign(values: Mapping[str, torch.Tensor]) -> None:
            with self._lock, embedder.lock:
                for name, value in values.items():
                    parameters[name].data = value
                embedder.changed()

        assign({name: xp2torch(params[self.id, name], device=before[name].device).clone() for name in names})
        try:
            yield
        finally:
            assign(before)

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the weights to the CPU (device_type "cpu") or to the GPU with this number ("gpu")."""
        with self._lock:
            self._end_open_step()
            self._device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
            if self._embedder is not None:
                bilm, dtype = self._embedder.bilm.to(self._device), dtype_of(self.precision, self._device)
                self._embedder = Embedder(bilm, dtype, self.cached_words)

    def to_bytes(self) -> bytes:
        """Return options and weights in msgpack, those in float16 that it has exactly."""
        with self._lock:
            bilm = self.load().bilm
            arrays = {name: in_float16(array) for name, array in bilm.to_arrays().items()}
        message: bytes = srsly.msgpack_dumps({"options": bilm.options.to_dict(), "arrays": arrays})
        return message

    def from_bytes(self, bytes_data: bytes) -> "BiLMShim":
        """Load what `to_bytes` returned. Raises ElmoError if it is damaged, and then changes nothing."""
        self.set_weights(*read_saved(bytes_data))
        return self

    def set_weights(self, options: BiLMOptions, arrays: Arrays) -> Embedder:
        """Replace the biLM by another one, of any sizes, and return it. The arrays belong to it from then on."""
        dtype = dtype_of(self.precision, self._device)
        with self._lock:
            self._embedder = Embedder.from_arrays(options, arrays, dtype, self._device, self.cached_words)
            return self._embedder

    def copy(self) -> "BiLMShim":
        """Return a copy with a new id, by which an optimizer distinguishes their states."""
        other = copy.deepcopy(self)
        with Shim.global_id_lock:
            Shim.global_id += 1
            other.id = Shim.global_id
        return other

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self.load()  # a pickle contains the weights, as the result of to_bytes does
            # a copy has no part in the open step
            return self.__dict__ | {"end_step": None, "pipe_settings": PipeSettings()}


def read_saved(data: object) -> tuple[BiLMOptions, Arrays]:
    """Return the options and the weights by parameter name that `BiLMShim.to_bytes` has written. Raises ElmoError."""
    with refusing_damage():
        content = srsly.msgpack_loads(data)
        if not isinstance(content, dict) or set(content) != {"options", "arrays"}:
            raise ValueError("it is not options and arrays")
        options, arrays = BiLMOptions.from_dict(content["options"], "the saved biLM"), dict(content["arrays"])
        halves = {name: array for name, array in arrays.items() if getattr(array, "dtype", None) == np.float16}
        arrays |= {name: array.astype(np.float32) for name, array in halves.items()}
        check_arrays(arrays, options, "the saved biLM")
    return options, arrays


@contextmanager
def refusing_damage() -> Iterator[None]:
    """Raise WeightsError in place of what damaged data raise, which may be of any class inside spaCy and Thinc."""
    collects = gc.isenabled()
    try:
        yield
    except ElmoError:
        raise
    except Exception as error:
        if collects:
            gc.enable()  # srsly leaves it off if a message is damaged
        reason = error or type(error).__name__
        raise WeightsError(
            f"the saved biLM is damaged or incomplete ({reason}). Save the complete pipeline again."
        ) from error


def bilm_shims(model: Model[Any, Any]) -> list[BiLMShim]:
    """Return the BiLMShims of a Thinc layer itself. A user's own model may have none."""
    return [shim for shim in model.shims if isinstance(shim, BiLMShim)]
