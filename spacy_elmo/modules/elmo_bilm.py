"""A biLM behind the interface that AllenNLP's Elmo expects of its module."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ElmoError, Errors, SettingsError, shown
from ..formats.characters import words_to_ids
from .bilm import BiLM
from .lstm import LstmState


class ElmoBiLM(nn.Module):
    """Called with (inputs, word_inputs), returns activations and mask, both with `<S>` and `</S>`.

    vocab_to_cache: words of which the layer-0 vectors are kept while the biLM is not trained; word_inputs are places
        in it, 0 is padding.
    stateful: whether row i of a batch starts from the state in which row i of the batch before left the LSTMs.
    """

    def __init__(self, bilm: BiLM, vocab_to_cache: Sequence[str] | None = None, stateful: bool = False) -> None:
        super().__init__()
        self.bilm, self.stateful = bilm, stateful
        self.vocabulary = None if vocab_to_cache is None else _vocabulary_ids(vocab_to_cache, bilm)
        self._cached: tuple[Any, Tensor] | None = None
        self._state: LstmState | None = None

    @property
    def num_layers(self) -> int:
        """Layers of the representation: the character encoder's and the LSTMs'."""
        return self.bilm.options.layers

    def get_output_dim(self) -> int:
        """Size of a vector."""
        return self.bilm.options.width

    def reset_states(self) -> None:
        """Start the next batch from the zero state."""
        self._state = None

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Run sentences.

        inputs: *Shape:* (batch, tokens, characters); word_inputs: *Shape:* (batch, tokens).
        Returns activations, a list of (batch, tokens + 2, width), and mask, bool, (batch, tokens + 2).
        """
        state = self._start() if self.stateful else None
        if word_inputs is None or self.vocabulary is None:
            output = self.bilm(inputs, state)
        else:
            output = self.bilm.read(*self._look_up(inputs, word_inputs, self.vocabulary), state)
        if self.stateful:
            self._state = LstmState(output.state.h.detach(), output.state.c.detach())
        return {"activations": list(output.layers), "mask": output.mask}

    def _start(self) -> LstmState:
        zero = self.bilm.lstm.zero_state(0)
        if self._state is None:
            return zero
        return LstmState(*(s.to(z) for s, z in zip(self._state, zero)))  # the module may have moved

    def _look_up(self, inputs: Tensor, words: Tensor, vocabulary: Tensor) -> tuple[Tensor, Tensor]:
        """Layer 0 with boundaries, *Shape:* (batch, tokens + 2, projection_dim), and the lengths, (batch,)."""
        vocabulary = vocabulary.to(words.device)
        inside, read = words < len(vocabulary), words > 0
        written = (inputs > 0).any(2)
        if (words < 0).any():
            raise ElmoError(Errors.ELMO_WORD_NEGATIVE.format(got=int(words.min())))
        if (~inside & ~written).any():
            got = int(words[~inside & ~written][0])
            raise ElmoError(Errors.ELMO_WORD_UNKNOWN.format(got=got, size=len(vocabulary)))
        places = torch.where(inside, words, 0)
        # what stands in inputs decides: a place in the vocabulary of other characters is an unknown word's
        known = inside & (~written | (vocabulary[places] == inputs).all(2))
        vectors = self._vectors(vocabulary)
        x = vectors[places + 2]
        unknown = read & ~known
        if unknown.any():
            x = x.index_put((unknown,), self.bilm.char_cnn(inputs[unknown]))
        batch, tokens = words.shape
        lengths = read.sum(1)
        x = torch.cat([vectors[:1].expand(batch, 1, -1), x, x.new_zeros(batch, 1, x.shape[2])], 1)
        ends = torch.arange(tokens + 2, device=words.device)[None] == (lengths + 1)[:, None]
        return torch.where(ends[..., None], vectors[1], x), lengths

    def _vectors(self, vocabulary: Tensor) -> Tensor:
        """Of `<S>`, `</S>` and the vocabulary, *Shape:* (2 + words, projection_dim); kept while nothing is trained."""
        parameters = list(self.bilm.char_cnn.parameters())
        ids = torch.cat([self.bilm.boundary, vocabulary.to(self.bilm.boundary.device)])
        if any(parameter.requires_grad for parameter in parameters):
            vectors: Tensor = self.bilm.char_cnn(ids)
            return vectors
        # loading weights counts a parameter's version up, moving the module changes device or dtype
        key = [(parameter._version, parameter.device, parameter.dtype) for parameter in parameters]
        if self._cached is None or self._cached[0] != key:
            self._cached = (key, self.bilm.char_cnn(ids).detach())
        return self._cached[1]


def _vocabulary_ids(words: Sequence[str], bilm: BiLM) -> Tensor:
    if isinstance(words, str) or not len(words):
        raise SettingsError(Errors.ELMO_VOCABULARY.format(got=shown(words)))
    return torch.from_numpy(words_to_ids(list(words), bilm.options.max_characters))
