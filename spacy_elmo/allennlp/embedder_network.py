"""The network of an ElmoEmbedder and its state, as AllenNLP's users reach them."""

import weakref

from ..inference.engine import Engine
from ..inference.frozen import FrozenBiLM
from ..modules import BiLM
from .carried import Carrying
from .devices import number_of
from .raw_layers import RawBiLM


class EmbedderNetwork(Carrying):
    """Base class of ElmoEmbedder: what holds the weights, and the state from batch to batch."""

    _engine: Engine
    _owner: FrozenBiLM | BiLM  # the owner of the weights; a BiLM only after from_bilm
    _network: weakref.ref[RawBiLM] | None

    @property
    def elmo_bilm(self) -> RawBiLM:
        """The network, with the interface of AllenNLP's, which has this name, too: `elmo_bilm(ids)["activations"]`.

        It has the state of the embedder: `elmo_bilm._elmo_lstm.reset_states()` resets that of both. Changes of its
        weights have no effect on the embedder. As long as there is a reference to it, it is always the same object.
        Its `bilm` is what from_bilm was called with; otherwise it is a copy, and the weights are in memory twice.
        """
        network = None if self._network is None else self._network()
        if network is None:
            bilm = self._owner
            if not isinstance(bilm, BiLM):
                # as in AllenNLP, it is not trained: else its outputs could not become arrays
                bilm = BiLM.from_arrays(bilm.options, bilm.to_arrays()).requires_grad_(False).to(self._engine.device)
            network = RawBiLM(bilm, carried=self._carried)
            self._network = weakref.ref(network)
        return network

    @property
    def cuda_device(self) -> int:
        """Number of the GPU; -1: the CPU."""
        return number_of(self._engine.device)

    def reset_states(self) -> None:
        """Let the next batch start from the zero state."""
        self._carried.reset()
