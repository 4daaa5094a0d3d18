"""AllenNLP's Elmo: the biLM's layers, mixed by trained weights."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ElmoError, Errors, SettingsError
from ..formats.characters import MAX_CHARACTERS, N_CHARACTERS, batch_to_ids_array
from ..modules.bilm import BiLM
from ..modules.loading import load_bilm
from ..modules.scalar_mix import ScalarMix
from .elmo_bilm import ElmoBiLM
from .names import from_allennlp

File = str | os.PathLike[str]


def batch_to_ids(batch: Sequence[Sequence[str]], max_characters: int = MAX_CHARACTERS) -> Tensor:
    """Character ids of sentences, lists of words. *Shape:* (batch, longest, max_characters), int64, 0 behind an end.

    max_characters: positions of a word; 50 but for biLMs that were trained with another number.
    Raises ElmoError for a sentence that is a string, and for a word that is none.
    """
    return torch.from_numpy(batch_to_ids_array(batch, max_characters))


class Elmo(nn.Module):
    """A drop-in for allennlp.modules.elmo.Elmo (2.10).

    options_file, weight_file: the official files; both None, without module: the embedded biLM.
    num_output_representations: how many mixes of the layers are returned, each with weights of its own.
    requires_grad: whether the biLM is trained too.
    do_layer_norm: whether each layer is normalised over its whole batch before it is mixed, `<S>` and `</S>` counted.
    dropout: on the mixes, in training.
    vocab_to_cache: words of which the layer-0 vectors are kept, see forward; the first is for padding.
    keep_sentence_boundaries: whether the vectors of `<S>` and `</S>` are returned too.
    scalar_mix_parameters: pre-softmax weights of the layers, then not trained; None: trained, from equal weights on.
    module: in place of files: a BiLM, or a module with AllenNLP's interface (called with inputs and word_inputs,
        returns a dict of activations and mask; has num_layers and get_output_dim()). requires_grad is ignored then.
    stateful: false: every sentence starts from the zero state; true: row i of a batch starts from the state in which
        row i of the batch before left the LSTMs, as AllenNLP has it.

    A state_dict of AllenNLP's Elmo loads with load_state_dict, also where this is part of another module.

    Raises ElmoError for files and settings that can't be used.
    """

    def __init__(
        self,
        options_file: File | None,
        weight_file: File | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: Sequence[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: nn.Module | None = None,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(num_output_representations, int) or num_output_representations < 1:
            raise SettingsError(Errors.ELMO_OUTPUTS.format(got=num_output_representations))
        if not 0 <= dropout <= 1:
            raise SettingsError(Errors.ELMO_DROPOUT.format(got=dropout))
        if module is None:
            bilm = load_bilm(options_file, weight_file).requires_grad_(requires_grad)
            module = ElmoBiLM(bilm, vocab_to_cache, stateful)
        elif options_file is not None or weight_file is not None:
            raise SettingsError(Errors.ELMO_MODULE_FILES)
        elif isinstance(module, BiLM):
            module = ElmoBiLM(module, vocab_to_cache, stateful)
        elif stateful or vocab_to_cache is not None:
            raise SettingsError(Errors.ELMO_MODULE_STATE if stateful else Errors.ELMO_MODULE_VOCABULARY)
        self._elmo_lstm: Any = module
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = nn.Dropout(dropout)
        self.num_output_representations = num_output_representations
        for k in range(num_output_representations):
            mix = ScalarMix(
                module.num_layers,  # type: ignore[arg-type]  # torch's modules may have anything
                "batch" if do_layer_norm else "none",
                scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{k}", mix)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # before this module's parts are looked up
        from_allennlp(state_dict, prefix, isinstance(self._elmo_lstm, ElmoBiLM))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def get_output_dim(self) -> int:
        """Size of a vector."""
        return int(self._elmo_lstm.get_output_dim())

    def reset_states(self) -> None:
        """Set the carried state to zero; nothing to do where none is carried."""
        if isinstance(self._elmo_lstm, ElmoBiLM):
            self._elmo_lstm.reset_states()

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Embed sentences.

        inputs: *Shape:* (batch, tokens, characters), or (batch, dim0, ..., tokens, characters): see batch_to_ids.
        word_inputs: *Shape:* that of inputs without characters: places in vocab_to_cache, 0 for padding. The vectors
            of these words are looked up; a word that is not in it, or has other characters in inputs, is computed.

        Returns elmo_representations, a list of tensors (batch, ..., tokens, width), and mask, bool, (batch, ...,
        tokens), true at words. With keep_sentence_boundaries there are tokens + 2 positions.
        Raises ElmoError for tensors that can't be used.
        """
        if isinstance(self._elmo_lstm, ElmoBiLM):
            if word_inputs is not None and self._elmo_lstm.vocabulary is None:
                warnings.warn(Errors.ELMO_NO_VOCABULARY, stacklevel=2)
                word_inputs = None
            characters = self._elmo_lstm.bilm.options.max_characters
            inputs = _checked(inputs, word_inputs, characters)
        shape = inputs.shape[:-2]
        if inputs.dim() > 3:
            inputs = inputs.flatten(0, -3)
        if word_inputs is not None and word_inputs.dim() > 2:
            word_inputs = word_inputs.flatten(0, -2)
        output: Mapping[str, Any] = self._elmo_lstm(inputs, word_inputs)
        layers, mask = torch.stack(list(output["activations"])), output["mask"].bool()
        representations = [
            getattr(self, f"scalar_mix_{k}")(layers, mask) for k in range(self.num_output_representations)
        ]
        if not self._keep_sentence_boundaries:
            # a sentence's words are where its mask begins, and its </S> is masked out with the last of it
            mask = mask[:, 2:]
            representations = [x[:, 1:-1].masked_fill(~mask[..., None], 0.0) for x in representations]
        return {
            "elmo_representations": [self._dropout(x).reshape(shape + x.shape[1:]) for x in representations],
            "mask": mask.reshape(shape + mask.shape[1:]),
        }


def _checked(inputs: Tensor, word_inputs: Tensor | None, characters: int) -> Tensor:
    """The character ids; none (zeros) where word_inputs were given in their place, as AllenNLP takes them."""
    for name, tensor in (("inputs", inputs), ("word_inputs", word_inputs)):
        if tensor is None and name == "word_inputs":
            continue
        if not isinstance(tensor, Tensor):
            raise ElmoError(Errors.ELMO_NO_TENSOR.format(name=name, got=type(tensor).__name__))
        if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
            raise ElmoError(Errors.ELMO_DTYPE.format(name=name, got=str(tensor.dtype).removeprefix("torch.")))
    if word_inputs is not None and inputs.shape == word_inputs.shape and inputs.dim() >= 2:
        inputs = inputs.new_zeros(*inputs.shape, characters)
    if inputs.dim() < 3:
        raise ElmoError(Errors.ELMO_SHAPE.format(got=tuple(inputs.shape), characters=characters))
    if inputs.shape[-1] != characters:
        raise ElmoError(Errors.ELMO_CHARACTERS.format(got=inputs.shape[-1], expected=characters))
    inputs = inputs.long()
    if inputs.numel():
        least, most = int(inputs.min()), int(inputs.max())
        if least < 0 or most > N_CHARACTERS:
            raise ElmoError(Errors.ELMO_RANGE.format(got=least if least < 0 else most))
    if word_inputs is not None and word_inputs.shape != inputs.shape[:-1]:
        raise ElmoError(Errors.ELMO_WORDS_SHAPE.format(got=tuple(word_inputs.shape), expected=tuple(inputs.shape[:-1])))
    return inputs
