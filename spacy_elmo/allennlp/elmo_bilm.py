"""A biLM with the interface that AllenNLP's Elmo expects of its module."""

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import ElmoError, SettingsError, shown
from ..formats.characters import N_CHARACTERS, checked_words, words_to_ids
from ..inference import Embedder
from ..inference.engine import Layers
from ..modules.bilm import BiLM, BiLMOutput
from ..modules.loading import load_bilm
from ..modules.lstm_cell import LstmState


@dataclass
class CarriedState:
    """What the next batch starts from: `state`, or the zero state. stateful: whether it is carried (see `Elmo`)."""

    stateful: bool
    state: LstmState | None = None

    def on_device_of(self, zero: LstmState) -> LstmState:
        """Return the state on the device and in the type of the zero state; without a state, the zero state."""
        if self.state is None:
            return zero
        return LstmState(*(part.to(other) for part, other in zip(self.state, zero)))

    def run(self, bilm: Embedder, batch: Sequence[Sequence[str]]) -> list[Layers]:
        """Return the layers of each row of a batch, *Shape:* (layers, words, width)."""
        if not self.stateful:
            return bilm.run(batch)
        zero = bilm.engine.zero_state(len(batch))
        before = self.on_device_of(zero)
        layers, after = bilm.engine.run_from(batch, before.rows(len(batch), zero))
        if any(batch):  # as in AllenNLP, a batch without words does not change the state
            self.state = after.followed_by(before)
        return layers

    def reset(self, mask: Tensor | None = None) -> None:
        """Let the next batch start from the zero state: the rows at which mask, (batch,), is true; None: all rows."""
        if mask is None:
            self.state = None
            return
        rows = 0 if self.state is None else self.state.h.shape[2]
        if not isinstance(mask, Tensor) or mask.shape != (rows,):
            got = f"shape {tuple(mask.shape)}" if isinstance(mask, Tensor) else f"type {type(mask).__name__}"
            raise ElmoError(
                f"The mask of reset_states has {got}. Expected a tensor of shape {(rows,)}, one value a row."
            )
        if self.state is not None:
            places = mask.bool()[:, None]
            self.state = LstmState(*(part.masked_fill(places.to(part.device), 0.0) for part in self.state))


class ElmoLstmView(nn.Module):
    """What AllenNLP's users write as `elmo._elmo_lstm._elmo_lstm`: its parameters are those of the LSTMs alone."""

    def __init__(self, bilm: BiLM, carried: CarriedState) -> None:
        super().__init__()
        self.lstm, self._carried = bilm.lstm, carried
        options = bilm.options
        self.input_size = self.hidden_size = options.projection_dim
        self.cell_size, self.num_layers = options.dim, options.n_layers

    @property
    def stateful(self) -> bool:
        """Whether row i of a batch starts from the state after row i of the previous batch."""
        return self._carried.stateful

    @stateful.setter
    def stateful(self, value: bool) -> None:
        self._carried.stateful = bool(value)

    @property
    def _states(self) -> tuple[Tensor, Tensor] | None:
        """The carried state as AllenNLP lays it out: h and c, *Shape:* (layers, batch, 2 * width) each; or None."""
        state = self._carried.state
        return None if state is None else (state.h.transpose(1, 2).flatten(2), state.c.transpose(1, 2).flatten(2))

    @_states.setter
    def _states(self, value: None) -> None:
        if value is not None:
            raise SettingsError(
                f"_states was set to a value of type {type(value).__name__}. Expected None, for the zero state."
            )
        self._carried.reset()

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Let the next batch start from the zero state. The mask is that of `CarriedState.reset`."""
        self._carried.reset(mask)


class _Cached(NamedTuple):
    """Cached vectors, and the weights that they were computed with."""

    # place, kind and version counter of each weight; the counter counts no changes of `.data`
    weights: Sequence[tuple[object, ...]]
    parameters: list[Tensor]  # stored, so that no other tensor can get the address of one that was replaced
    vocabulary: Tensor
    vectors: Tensor


class ElmoBiLM(nn.Module):
    """Runs a biLM as AllenNLP's Elmo expects: from inputs and word_inputs to a dict of activations and mask."""

    def __init__(self, bilm: BiLM, vocab_to_cache: Sequence[str] | None = None, stateful: bool = False) -> None:
        super().__init__()
        self.bilm, self.carried = bilm, CarriedState(stateful)
        # on the CPU and not a buffer: after to_empty() a buffer would have no values
        self.vocabulary = _vocabulary_ids(vocab_to_cache, bilm) if vocab_to_cache else None
        self._cached: _Cached | None = None

    @property
    def num_layers(self) -> int:
        return self.bilm.options.layers

    def get_output_dim(self) -> int:
        return self.bilm.options.width

    @property
    def _elmo_lstm(self) -> ElmoLstmView:
        # made anew each time: as a part of this module it would add names to the state_dict
        return ElmoLstmView(self.bilm, self.carried)

    @property
    def _token_embedder(self) -> "_ElmoCharacterEncoder":
        encoder = _ElmoCharacterEncoder.__new__(_ElmoCharacterEncoder)
        nn.Module.__init__(encoder)
        encoder.network = RawBiLM(self.bilm)
        return encoder

    @property
    def _requires_grad(self) -> bool:
        return any(parameter.requires_grad for parameter in self.bilm.parameters())

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Run sentences, of character ids (batch, tokens, characters) and perhaps indices in vocab_to_cache.

        Returns activations, a list of layers, *Shape:* (batch, tokens + 2, width), and mask, (batch, tokens + 2), true
        at words and boundaries. Raises ElmoError if an index is negative, or no word.
        """
        carried = self.carried
        # the module may be on another device now
        state = carried.on_device_of(self.bilm.lstm.zero_state(0)) if carried.stateful else None
        if word_inputs is None or self.vocabulary is None:
            output = self.bilm(inputs, state)
        else:
            output = self._run_words(inputs, word_inputs.long(), self.vocabulary, state)
        if carried.stateful:
            carried.state = LstmState(output.state.h.detach(), output.state.c.detach())
        return {"activations": list(output.layers), "mask": output.mask}

    def _run_words(self, inputs: Tensor, words: Tensor, vocabulary: Tensor, state: LstmState | None) -> BiLMOutput:
        """Run sentences whose words are indices in the vocabulary. inputs: 0 if a word is known by its index alone."""
        inside, is_word = words < len(vocabulary), words > 0
        has_characters = (inputs > 0).any(2)
        if (words < 0).any():
            raise ElmoError(
                f"word_inputs holds {int(words.min())}. Expected 0 for padding, or a place in vocab_to_cache."
            )
        if (~inside & ~has_characters).any():
            got = int(words[~inside & ~has_characters][0])
            raise ElmoError(
                f"word_inputs holds {got}, but vocab_to_cache has {len(vocabulary)} words, and inputs has no "
                "characters for that word. Give its character ids in inputs, or a place in vocab_to_cache."
            )
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
        """Return the vocabulary on the device of the weights, and the vectors of `<S>`, `</S>` and its words."""
        is_counted = not any(parameter.is_inference() for parameter in parameters)  # else there is no version counter
        weights = [(one.data_ptr(), one.device, one.dtype, one._version) for one in parameters if is_counted]
        if self._cached is None or not is_counted or self._cached.weights != weights:
            boundary = self.bilm.boundary
            vocabulary = vocabulary.to(boundary.device)
            vectors = self.bilm.char_cnn(torch.cat([boundary, vocabulary])).detach()
            self._cached = _Cached(weights, [one.detach() for one in parameters], vocabulary, vectors)
        return self._cached.vocabulary, self._cached.vectors

    def __getstate__(self) -> dict[str, Any]:
        # the version counters of a copy's weights start again
        return self.__dict__ | {"_cached": None}


def _vocabulary_ids(words: Sequence[str], bilm: BiLM) -> Tensor:
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise SettingsError(f"vocab_to_cache is {shown(words)}. Expected a list of words, the first for padding.")
    return torch.from_numpy(words_to_ids(checked_words(words), bilm.options.max_characters))


_MAKE = "make it with batch_to_ids(sentences)"


def checked_inputs(
    inputs: Tensor, word_inputs: Tensor | None, network: ElmoBiLM, dims: int | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return ids as int64, or raise ElmoError. dims: number of dimensions of `inputs`; None: 3 or more."""
    if word_inputs is not None and network.vocabulary is None:
        warnings.warn(
            "word_inputs were given, but vocab_to_cache was not: the characters in inputs are read.", stacklevel=3
        )
        word_inputs = None
    characters, device = network.bilm.options.max_characters, network.bilm.char_cnn.embedding.weight.device
    tensors = {"inputs": inputs} if word_inputs is None else {"inputs": inputs, "word_inputs": word_inputs}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.is_floating_point() or tensor.dtype == torch.bool:
            got = f"a tensor of {tensor.dtype}" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise ElmoError(f"{name} is {got}. Expected a tensor of integers: {_MAKE}.")
        if tensor.device != device:
            raise ElmoError(
                f"{name} is on {tensor.device}, but the biLM is on {device}. Move it there: {name}.to('{device}')."
            )
    if word_inputs is not None and inputs.shape == word_inputs.shape and inputs.dim() >= 2:
        inputs = inputs.new_zeros(*inputs.shape, characters)
    if inputs.dim() < 3 or inputs.dim() != (dims or inputs.dim()):
        more = "" if dims else " or more dimensions between the first two"
        raise ElmoError(
            f"inputs has shape {tuple(inputs.shape)}. Expected (batch, tokens, {characters}){more}: {_MAKE}."
        )
    if inputs.shape[-1] != characters:
        raise ElmoError(
            f"inputs has {inputs.shape[-1]} characters a word, but the biLM reads {characters}. Make it with "
            f"batch_to_ids(sentences, max_characters={characters})."
        )
    inputs = inputs.long()
    if (wrong := inputs[(inputs < 0) | (inputs > N_CHARACTERS)]).numel():
        raise ElmoError(f"inputs holds {int(wrong[0])}. Expected character ids of 0 to 261: {_MAKE}.")
    if word_inputs is not None and word_inputs.shape != inputs.shape[:-1]:
        raise ElmoError(
            f"word_inputs has shape {tuple(word_inputs.shape)}. Expected the shape of inputs without the "
            f"characters, {tuple(inputs.shape[:-1])}."
        )
    is_word = (inputs > 0).any(-1) if word_inputs is None else word_inputs != 0
    # the network counts the words: the last ones would silently be read as padding
    gaps = (is_word[..., 1:] & ~is_word[..., :-1]).flatten(0, -2).any(1)
    if gaps.any():
        name = "inputs" if word_inputs is None else "word_inputs"
        raise ElmoError(
            f"Sentence {int(gaps.nonzero()[0])} of {name} has a word after padding. Expected all words of a sentence "
            f"before its padding, which is 0: {_MAKE}."
        )
    return inputs, word_inputs


File = str | os.PathLike[str]


class RawBiLM(ElmoBiLM):
    """An ElmoBiLM that users call themselves, so that it checks what it is called with."""

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        inputs, word_inputs = checked_inputs(inputs, word_inputs, self, dims=3)
        return super().forward(inputs, word_inputs)


def loaded(
    options_file: File | None, weight_file: File | None, requires_grad: bool, vocab_to_cache: Sequence[str] | None
) -> BiLM:
    """Return the biLM of the files. Settings that do not go together are an error."""
    if requires_grad and vocab_to_cache:
        raise SettingsError(
            "requires_grad is true together with vocab_to_cache. Cached vectors can't change with the biLM. Set "
            "vocab_to_cache to None, or requires_grad to false."
        )
    return load_bilm(options_file, weight_file).requires_grad_(requires_grad)


class _ElmoBiLm(RawBiLM):
    """A drop-in for AllenNLP's class of this name (2.10): all layers, with `<S>` and `</S>`. Arguments as of `Elmo`."""

    def __init__(
        self,
        options_file: File | None,
        weight_file: File | None,
        requires_grad: bool = False,
        vocab_to_cache: Sequence[str] | None = None,
        stateful: bool = False,
    ) -> None:
        bilm = loaded(options_file, weight_file, requires_grad, vocab_to_cache)
        super().__init__(bilm, vocab_to_cache, stateful)


class _ElmoCharacterEncoder(nn.Module):
    """A drop-in for AllenNLP's class of this name (2.10): from character ids to the vectors of words alone."""

    def __init__(self, options_file: File | None, weight_file: File | None, requires_grad: bool = False) -> None:
        super().__init__()
        self.network = RawBiLM(loaded(options_file, weight_file, requires_grad, None))

    def get_output_dim(self) -> int:
        return self.network.bilm.options.projection_dim

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        """Encode the words of sentences, of character ids (batch, tokens, characters).

        Returns token_embedding, *Shape:* (batch, tokens + 2, projection_dim), with `<S>` and `</S>`, zeros after a
        sentence, and mask, (batch, tokens + 2). Raises ElmoError for what are no such ids.
        """
        inputs, _ = checked_inputs(inputs, None, self.network, dims=3)
        vectors, lengths = self.network.bilm.encode(inputs)
        mask = torch.arange(vectors.shape[1], device=lengths.device)[None] < (lengths + 2)[:, None]
        return {"mask": mask, "token_embedding": vectors * mask[..., None]}
