"""A biLM inside a Thinc model: one owner of its weights, files that are read when first needed, no pickle."""

import copy
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from thinc.api import Model, Optimizer, Shim
from thinc.types import FloatsXd
from thinc.util import get_torch_default_device, torch2xp, xp2torch

from ..errors import Errors, SettingsError
from ..formats.options import BiLMOptions
from ..formats.truncated import TruncatedWords
from ..inference import CACHED_WORDS, Engine, FrozenBiLM, Precision, dtype_of
from ..modules import Arrays, BiLM, check_files, load_arrays, load_options
from .bilm_bytes import fingerprint_of, from_message, to_message

if hasattr(os, "register_at_fork"):
    # OpenMP's threads do not survive a fork: a child (nlp.pipe with n_process) that asks for them waits for ever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


class BiLMShim(Shim):
    """Holds the one owner of a biLM's weights.

    That is a FrozenBiLM, until somebody trains: unfreeze makes it a torch network, beside which each update makes a
    new engine necessary; freeze goes back. The properties change nothing. Every method that needs the current weights
    first settles: it applies what an open training step has gathered.

    options_file, weight_file: the official files; both None: the embedded biLM. They are read when weights are first
        needed, so that a saved pipeline, which brings its own, never looks at them.
    precision: of the engine's matrix multiplications.
    cached_words: see Engine.
    truncated: counts the tokens that were longer than the biLM reads.
    learn_rate_factor: what the optimizer's learning rate is multiplied with for this biLM.
    """

    def __init__(
        self,
        options_file: str | None,
        weight_file: str | None,
        precision: Precision = "float32",
        cached_words: int = CACHED_WORDS,
    ) -> None:
        super().__init__(None)
        check_files(options_file, weight_file)
        if not isinstance(cached_words, int) or isinstance(cached_words, bool) or cached_words < 0:
            raise SettingsError(Errors.CACHED_WORDS.format(got=cached_words))
        # the device of thinc's ops now, when the layer around this is built; other threads may have other ops
        self._device = get_torch_default_device()
        dtype_of(precision, self._device)
        self.options_file, self.weight_file = options_file, weight_file
        self.precision, self.cached_words = precision, cached_words
        self.truncated = TruncatedWords("the n of model.shims[0].truncated")
        self.learn_rate_factor = 1.0
        self._model: FrozenBiLM | BiLM | None = None  # None: the files were not read
        self._engine: Engine | None = None  # beside a network
        self._fingerprint: str | None = None
        self._settle_step: Callable[[], None] | None = None
        self._lock = threading.RLock()

    @property
    def options(self) -> BiLMOptions:
        """The biLM's sizes: those of its weights, or of options_file before they are read. Raises ElmoError then."""
        owner = self._model
        return load_options(self.options_file) if owner is None else owner.options

    @property
    def dtype(self) -> torch.dtype:
        """Of the engine's matrix multiplications: what `precision` means on this machine."""
        return dtype_of(self.precision, self._device)

    def load(self) -> FrozenBiLM | BiLM:
        """Read the files, unless there are weights; return the owner. Raises ElmoError for files that can't be used."""
        with self._lock:
            if self._model is None:
                self._own(FrozenBiLM(*load_arrays(self.options_file, self.weight_file), self._device))
            assert self._model is not None
            return self._model

    def _own(self, owner: FrozenBiLM | BiLM) -> None:
        self._model = owner
        self._forget()

    def _forget(self) -> None:
        self._engine = self._fingerprint = None  # derived from the weights

    def open_step(self, settle: Callable[[], None] | None) -> None:
        """A training step begins whose update may come late; None: the last one is over.

        settle: applies what the step has gathered by then, or does nothing if it is too early.
        """
        self._settle_step = settle

    def settle(self) -> None:
        """Apply what an open training step has gathered; this may run the biLM's backward pass."""
        if self._settle_step is not None:
            self._settle_step()

    def prepare_engine(self) -> Engine:
        """The forward pass over the current weights. Settles, reads the files and lays weights out, if need be.

        Valid until the weights change. Raises ElmoError for files that can't be used.
        """
        with self._lock:
            self.settle()
            owner = self.load()
            if isinstance(owner, FrozenBiLM):
                return owner.prepare_engine(self.dtype, self.cached_words)
            if self._engine is None:
                self._engine = Engine.of(owner, self.dtype, self.cached_words)
            return self._engine

    def unfreeze(self) -> BiLM:
        """Hand the weights over to a torch network, which owns them from now on, and return it. Settles.

        The engine beside it runs on copies, so that the weights are in memory twice until freeze; it does not follow
        changes but those of finish_update, use_params and from_bytes.
        """
        with self._lock:
            self.settle()
            owner = self.load()
            if isinstance(owner, FrozenBiLM):
                self._model = owner = owner.to_network()
            return owner

    def freeze(self) -> None:
        """Take the weights back from the network that unfreeze has returned. Settles; other gradients are lost."""
        with self._lock:
            self.settle()
            if isinstance(self._model, BiLM):
                self._own(FrozenBiLM(self._model.options, self._model.to_arrays(), self._device))

    def to_arrays(self) -> Arrays:
        """Copies of the current weights by parameter name. Settles."""
        with self._lock:
            self.settle()
            return self.load().to_arrays()

    def compute_fingerprint(self) -> str:
        """A digest of options and weights: the same for the same biLM, wherever it was loaded from. Settles."""
        with self._lock:
            self.settle()
            if self._fingerprint is None:
                owner = self.load()
                self._fingerprint = fingerprint_of(owner.options, owner.to_arrays())
            return self._fingerprint

    def finish_update(self, optimizer: Optimizer) -> None:
        """Apply the gradients that backprop has gathered, and forget them."""
        with self._lock:
            self.settle()
            if not isinstance(self._model, BiLM):  # never trained, so there are none
                return
            for name, parameter in self._model.named_parameters():
                if parameter.grad is not None:
                    weights = cast(FloatsXd, torch2xp(parameter.data))
                    gradient = cast(FloatsXd, torch2xp(parameter.grad))
                    updated, _ = optimizer((self.id, name), weights, gradient, lr_scale=self.learn_rate_factor)
                    if updated is not weights:  # thinc's own optimizers write into what they are given
                        parameter.data.copy_(xp2torch(updated, device=parameter.device))
                    parameter.grad = None
                    self._forget()

    def train_all(self) -> None:
        """Let training reach all parts."""
        with self._lock:
            self.settle()
            if isinstance(self._model, BiLM):  # else it does, once there is a network
                self._model.requires_grad_(True)

    @contextmanager
    def use_params(self, params: Mapping[tuple[int, str], Any]) -> Iterator[None]:
        """Other weights for a while, an optimizer's averages for one.

        params: (this shim's id, name) -> array. Those of other shims and layers are left alone.
        """
        names = [name for shim, name in params if shim == self.id]
        if not names:
            yield
            return
        parameters = dict(self.unfreeze().named_parameters())
        before = {name: parameters[name].data for name in names}

        def put(values: Mapping[str, torch.Tensor]) -> None:
            with self._lock:
                for name, value in values.items():
                    parameters[name].data = value
                self._forget()

        put({name: xp2torch(params[self.id, name], device=before[name].device).clone() for name in names})
        try:
            yield
        finally:
            put(before)

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the weights; "cpu" or "gpu"."""
        with self._lock:
            self._device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
            if isinstance(self._model, FrozenBiLM):
                self._own(FrozenBiLM(self._model.options, self._model.to_arrays(), self._device))
            elif self._model is not None:
                self._own(self._model.to(self._device))

    def to_bytes(self) -> bytes:
        """Options and arrays in msgpack. Settles."""
        with self._lock:
            options, arrays = self.load().options, self.to_arrays()
        return to_message(options, arrays)

    def from_bytes(self, bytes_data: bytes) -> "BiLMShim":
        """Become what to_bytes saved. Raises ElmoError if sizes and arrays disagree."""
        options, arrays = from_message(bytes_data)
        with self._lock:
            self._own(FrozenBiLM(options, arrays, self._device))
        return self

    def copy(self) -> "BiLMShim":
        """A copy with an id of its own, by which an optimizer tells their states apart. Settles."""
        other = copy.deepcopy(self)
        with Shim.global_id_lock:
            Shim.global_id += 1
            other.id = Shim.global_id
        return other

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self.settle()
            owner = self.load()  # a pickle holds the weights, as to_bytes does
            saved = (owner.options, owner.to_arrays()) if isinstance(owner, FrozenBiLM) else owner
            # an open step belongs to this one alone
            state = self.__dict__ | {"_model": saved, "_engine": None, "_settle_step": None}
        return {name: value for name, value in state.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        owner = state["_model"]
        if isinstance(owner, tuple):
            owner = FrozenBiLM(owner[0], owner[1], state["_device"])
        self.__dict__.update(state, _model=owner, _lock=threading.RLock())


def bilm_shims(model: Model[Any, Any]) -> list[BiLMShim]:
    """Those of a layer itself; a model of someone else's may have none."""
    return [shim for shim in model.shims if isinstance(shim, BiLMShim)]
