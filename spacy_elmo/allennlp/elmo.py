"""A drop-in for AllenNLP's Elmo: it mixes the biLM's layers with trained weights."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsFloat

import torch
from torch import Tensor, nn

from ..errors import SettingsError, check_whole, shown
from ..formats.characters import MAX_CHARACTERS, batch_to_ids_array, checked_words
from ..modules.bilm import BiLM
from ..modules.lstm_cell import FORGET_BIAS, Gates
from ..modules.scalar_mix import ScalarMix
from .elmo_bilm import ElmoBiLM, File, checked_inputs, loaded

_LSTM = r"_elmo_lstm\._elmo_lstm\.forward_layer_(\d+)\."
_ENCODER = r"_elmo_lstm\._token_embedder\."
# AllenNLP's names, and ours
_RENAMED = {
    _ENCODER + "_char_embedding_weights": "char_cnn.embedding.weight",
    _ENCODER + r"char_conv_(\d+)\.(weight|bias)": r"char_cnn.convolutions.\1.\2",
    _ENCODER + r"_projection\.(weight|bias)": r"char_cnn.projection.\1",
    _ENCODER + r"_highways\._layers\.(\d+)\.(weight|bias)": r"char_cnn.highways.\1.transform.\2",
    _LSTM + r"input_linearity\.weight": r"lstm.layers.\1.input_weight",
    _LSTM + r"state_linearity\.weight": r"lstm.layers.\1.recurrent_weight",
    _LSTM + r"state_linearity\.bias": r"lstm.layers.\1.bias",
    _LSTM + r"state_projection\.weight": r"lstm.layers.\1.projection",
    # buffers, and the vectors of vocab_to_cache. Ours are computed when they are needed
    _ENCODER + "_(beginning|end)_of_sentence_characters": "",
    r"_elmo_lstm\._word_embedding\.weight": "",
}


def from_allennlp(state_dict: dict[str, Tensor], prefix: str, ours_inside: bool) -> None:
    """Replace AllenNLP's names after `prefix` by ours, in place; of what does not match, torch's error tells.

    ours_inside: false: the module is AllenNLP's own biLM, and needs AllenNLP's names.
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        theirs = name.removeprefix(prefix)
        if re.fullmatch(r"scalar_mix_\d+\.scalar_parameters\.0", theirs):
            mix, w = name.removesuffix("scalar_parameters.0"), list[Tensor]()
            while (part := f"{mix}scalar_parameters.{len(w)}") in state_dict:
                w.append(state_dict.pop(part).reshape(-1))
            state_dict[f"{mix}w"] = torch.cat(w)
        for pattern, replacement in _RENAMED.items():
            if ours_inside and (match := re.fullmatch(pattern, theirs)):
                _convert(state_dict, name, replacement and f"{prefix}_elmo_lstm.bilm.{match.expand(replacement)}")


def _convert(state_dict: dict[str, Tensor], theirs: str, ours: str) -> None:
    """Replace one of AllenNLP's tensors; for one of a forward LSTM, that of the backward LSTM as well."""
    other = theirs.replace(".forward_layer_", ".backward_layer_")
    if other not in state_dict or state_dict[other].shape != state_dict[theirs].shape:
        return  # torch's error lists the names that stay
    if other != theirs and not ours.endswith(".projection") and len(state_dict[theirs]) % 4:
        return
    tensor = state_dict.pop(theirs)
    if other != theirs:
        both = [_direction(one, ours) for one in (tensor, state_dict.pop(other))]
        state_dict[ours] = torch.stack(both)
    elif ".transform." in ours:
        transform, carry = tensor.chunk(2)
        state_dict[ours], state_dict[ours.replace(".transform.", ".carry.")] = transform, -carry
    elif ours:
        state_dict[ours] = tensor


def _direction(tensor: Tensor, ours: str) -> Tensor:
    """Return an LSTM's tensor with our order of the gates, which is i, f, j, o there, and without the forget bias."""
    if not ours.endswith(".projection"):
        i, f, j, o = tensor.unflatten(0, (4, -1))
        # it is added later
        forget = f - FORGET_BIAS if ours.endswith(".bias") else f
        tensor = torch.cat(Gates(input=i, candidate=j, forget=forget, output=o))
    return tensor.t()


def batch_to_ids(batch: Iterable[Iterable[str]], max_characters: int = MAX_CHARACTERS) -> Tensor:
    """Return the character ids of sentences, *Shape:* (batch, longest sentence, max_characters), int64, 0 after an end.

    batch: sentences, which are lists of words. Both may be any iterables, as in AllenNLP.
    max_characters: number of ids of each word; 50, unless the biLM was trained with another number.
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
        check_whole(num_output_representations=num_output_representations)
        if not isinstance(dropout, SupportsFloat) or not 0 <= dropout <= 1:
            raise SettingsError(f"dropout is {shown(dropout)}. Expected a share, 0 to 1.")
        if module is None:
            bilm = loaded(options_file, weight_file, requires_grad, vocab_to_cache)
            module = ElmoBiLM(bilm, vocab_to_cache, stateful)
        elif options_file is not None or weight_file is not None:
            raise SettingsError(
                "options_file or weight_file was given together with module. Set both to None, or leave out module."
            )
        elif isinstance(module, BiLM):
            module = ElmoBiLM(module, vocab_to_cache, stateful)
        elif stateful:
            raise SettingsError("stateful is true, but module is not a BiLM of this package. Set stateful to false.")
        elif vocab_to_cache:
            raise SettingsError(
                "vocab_to_cache was given, but module is not a BiLM of this package. Give the words to that module."
            )
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

        Raises SettingsError if a name is unknown or missing, or a value is none that this class accepts.
        """
        if not isinstance(params, Mapping):
            raise SettingsError(f"The parameters of Elmo are {shown(params)}. Expected a mapping of names to values.")
        arguments = {**params, **extras}
        signature = inspect.signature(cls)
        try:
            signature.bind(**arguments)
        except TypeError as error:  # a name is unknown or missing
            raise SettingsError(
                f"The parameters of Elmo: {error}. Expected some of: {', '.join(signature.parameters)}. For the "
                "embedded biLM, set options_file and weight_file to null."
            ) from None
        for name in arguments.keys() & {"requires_grad", "do_layer_norm", "keep_sentence_boundaries", "stateful"}:
            if not isinstance(arguments[name], bool | int):  # AllenNLP makes bools of whole numbers, but not of texts
                raise SettingsError(
                    f"The parameter {name} of Elmo is {shown(arguments[name])}. Expected true or false."
                )
            arguments[name] = bool(arguments[name])
        return cls(**arguments)

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
            self._elmo_lstm.carried.reset()  # in AllenNLP: elmo._elmo_lstm._elmo_lstm.reset_states()

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
            "mask": mask.reshape(shape + mask.shape[1:]).contiguous(),  # as AllenNLP's: many call mask.view(-1)
        }
