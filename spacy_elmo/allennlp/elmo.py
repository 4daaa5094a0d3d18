"""A drop-in for AllenNLP's Elmo: it mixes the biLM's layers with trained weights."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import Errors, SettingsError, shown
from ..formats.characters import MAX_CHARACTERS, batch_to_ids_array
from ..modules.bilm import BiLM
from ..modules.loading import load_bilm
from ..modules.scalar_mix import ScalarMix
from .checks import checked_inputs
from .elmo_bilm import ElmoBiLM
from .names import from_allennlp
from .params import arguments_of
from .sentence_batches import checked_words

File = str | os.PathLike[str]


def batch_to_ids(batch: Iterable[Iterable[str]], max_characters: int = MAX_CHARACTERS) -> Tensor:
    """Return the character ids of sentences, *Shape:* (batch, longest sentence, max_characters), int64.

    They are 0 after the end of a sentence.

    batch: sentences, which are lists of words. Both may be any iterables, as in AllenNLP.
    max_characters: number of ids of each word; 50, unless the biLM was trained with another number.

    Raises ElmoError if a sentence is a string, or a word is not a string.
    """
    sentences = [checked_words(sentence) for sentence in batch]
    return torch.from_numpy(batch_to_ids_array(sentences, max_characters))


class Elmo(nn.Module):
    """A drop-in for allennlp.modules.elmo.Elmo (2.10).

    `load_state_dict` also loads a state_dict of AllenNLP's Elmo, even if this module is part of another module.

    options_file: path of the official options file; None: the embedded biLM, unless there is a module.
    weight_file: path of the official weight file; None: the embedded biLM, unless there is a module.
    num_output_representations: number of mixes of the layers that are returned, each with separate weights.
    requires_grad: whether the biLM is trained, too. Exempt its biases from your optimizer's weight decay: AllenNLP
        stores the bias of the LSTM's forget gates with 1 added, this package without, so decay pulls them elsewhere.
    do_layer_norm: whether each layer is normalised before the mix, with one mean and variance over all its values in
        the batch, including those at `<S>` and `</S>`.
    dropout: share of the mixed values that is set to 0 in training.
    vocab_to_cache: words whose vectors of layer 0 are cached (see forward); the first stands for padding. None or
        []: none. Not together with requires_grad: AllenNLP would train the cached vectors in place of the character
        encoder.
    keep_sentence_boundaries: whether the vectors of `<S>` and `</S>` are returned, too.
    scalar_mix_parameters: weights of the layers before the softmax, which are not trained; None: the weights are
        trained, and start with zeros.
    module: a BiLM that is used in place of files, or a module with AllenNLP's interface: it is called with inputs and
        word_inputs, returns a dict of activations and mask, and has num_layers and get_output_dim(). Then
        requires_grad is ignored. None: files are used.
    stateful: whether row i of a batch starts from the state after row i of the previous batch, as in AllenNLP; false:
        each sentence starts from the zero state.

    Raises ElmoError if files or settings cannot be used.
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
        if not isinstance(num_output_representations, int | np.integer) or num_output_representations < 1:
            raise SettingsError(Errors.ELMO_OUTPUTS.format(got=num_output_representations))
        if not isinstance(dropout, SupportsFloat) or not 0 <= dropout <= 1:
            raise SettingsError(Errors.ELMO_DROPOUT.format(got=shown(dropout)))
        if isinstance(vocab_to_cache, list) and not vocab_to_cache:
            vocab_to_cache = None  # as in AllenNLP
        if requires_grad and module is None and vocab_to_cache is not None:
            raise SettingsError(Errors.ELMO_CACHED_AND_TRAINED)
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
        self.num_output_representations = int(num_output_representations)
        for k in range(num_output_representations):
            mix = ScalarMix(
                module.num_layers,  # type: ignore[arg-type]  # attributes of torch's modules have no fixed type
                "batch" if do_layer_norm else "none",
                scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{k}", mix)

    @classmethod
    def from_params(cls, params: Mapping[str, Any], **extras: Any) -> "Elmo":
        """Return the module that a section of an AllenNLP configuration describes.

        params: the arguments of this class by name: a dict, or AllenNLP's Params. It is not changed.
        extras: arguments that no configuration can hold, such as `module`.

        Raises SettingsError if a name is unknown or missing, or a value has another type than AllenNLP permits, and the
        errors of the class.
        """
        return cls(**arguments_of(cls, params, extras))

    @property
    def _scalar_mixes(self) -> list[ScalarMix]:
        return [getattr(self, f"scalar_mix_{k}") for k in range(self.num_output_representations)]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # names are replaced before torch looks for those of this module's parts
        from_allennlp(state_dict, prefix, isinstance(self._elmo_lstm, ElmoBiLM))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def get_output_dim(self) -> int:
        """Return the width of the vectors."""
        return int(self._elmo_lstm.get_output_dim())

    def reset_states(self) -> None:
        """Let the next batch start from the zero state. Without `stateful` each batch does."""
        if isinstance(self._elmo_lstm, ElmoBiLM):
            self._elmo_lstm.reset_states()  # in AllenNLP: elmo._elmo_lstm._elmo_lstm.reset_states()

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Embed sentences.

        inputs: *Shape:* (batch, tokens, characters) or (batch, dim0, ..., tokens, characters), character ids as
            batch_to_ids returns them.
        word_inputs: *Shape:* (batch, tokens) or (batch, dim0, ..., tokens), indices in vocab_to_cache, 0 for padding.
            The cached vectors of these words are used. A word that is not in vocab_to_cache, or has other characters
            in `inputs`, is computed from `inputs`. None: all words are computed.

        Returns a dict with these keys. With keep_sentence_boundaries there are tokens + 2 positions.
        elmo_representations: a list of mixes, *Shape:* (batch, ..., tokens, width) each.
        mask: *Shape:* (batch, ..., tokens), bool, true at words.

        Raises ElmoError if a tensor cannot be used.
        """
        if isinstance(self._elmo_lstm, ElmoBiLM):
            inputs, word_inputs = checked_inputs(inputs, word_inputs, self._elmo_lstm)
        shape = inputs.shape[:-2]
        if inputs.dim() > 3:
            inputs = inputs.flatten(0, -3)
        if word_inputs is not None and word_inputs.dim() > 2:
            word_inputs = word_inputs.flatten(0, -2)
        output: Mapping[str, Any] = self._elmo_lstm(inputs, word_inputs)
        layers, mask = torch.stack(list(output["activations"])), output["mask"].bool()
        representations = [mix(layers, mask) for mix in self._scalar_mixes]
        if not self._keep_sentence_boundaries:
            # shifted by two, the mask has as many true positions as there are words, and </S> is masked
            mask = mask[:, 2:]
            representations = [x[:, 1:-1].masked_fill(~mask[..., None], 0.0) for x in representations]
        return {
            "elmo_representations": [self._dropout(x).reshape(shape + x.shape[1:]) for x in representations],
            "mask": mask.reshape(shape + mask.shape[1:]),
        }
