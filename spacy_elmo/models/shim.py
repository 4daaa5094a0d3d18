"""The Thinc shim that holds a biLM's weights. It reads their files when they are first needed, and saves no pickle."""

import copy
import gc
import hashlib
import json
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

from ..errors import ElmoError, SettingsError, WeightsError
from ..formats.characters import TruncatedWords
from ..formats.hdf5 import Floats, in_float16
from ..formats.messages import read_message
from ..formats.options import MAX_FILTERS, BiLMOptions
from ..formats.weights import check_arrays, expected_parameters
from ..inference import CACHED_WORDS, Engine, FrozenBiLM, LayerCache, Precision, dtype_of
from ..locks import Lock
from ..modules import Arrays, BiLM, check_files, load_arrays, load_options
from .types import is_whole

# More than the parameters of a biLM with the most layers, filters and highway layers that its options may have.
_MAX_ARRAYS = 1024


@dataclass(frozen=True)
class Use:
    """What an elmo pipe decides about its biLM. A copy of the biLM is not the pipe's, so it has the defaults again."""

    tuned: bool = False
    learn_rate_factor: float = 1.0
    max_batch_tokens: int = 8192
    cache: LayerCache | None = None


class BiLMShim(Shim):
    """Holds the one owner of a biLM's weights: a FrozenBiLM, or after `unfreeze` a torch network, which can be trained.

    In training, gradients may arrive after spaCy has asked for the update (see `Step` in models/listener.py). So each
    method that needs the current weights first settles: it applies the gradients that the open training step has
    summed. Properties change nothing.

    The files are read when weights are first needed. A saved pipeline contains its weights and never reads them.

    use: what the elmo pipe decides that has this biLM.
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
        if not is_whole(cached_words) or cached_words < 0:
            raise SettingsError(
                f"model.cached_words is {cached_words!r}. Expected a whole number, 0 or more; 0 caches no words."
            )
        # the device of Thinc's ops at the time when the layer is built; other threads may have other ops
        self._device = get_torch_default_device()
        dtype_of(precision, self._device)
        self.options_file, self.weight_file, self.bilm = options_file, weight_file, bilm
        self.precision, self.cached_words = precision, cached_words
        self.use = Use()
        self.truncated = TruncatedWords("the n of model.shims[0].truncated")
        self._model: FrozenBiLM | BiLM | None = None  # None: the files have not been read
        self._engine: Engine | None = None  # the engine for a torch network; a FrozenBiLM has its own
        self._fingerprint: str | None = None
        self._settle_step: Callable[[], None] | None = None
        self._lock = Lock()

    @property
    def options(self) -> BiLMOptions:
        """The biLM's options. Before weights are read they come from their file. Raises ElmoError if it is wrong."""
        owner = self._model
        return load_options(self.options_file, self.bilm) if owner is None else owner.options

    @property
    def dtype(self) -> torch.dtype:
        """Type of the engine's matrix multiplications: what `precision` means on this machine."""
        return dtype_of(self.precision, self._device)

    def load(self) -> FrozenBiLM | BiLM:
        """Return the weights' owner. Read the files if there is none. Raises ElmoError if they cannot be used."""
        with self._lock:
            if self._model is None:
                arrays = load_arrays(self.options_file, self.weight_file, self.bilm)
                self._set_owner(FrozenBiLM(*arrays, self._device))
            assert self._model is not None
            return self._model

    def prepare_engine(self) -> Engine:
        """Return an engine, which is valid until the weights change. Settles, and loads the weights as `load` does."""
        with self._lock:
            self.settle()
            owner = self.load()
            if isinstance(owner, FrozenBiLM):
                return owner.prepare_engine(self.dtype, self.cached_words)
            if self._engine is None:
                self._engine = Engine.of(owner, self.dtype, self.cached_words)
            return self._engine

    def to_arrays(self) -> Arrays:
        """Return copies of the current weights by parameter name. Settles."""
        with self._lock:
            self.settle()
            return self.load().to_arrays()

    def compute_fingerprint(self) -> str:
        """Return a digest of options and weights. Settles."""
        with self._lock:
            self.settle()
            if self._fingerprint is None:
                owner = self.load()
                self._fingerprint = fingerprint_of(owner.options, owner.to_arrays())
            return self._fingerprint

    def unfreeze(self) -> BiLM:
        """Hand the weights over to a torch network, which owns them until others are loaded, and return it. Settles.

        From then on the engine has copies of the weights, so that they are in memory twice. A new engine is made after
        `finish_update`, `use_params` and `from_bytes`, but not after other changes of the network.
        """
        with self._lock:
            self.settle()
            owner = self.load()
            if isinstance(owner, FrozenBiLM):
                self._model = owner = owner.to_network()
            return owner

    def train_all(self) -> None:
        """Let training reach all parts of the biLM. Settles."""
        with self._lock:
            self.settle()
            if isinstance(self._model, BiLM):  # in a new network training reaches all parts
                self._model.requires_grad_(True)

    def open_step(self, settle: Callable[[], None] | None) -> None:
        """Set what ends the open training step and applies its gradients; None: the step is over."""
        self._settle_step = settle

    def settle(self) -> None:
        """Apply the gradients of the open training step, if there is one."""
        if self._settle_step is not None:
            self._settle_step()

    def finish_update(self, optimizer: Optimizer) -> None:
        """Apply the gradients that backprop has summed, and clear them. Settles. An optimizer may be any callable."""
        with self._lock:
            self.settle()
            if not isinstance(self._model, BiLM):  # it has never been trained, so there are no gradients
                return
            of_thinc = isinstance(optimizer, Optimizer)
            for name, parameter in self._model.named_parameters():
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
                l2 = optimizer.L2 if of_thinc else 0.0
                if of_thinc and name.endswith("bias"):
                    optimizer.L2 = 0.0
                try:
                    updated, _ = optimizer(key, weights, gradient, lr_scale=self.use.learn_rate_factor)
                finally:
                    if of_thinc:
                        optimizer.L2 = l2
                if updated is not weights:  # Thinc's optimizers write into `weights`, others may not
                    parameter.data.copy_(xp2torch(updated, device=parameter.device))
                parameter.grad = None
                self._drop_derived()

    @contextmanager
    def use_params(self, params: Mapping[tuple[int, str], Any]) -> Iterator[None]:
        """Use other weights for a while, such as an optimizer's averages, by (id of a shim, parameter name)."""
        own = {name for owner, name in params if owner == self.id}
        # another layer may have the same id: layers and shims are counted apart, both from 1
        names = own & expected_parameters(self.options, own).keys() if own and self._model is not None else set()
        if not names:
            yield
            return
        parameters = dict(self.unfreeze().named_parameters())
        before = {name: parameters[name].data for name in names}

        def assign(values: Mapping[str, torch.Tensor]) -> None:
            with self._lock:
                for name, value in values.items():
                    parameters[name].data = value
                self._drop_derived()

        assign({name: xp2torch(params[self.id, name], device=before[name].device).clone() for name in names})
        try:
            yield
        finally:
            assign(before)

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the weights to the CPU (device_type "cpu") or to the GPU with this number ("gpu"). Settles."""
        with self._lock:
            self.settle()
            self._device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
            if isinstance(self._model, FrozenBiLM):
                self._set_owner(FrozenBiLM(self._model.options, self._model.to_arrays(), self._device))
            elif self._model is not None:
                self._set_owner(self._model.to(self._device))

    def to_bytes(self) -> bytes:
        """Return options and weights in msgpack, those in float16 that it has exactly. Settles."""
        with self._lock:
            options = self.load().options
            arrays = {name: in_float16(array) for name, array in self.to_arrays().items()}
        message: bytes = srsly.msgpack_dumps({"options": options.to_dict(), "arrays": arrays})
        return message

    def from_bytes(self, bytes_data: bytes) -> "BiLMShim":
        """Load what `to_bytes` returned. Raises ElmoError if it is damaged, and then changes nothing."""
        self.set_weights(*read_saved(bytes_data))
        return self

    def set_weights(self, options: BiLMOptions, arrays: Arrays) -> None:
        """Replace the biLM by another one, of any sizes."""
        with self._lock:
            self._set_owner(FrozenBiLM(options, arrays, self._device))

    def copy(self) -> "BiLMShim":
        """Return a copy with a new id, by which an optimizer distinguishes their states. Settles."""
        other = copy.deepcopy(self)
        with Shim.global_id_lock:
            Shim.global_id += 1
            other.id = Shim.global_id
        return other

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self.settle()
            owner = self.load()  # a pickle contains the weights, as the result of to_bytes does
            saved = (owner.options, owner.to_arrays()) if isinstance(owner, FrozenBiLM) else owner
            # a copy has no part in the open step
            return self.__dict__ | {"_model": saved, "_engine": None, "_settle_step": None, "use": Use()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        owner = state["_model"]
        if isinstance(owner, tuple):
            owner = FrozenBiLM(owner[0], owner[1], state["_device"])
        self.__dict__.update(state, _model=owner)

    def _set_owner(self, owner: FrozenBiLM | BiLM) -> None:
        self._drop_derived()  # first: a process that is forked here must not have the engine of other weights
        self._model = owner

    def _drop_derived(self) -> None:
        self._engine = self._fingerprint = None  # they are computed from the weights


def read_saved(data: object) -> tuple[BiLMOptions, Arrays]:
    """Return the options and the weights by parameter name that `BiLMShim.to_bytes` has written. Raises ElmoError."""
    with refusing_damage():
        content = read_message(data, longest_list=MAX_FILTERS, longest_map=_MAX_ARRAYS)
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


def fingerprint_of(options: BiLMOptions, arrays: Mapping[str, Floats]) -> str:
    """Return a digest of 32 hexadecimal digits. The order of the arrays makes no difference."""
    digest = hashlib.blake2b(json.dumps(options.to_dict(), sort_keys=True).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def bilm_shims(model: Model[Any, Any]) -> list[BiLMShim]:
    """Return the BiLMShims of a Thinc layer itself. A user's own model may have none."""
    return [shim for shim in model.shims if isinstance(shim, BiLMShim)]
