"""A biLM with the interface that AllenNLP's Elmo expects of its module."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import ElmoError, Errors, SettingsError, shown
from ..formats.characters import words_to_ids
from ..modules.bilm import BiLM, BiLMOutput
from ..modules.lstm.state import LstmState
from .carried import CarriedState, Carrying
from .lstm_view import ElmoLstmView


class _Cached(NamedTuple):
    """Cached vectors, and the weights that they were computed with.

    parameters: the weights. They are stored, so that no other tensor can get the address of one that was replaced.
    versions: torch's version counter of each weight at that time.
    vocabulary: *Shape:* (words, characters), character ids on the device of the weights.
    vectors: *Shape:* (2 + words, projection_dim).
    """

    parameters: list[Tensor]
    versions: list[int]
    vocabulary: Tensor
    vectors: Tensor

    def fits(self, parameters: Sequence[Tensor]) -> bool:
        """Whether these are the same weights, unchanged. (Torch does not count changes of `.data`.)"""
        return len(parameters) == len(self.parameters) and all(
            (old.data_ptr(), old.device, old.dtype, version) == (new.data_ptr(), new.device, new.dtype, new._version)
            for old, version, new in zip(self.parameters, self.versions, parameters)
        )


class ElmoBiLM(Carrying, nn.Module):
    """Runs a biLM as AllenNLP's Elmo expects: from inputs and word_inputs to a dict of activations and mask.

    bilm: the network.
    vocab_to_cache: words whose vectors of layer 0 are cached while the biLM is not trained; the first stands for
        padding. word_inputs are indices in it. None: none.
    stateful: whether row i of a batch starts from the state after row i of the previous batch.
    carried: a state that is shared, in place of `stateful`; None: the network has one of its own.

    Raises SettingsError if vocab_to_cache is a string or empty.
    """

    def __init__(
        self,
        bilm: BiLM,
        vocab_to_cache: Sequence[str] | None = None,
        stateful: bool = False,
        carried: CarriedState | None = None,
    ) -> None:
        super().__init__()
        self.bilm, self._carried = bilm, CarriedState(stateful) if carried is None else carried
        # on the CPU and not a buffer: after to_empty() a buffer would have no values
        self.vocabulary = None if vocab_to_cache is None else _vocabulary_ids(vocab_to_cache, bilm)
        self._cached: _Cached | None = None

    @property
    def num_layers(self) -> int:
        """Number of layers: that of the character encoder, and the LSTM layers."""
        return self.bilm.options.layers

    def get_output_dim(self) -> int:
        """Return the width of the vectors."""
        return self.bilm.options.width

    @property
    def _elmo_lstm(self) -> ElmoLstmView:
        # made anew each time: as a part of this module it would add names to the state_dict
        return ElmoLstmView(self.bilm.lstm, self._carried)

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Let the next batch start from the zero state.

        mask: *Shape:* (batch,), bool, true at the rows that start from it; the others go on. None: all rows do.

        Raises ElmoError if the mask is no tensor, or if there is not a state for each of its rows.
        """
        self._carried.reset(mask)

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Run sentences.

        inputs: *Shape:* (batch, tokens, characters), character ids.
        word_inputs: *Shape:* (batch, tokens), indices in vocab_to_cache; None: all words are computed from `inputs`.

        Returns a dict with these keys. The positions include `<S>` and `</S>`.
        activations: a list of layers, *Shape:* (batch, tokens + 2, width) each.
        mask: *Shape:* (batch, tokens + 2), bool, true at words and boundaries.

        Raises ElmoError if an index is negative, or beyond the vocabulary while `inputs` has no characters there.
        """
        state = self._previous_state() if self.stateful else None
        if word_inputs is None or self.vocabulary is None:
            output = self.bilm(inputs, state)
        else:
            output = self._run_words(inputs, word_inputs.long(), self.vocabulary, state)
        if self.stateful:
            self._carried.state = LstmState(output.state.h.detach(), output.state.c.detach())
        return {"activations": list(output.layers), "mask": output.mask}

    def _previous_state(self) -> LstmState:
        return self._carried.on_device_of(self.bilm.lstm.zero_state(0))  # the module may be on another device now

    def _run_words(self, inputs: Tensor, words: Tensor, vocabulary: Tensor, state: LstmState | None) -> BiLMOutput:
        """Run sentences whose words are indices in the vocabulary.

        inputs: *Shape:* (batch, tokens, characters), character ids, 0 if a word is only known by its index.
        words: *Shape:* (batch, tokens), indices in the vocabulary, 0 for padding.
        vocabulary: *Shape:* (words, characters), character ids on the CPU.
        state: the state after the previous batch; None: the zero state.
        """
        inside, is_word = words < len(vocabulary), words > 0
        has_characters = (inputs > 0).any(2)
        if (words < 0).any():
            raise ElmoError(Errors.ELMO_WORD_NEGATIVE.format(got=int(words.min())))
        if (~inside & ~has_characters).any():
            got = int(words[~inside & ~has_characters][0])
            raise ElmoError(Errors.ELMO_WORD_UNKNOWN.format(got=got, size=len(vocabulary)))
        places = torch.where(inside, words, 0)
        parameters = list(self.bilm.char_cnn.parameters())
        if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
            # the vectors change with each training step, so that no vector is cached
            characters = torch.where(has_characters[..., None], inputs, vocabulary.to(places.device)[places])
            output: BiLMOutput = self.bilm(characters * is_word[..., None], state)
            return output
        # the characters have precedence: if those of the index are different, the word is unknown
        vocabulary, vectors = self._vectors(vocabulary, parameters)
        known = inside & (~has_characters | (vocabulary[places] == inputs).all(2))
        x = vectors[places + 2]
        unknown = is_word & ~known
        if unknown.any():
            x = x.index_put((unknown,), self.bilm.char_cnn(inputs[unknown]))
        batch, tokens = words.shape
        lengths = is_word.sum(1)
        x = torch.cat([vectors[:1].expand(batch, 1, -1), x, x.new_zeros(batch, 1, x.shape[2])], 1)
        ends = torch.arange(tokens + 2, device=words.device)[None] == (lengths + 1)[:, None]
        return self.bilm.read(torch.where(ends[..., None], vectors[1], x), lengths, state)

    def _vectors(self, vocabulary: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the vocabulary on the device of the weights, and the vectors of `<S>`, `</S>` and its words.

        Returns *Shape:* (words, characters) and (2 + words, projection_dim). They are cached until the weights change.
        """
        if self._cached is not None and self._cached.fits(parameters):
            return self._cached.vocabulary, self._cached.vectors
        boundary = self.bilm.boundary
        vocabulary = vocabulary.to(boundary.device)
        vectors: Tensor = self.bilm.char_cnn(torch.cat([boundary, vocabulary])).detach()
        self._cached = None
        if not any(parameter.is_inference() for parameter in parameters):  # inference tensors have no version counter
            detached = [parameter.detach() for parameter in parameters]
            self._cached = _Cached(detached, [parameter._version for parameter in parameters], vocabulary, vectors)
        return vocabulary, vectors

    def __getstate__(self) -> dict[str, Any]:
        # the version counters of a copy's weights start again
        return self.__dict__ | {"_cached": None}


def _vocabulary_ids(words: Sequence[str], bilm: BiLM) -> Tensor:
    if isinstance(words, str) or not len(words):
        raise SettingsError(Errors.ELMO_VOCABULARY.format(got=shown(words)))
    return torch.from_numpy(words_to_ids(list(words), bilm.options.max_characters))
