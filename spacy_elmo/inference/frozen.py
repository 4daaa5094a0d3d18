"""The owner of a biLM's weights while they are not trained."""

import threading

import torch
from torch import Tensor

from ..errors import Errors
from ..formats.options import BiLMOptions
from ..formats.weights.checks import check_shapes
from ..formats.weights.table import expected_parameters
from ..modules import Arrays, BiLM
from ..modules.bilm import as_tensor
from .engine import Engine
from .layout import Layout


class FrozenBiLM:
    """Owns the weights of a biLM that is not trained. Each weight is in memory once.

    Until the first `prepare_engine` the weights are plain tensors. Then their matrices are in the engine's layout, from
    which they can be restored bit for bit. If memory runs out while they are laid out, some matrices are plain and some
    are laid out. None is lost, and the next call lays out the others.

    It is thread-safe.

    options: the biLM's options.
    arrays: the weights by parameter name, as formats.read_weights returns them. The dict is emptied, so that this
        object is their only owner.
    device: the device of the weights.

    Raises WeightsError for arrays that are missing, unexpected, misshapen or not float32. The dict is then unchanged.
    """

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, options: BiLMOptions, arrays: Arrays, device: torch.device | str = "cpu") -> None:
        check_shapes(arrays, options, Errors.IN_MEMORY)
        self.options = options
        self._names = list(expected_parameters(options, arrays))
        self._plain: dict[str, Tensor] = {}
        for name in self._names:
            self._plain[name] = as_tensor(arrays[name]).to(device)
            del arrays[name]
        self._layout: Layout | None = None
        self._engine: Engine | None = None
        self._engine_for: tuple[torch.dtype, int] | None = None  # the arguments that it was prepared with
        self._lock = threading.RLock()

    @torch.inference_mode(False)
    @torch.no_grad()
    def prepare_engine(self, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> Engine:
        """Return the engine of these weights, the same one for the same arguments.

        The first call lays the weights out. A call with another dtype restores them and lays them out again.

        dtype: type of the matrix multiplications, float32 or bfloat16.
        cached_words: number of words whose vectors are cached.
        """
        with self._lock:
            if self._engine is not None and (dtype, cached_words) == self._engine_for:
                return self._engine
            if self._layout is not None and self._layout.dtype != dtype:
                self._plain = self._tensors(copied=False)
                self._layout = self._engine = None
            if self._layout is None:
                self._layout = Layout(self.options, self._plain, dtype, lossless=True)
            self._layout.lay_out(self._plain)
            self._engine, self._engine_for = Engine(self._layout, cached_words), (dtype, cached_words)
            return self._engine

    def to_arrays(self) -> Arrays:
        """Return copies of the weights by parameter name, as formats.write_weights expects them."""
        return {name: tensor.cpu().numpy() for name, tensor in self._tensors(copied=True).items()}

    def __reduce__(self) -> tuple[type["FrozenBiLM"], tuple[BiLMOptions, Arrays, torch.device]]:
        # an engine's layout can't be copied; a copy makes its own
        with self._lock:
            return FrozenBiLM, (self.options, self.to_arrays(), self._plain["char_cnn.embedding.weight"].device)

    def to_network(self) -> BiLM:
        """Return a network with copies of these weights, on their device.

        To have the weights in memory only once, delete this object.
        """
        with self._lock:
            device = self._plain["char_cnn.embedding.weight"].device
            return BiLM.from_arrays(self.options, self.to_arrays()).to(device)

    @torch.inference_mode(False)
    @torch.no_grad()
    def _tensors(self, copied: bool) -> dict[str, Tensor]:
        with self._lock:
            tensors = {name: tensor.clone() if copied else tensor for name, tensor in self._plain.items()}
            tensors |= dict(self._layout.matrices()) if self._layout is not None else {}
            return {name: tensors[name] for name in self._names}
