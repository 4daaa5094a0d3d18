"""A biLM behind the interface that AllenNLP's Elmo expects of its module."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import ElmoError, Errors, SettingsError, shown
from ..formats.characters import words_to_ids
from ..modules.bilm import BiLM, BiLMOutput
from ..modules.lstm.layers import LstmState


class _Cached(NamedTuple):
    """vectors: *Shape:* (2 + words, projection_dim), made by parameters of these versions.

    parameters: kept, since another tensor could else come to lie at the address of one that was replaced.
    """

    parameters: list[Tensor]
    versions: list[int]
    vectors: Tensor

    def fits(self, parameters: Sequence[Tensor]) -> bool:
        """Whether these are the same tensors and nothing was written into them (but for writes to `.data`)."""
        return len(parameters) == len(self.parameters) and all(
            (old.data_ptr(), old.device, old.dtype, version) == (new.data_ptr(), new.device, new.dtype, new._version)
            for old, version, new in zip(self.parameters, self.versions, parameters)
        )


class ElmoBiLM(nn.Module):
    """Called with (inputs, word_inputs), returns activations and mask, both with `<S>` and `</S>`.

    vocab_to_cache: words of which the layer-0 vectors are kept while the biLM is not trained; word_inputs are places
        in it, 0 is padding.
    stateful: whether row i of a batch starts from the state in which row i of the batch before left the LSTMs.
    """

    vocabulary: Tensor | None

    def __init__(self, bilm: BiLM, vocab_to_cache: Sequence[str] | None = None, stateful: bool = False) -> None:
        super().__init__()
        self.bilm, self.stateful = bilm, stateful
        # AllenNLP takes an empty list for none
        ids = None if vocab_to_cache is None or vocab_to_cache == [] else _vocabulary_ids(vocab_to_cache, bilm)
        self.register_buffer("vocabulary", ids, persistent=False)
        self._cached: _Cached | None = None
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
            output = self._run_words(inputs, word_inputs.long(), self.vocabulary, state)
        if self.stateful:
            self._state = LstmState(output.state.h.detach(), output.state.c.detach())
        return {"activations": list(output.layers), "mask": output.mask}

    def _start(self) -> LstmState:
        zero = self.bilm.lstm.zero_state(0)
        if self._state is None:
            return zero
        return LstmState(*(s.to(z) for s, z in zip(self._state, zero)))  # the module may have moved

    def _run_words(self, inputs: Tensor, words: Tensor, vocabulary: Tensor, state: LstmState | None) -> BiLMOutput:
        """Run sentences given as words (batch, tokens) of the vocabulary (words, characters)."""
        inside, read = words < len(vocabulary), words > 0
        written = (inputs > 0).any(2)
        if (words < 0).any():
            raise ElmoError(Errors.ELMO_WORD_NEGATIVE.format(got=int(words.min())))
        if (~inside & ~written).any():
            got = int(words[~inside & ~written][0])
            raise ElmoError(Errors.ELMO_WORD_UNKNOWN.format(got=got, size=len(vocabulary)))
        places = torch.where(inside, words, 0)
        parameters = list(self.bilm.char_cnn.parameters())
        if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
            # the vectors change with each step: only those of the batch's words are computed, with gradients
            characters = torch.where(written[..., None], inputs, vocabulary[places])
            output: BiLMOutput = self.bilm(characters * read[..., None], state)
            return output
        # what stands in inputs decides: a place in the vocabulary of other characters is an unknown word's
        known = inside & (~written | (vocabulary[places] == inputs).all(2))
        vectors = self._vectors(vocabulary, parameters)
        x = vectors[places + 2]
        unknown = read & ~known
        if unknown.any():
            x = x.index_put((unknown,), self.bilm.char_cnn(inputs[unknown]))
        batch, tokens = words.shape
        lengths = read.sum(1)
        x = torch.cat([vectors[:1].expand(batch, 1, -1), x, x.new_zeros(batch, 1, x.shape[2])], 1)
        ends = torch.arange(tokens + 2, device=words.device)[None] == (lengths + 1)[:, None]
        return self.bilm.read(torch.where(ends[..., None], vectors[1], x), lengths, state)

    def _vectors(self, vocabulary: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Of `<S>`, `</S>` and the vocabulary, *Shape:* (2 + words, projection_dim); kept while they fit."""
        if self._cached is not None and self._cached.fits(parameters):
            return self._cached.vectors
        vectors: Tensor = self.bilm.char_cnn(torch.cat([self.bilm.boundary, vocabulary])).detach()
        self._cached = None
        if not any(parameter.is_inference() for parameter in parameters):  # they have no version
            kept = [parameter.detach() for parameter in parameters]
            self._cached = _Cached(kept, [parameter._version for parameter in parameters], vectors)
        return vectors

    def __getstate__(self) -> dict[str, Any]:
        # the parameters of a copy count their versions anew
        return self.__dict__ | {"_cached": None}


def _vocabulary_ids(words: Sequence[str], bilm: BiLM) -> Tensor:
    if isinstance(words, str) or not len(words):
        raise SettingsError(Errors.ELMO_VOCABULARY.format(got=shown(words)))
    return torch.from_numpy(words_to_ids(list(words), bilm.options.max_characters))
