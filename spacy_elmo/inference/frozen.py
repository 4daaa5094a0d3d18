"""The owner of a biLM's weights while nobody trains them."""

import threading

import torch
from torch import Tensor

from ..formats.options import BiLMOptions
from ..formats.weights.table import expected_parameters
from ..modules import Arrays, BiLM
from ..modules.bilm import as_tensor
from .engine import Engine
from .layout import Layout


class FrozenBiLM:
    """Owns the weights of a biLM that nobody trains: each of them is in memory once.

    They are plain arrays until the first prepare_engine, and then in the engine's layout, from which they come back
    bit for bit. If memory runs out on the way some are plain and some laid out: none is lost, and the next call goes
    on from there.

    options: the sizes.
    arrays: the weights by parameter name, as formats.read_weights returns them. They move in here: the dict is empty
        afterwards.
    device: where the weights go.
    Thread-safe.
    """

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(self, options: BiLMOptions, arrays: Arrays, device: torch.device | str = "cpu") -> None:
        self.options = options
        self._names = list(expected_parameters(options, arrays))
        self._plain: dict[str, Tensor] = {}
        for name in self._names:
            self._plain[name] = as_tensor(arrays[name]).to(device)
            del arrays[name]
        self._layout: Layout | None = None
        self._engine: Engine | None = None
        self._lock = threading.RLock()

    @torch.inference_mode(False)
    @torch.no_grad()
    def prepare_engine(self, dtype: torch.dtype = torch.float32, cached_words: int = 0) -> Engine:
        """The engine that runs on these weights: the first call lays them out, the others return the same one.

        dtype, cached_words: see Engine.of.
        """
        with self._lock:
            if self._engine is None:
                if self._layout is None:
                    self._layout = Layout(self.options, self._plain, dtype, lossless=True)
                self._layout.lay_out(self._plain)
                self._engine = Engine(self._layout, cached_words)
            return self._engine

    def to_arrays(self) -> Arrays:
        """Copies of the weights, as formats.write_weights takes them."""
        return {name: tensor.cpu().numpy() for name, tensor in self._tensors(copied=True).items()}

    def to_network(self) -> BiLM:
        """A network with these weights, on their device. It shares those that are not laid out, and has copies of the
        others: whoever wants the weights in memory once drops this object.
        """
        with self._lock:
            tensors = self._tensors(copied=False)
            arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
            device = tensors["char_cnn.embedding.weight"].device
            return BiLM.from_arrays(self.options, arrays).to(device)

    @torch.inference_mode(False)
    @torch.no_grad()
    def _tensors(self, copied: bool) -> dict[str, Tensor]:
        with self._lock:
            found = {name: tensor.clone() if copied else tensor for name, tensor in self._plain.items()}
            found |= dict(self._layout.matrices()) if self._layout is not None else {}
            return {name: found[name] for name in self._names}
