"""The torch biLM inside a Thinc model: loads its files when first needed, saves itself without pickle."""

import copy
import os
import threading
from typing import Any, cast

import srsly
import torch
from thinc.api import Optimizer, Shim
from thinc.types import FloatsXd
from thinc.util import get_torch_default_device, torch2xp, xp2torch

from ..errors import Errors, SettingsError, WeightsError
from ..formats.options import BiLMOptions
from ..formats.truncated import TruncatedWords
from ..formats.weights_checks import check_arrays
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
        self._engine: Engine | None = None
        self._lock = threading.RLock()

    @property
    def bilm(self) -> BiLM:
        """The network. Raises ElmoError where its files can't be read.

        Its weights may change through finish_update and from_bytes alone: the engine keeps copies of them.
        """
        with self._lock:
            if self._model is None:
                self._set(load_bilm(self.options_file, self.weight_file))
            bilm: BiLM = self._model
            return bilm

    @property
    def engine(self) -> Engine:
        """The fast forward pass over the current weights."""
        with self._lock:
            if self._engine is None:
                self._engine = Engine(self.bilm, dtype_of(self.precision, self._device), self.cached_words)
            return self._engine

    def _set(self, bilm: BiLM) -> None:
        self._model = bilm.to(self._device)
        self._engine = None

    def finish_update(self, optimizer: Optimizer) -> None:
        """Apply the gradients that backprop has gathered, and forget them."""
        if self._model is None:
            return
        with self._lock:
            for name, parameter in self.bilm.named_parameters():
                if parameter.grad is not None:
                    weights = cast(FloatsXd, torch2xp(parameter.data))
                    updated, _ = optimizer((self.id, name), weights, cast(FloatsXd, torch2xp(parameter.grad)))
                    parameter.data = xp2torch(updated, device=parameter.device)
                    parameter.grad = None
                    self._engine = None

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the network; "cpu" or "gpu"."""
        with self._lock:
            self._device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
            if self._model is not None:
                self._set(self._model)

    def to_bytes(self) -> bytes:
        """Options and arrays in msgpack."""
        result: bytes = srsly.msgpack_dumps({"options": self.bilm.options.to_dict(), "arrays": self.bilm.to_arrays()})
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
        other = copy.deepcopy(self)
        with Shim.global_id_lock:
            Shim.global_id += 1
            other.id = Shim.global_id
        return other

    def __getstate__(self) -> dict[str, Any]:
        _ = self.bilm  # a pickle holds the weights, as to_bytes does
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_engine")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _engine=None, _lock=threading.RLock())
