"""The torch biLM inside a Thinc model: loads its files when first needed, saves itself without pickle."""

import copy
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import srsly
import torch
from thinc.api import Model, Optimizer, Shim
from thinc.types import FloatsXd
from thinc.util import get_torch_default_device, torch2xp, xp2torch

from ..errors import Errors, SettingsError, WeightsError
from ..formats.options import BiLMOptions
from ..formats.truncated import TruncatedWords
from ..formats.weights.checks import check_arrays
from ..inference import CACHED_WORDS, Engine, Precision, dtype_of
from ..modules import BiLM, check_files, load_bilm

if hasattr(os, "register_at_fork"):
    # OpenMP's threads do not survive a fork: a child (nlp.pipe with n_process) that asks for them waits for ever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


class BiLMShim(Shim):
    """Holds a biLM.

    options_file, weight_file: the official files; both None: the embedded biLM. They are read when the network is
    first needed, so that a saved pipeline, which brings its own weights, never looks at them.
    precision: of the engine's products; cached_words: see Engine.
    truncated: counts the tokens that were longer than the biLM reads.
    learn_rate_factor: what the optimizer's learning rate is multiplied with for this biLM.
    before_use: called before the weights are read; a pipe that tunes the biLM applies here what it still holds.
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
        self.before_use: Callable[[], None] | None = None
        self._engine: Engine | None = None
        self._fingerprint: str | None = None
        self._given = False  # whether others may have the network
        self._lock = threading.RLock()

    @property
    def bilm(self) -> BiLM:
        """The network. Raises ElmoError where its files can't be read.

        Its weights may change through finish_update and from_bytes alone: the engine keeps copies of them. Once it was
        asked for, its matrices are in memory twice; see Engine's take.
        """
        with self._lock:
            bilm, self._given = self._network(), True
            if self._engine is not None:
                self._engine.give_back()
            return bilm

    @property
    def options(self) -> BiLMOptions:
        """The network's. Raises ElmoError where its files can't be read."""
        with self._lock:
            return self._network().options

    def _network(self) -> BiLM:
        """The engine may have its matrices."""
        if self.before_use is not None:
            self.before_use()
        if self._model is None:
            self._set(load_bilm(self.options_file, self.weight_file))
        bilm: BiLM = self._model
        bilm.reclaim()
        return bilm

    @property
    def engine(self) -> Engine:
        """The fast forward pass over the current weights."""
        with self._lock:
            bilm = self._network()  # may drop the engine
            if self._engine is None:
                self._engine = Engine(bilm, self.dtype, self.cached_words, take=not self._given)
            return self._engine

    @property
    def dtype(self) -> torch.dtype:
        """Of the engine's products: what `precision` means on this machine."""
        return dtype_of(self.precision, self._device)

    @property
    def fingerprint(self) -> str:
        """A digest of options and weights: the same for the same network, wherever it was loaded from."""
        with self._lock:
            options = self._network().options
            if self._fingerprint is None:
                digest = hashlib.blake2b(json.dumps(options.to_dict(), sort_keys=True).encode(), digest_size=16)
                for name, array in sorted(self._arrays().items()):
                    digest.update(name.encode())
                    digest.update(array.tobytes())
                self._fingerprint = digest.hexdigest()
            return self._fingerprint

    def _arrays(self) -> dict[str, np.ndarray]:
        """Copies of the weights."""
        bilm = self._network()
        arrays = bilm.to_arrays()
        if self._engine is not None:
            names = {id(parameter): name for name, parameter in bilm.named_parameters()}
            arrays |= {names[id(taken)]: values.cpu().numpy() for taken, values in self._engine.matrices()}
        return arrays

    def _set(self, bilm: BiLM) -> None:
        """A network that nobody else has."""
        self._engine = self._fingerprint = None
        self._model, self._given = bilm.to(self._device), False

    def _forget(self) -> None:
        """What was derived from the weights."""
        if self._engine is not None:
            self._engine.give_back()
        self._engine = self._fingerprint = None

    def finish_update(self, optimizer: Optimizer) -> None:
        """Apply the gradients that backprop has gathered, and forget them."""
        if self._model is None:
            return
        with self._lock:
            for name, parameter in self.bilm.named_parameters():
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
            self._network().requires_grad_(True)

    def train_from_top(self, parts: int) -> None:
        """Let training reach the topmost parts alone: LSTM layers, and below them the character encoder."""
        bilm = self.bilm
        for number, part in enumerate([*reversed(bilm.lstm.layers), bilm.char_cnn]):
            part.requires_grad_(number < parts)

    @contextmanager
    def use_params(self, params: Mapping[tuple[int, str], Any]) -> Iterator[None]:
        """Other weights for a while, an optimizer's averages for one. params: (this shim's id, name) -> array."""
        names = [name for shim, name in params if shim == self.id]
        if not names:
            yield
            return
        parameters = dict(self.bilm.named_parameters())
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
        """Move the network; "cpu" or "gpu"."""
        with self._lock:
            self._forget()
            self._device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
            if self._model is not None:
                self._model.to(self._device)

    def to_bytes(self) -> bytes:
        """Options and arrays in msgpack."""
        with self._lock:
            message = {"options": self._network().options.to_dict(), "arrays": self._arrays()}
        result: bytes = srsly.msgpack_dumps(message)
        return result

    def from_bytes(self, bytes_data: bytes) -> "BiLMShim":
        """Become what to_bytes saved. Raises ElmoError where sizes and arrays disagree."""
        try:
            message = srsly.msgpack_loads(bytes_data)
            saved_options, arrays = message["options"], dict(message["arrays"])
        except (ValueError, TypeError, KeyError) as error:
            raise WeightsError(Errors.SAVED_DAMAGED.format(reason=error or type(error).__name__)) from error
        options = BiLMOptions.from_dict(saved_options, Errors.SAVED)
        check_arrays(arrays, options, Errors.SAVED)
        with self._lock:
            self._set(BiLM.from_arrays(options, arrays))
        return self

    def copy(self) -> "BiLMShim":
        """A copy with an id of its own, by which an optimizer tells their states apart."""
        other = copy.deepcopy(self)  # without before_use: what it holds belongs to this one
        with Shim.global_id_lock:
            Shim.global_id += 1
            other.id = Shim.global_id
        return other

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            bilm = self._network()  # a pickle holds the weights, as to_bytes does
            if self._engine is not None and self._engine.is_taken:
                bilm = BiLM.from_arrays(bilm.options, self._arrays()).to(self._device)
            elif not self._given:
                bilm = copy.deepcopy(bilm)  # before this one is read, another thread's first use may empty it
            state = self.__dict__ | {"_model": bilm}
        return {name: value for name, value in state.items() if name not in ("_lock", "_engine", "before_use")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _engine=None, _given=False, before_use=None, _lock=threading.RLock())


def bilm_shims(model: Model[Any, Any]) -> list[BiLMShim]:
    """Those of a layer itself; a model of someone else's may have none."""
    return [shim for shim in model.shims if isinstance(shim, BiLMShim)]
