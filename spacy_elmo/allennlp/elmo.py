"""A drop-in for AllenNLP's Elmo: it mixes the biLM's layers with trained weights."""

import inspect
import os
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
from .elmo_bilm import ElmoBiLM, checked_inputs, loaded

_ENCODER = "_elmo_lstm._token_embedder."
_LSTM = "_elmo_lstm._elmo_lstm."
_OURS = "_elmo_lstm.bilm."
# buffers of AllenNLP's Elmo, and its vectors of vocab_to_cache. Ours are computed when they are needed
_DROPPED = (
    f"{_ENCODER}_beginning_of_sentence_characters",
    f"{_ENCODER}_end_of_sentence_characters",
    "_elmo_lstm._word_embedding.weight",
)


def from_allennlp(state_dict: dict[str, Any], prefix: str, ours_inside: bool) -> None:
    """Replace AllenNLP's names after `prefix` by ours, in place; of what does not match, torch's error tells."""
    names = [name.removeprefix(prefix) for name in state_dict if name.startswith(prefix)]
    if not any(name.startswith((_ENCODER, _LSTM)) or ".scalar_parameters." in name for name in names):
        return
    values = {name: state_dict[prefix + name] for name in names if not name.startswith(_OURS)}
    theirs = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    for name in theirs:
        del state_dict[prefix + name]
    ours = _mixes(theirs)
    # if the module is AllenNLP's own biLM, it needs AllenNLP's names
    if ours_inside:
        for name in _DROPPED:
            theirs.pop(name, None)
        ours |= _encoder(theirs) | _lstms(theirs)
    # the names that remain are not AllenNLP's: torch's error lists them
    state_dict.update({prefix + name: tensor for name, tensor in {**theirs, **ours}.items()})


def _encoder(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    ours = {}
    renamed = {f"{_ENCODER}_char_embedding_weights": f"{_OURS}char_cnn.embedding.weight"}
    for kind in ("weight", "bias"):
        renamed[f"{_ENCODER}_projection.{kind}"] = f"{_OURS}char_cnn.projection.{kind}"
        for i in _numbers(theirs, f"{_ENCODER}char_conv_", f".{kind}"):
            renamed[f"{_ENCODER}char_conv_{i}.{kind}"] = f"{_OURS}char_cnn.convolutions.{i}.{kind}"
        for k in _numbers(theirs, f"{_ENCODER}_highways._layers.", f".{kind}"):
            name = f"{_ENCODER}_highways._layers.{k}.{kind}"
            if not theirs[name].dim():
                continue
            both = theirs.pop(name)
            transform, carry = both.split([len(both) // 2, len(both) - len(both) // 2])
            ours[f"{_OURS}char_cnn.highways.{k}.transform.{kind}"] = transform
            ours[f"{_OURS}char_cnn.highways.{k}.carry.{kind}"] = -carry
    return ours | {name: theirs.pop(old) for old, name in renamed.items() if old in theirs}


def _lstms(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    ours = {}
    parts = {
        "input_weight": "input_linearity.weight",
        "recurrent_weight": "state_linearity.weight",
        "bias": "state_linearity.bias",
        "projection": "state_projection.weight",
    }
    for name, part in parts.items():
        for k in _numbers(theirs, f"{_LSTM}forward_layer_", f".{part}"):
            names = [f"{_LSTM}{direction}_layer_{k}.{part}" for direction in ("forward", "backward")]
            if names[1] not in theirs or theirs[names[0]].shape != theirs[names[1]].shape:
                continue
            if name != "projection" and (not theirs[names[0]].dim() or len(theirs[names[0]]) % 4):
                continue
            tensors = [theirs.pop(old) for old in names]
            if name != "projection":
                tensors = [_reordered(tensor, is_bias=name == "bias") for tensor in tensors]
            ours[f"{_OURS}lstm.layers.{k}.{name}"] = torch.stack(
                [tensor.t() if tensor.dim() == 2 else tensor for tensor in tensors]
            )
    return ours


def _reordered(tensor: Tensor, is_bias: bool) -> Tensor:
    """Return the gates in our order in place of i, f, j, o, and the bias without the forget bias, added later."""
    i, f, j, o = tensor.unflatten(0, (4, -1))
    return torch.cat(Gates(input=i, candidate=j, forget=f - FORGET_BIAS if is_bias else f, output=o))


def _mixes(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    ours = {}
    for k in _numbers(theirs, "scalar_mix_", ".scalar_parameters.0"):
        layers = _numbers(theirs, f"scalar_mix_{k}.scalar_parameters.", "")
        names = [f"scalar_mix_{k}.scalar_parameters.{layer}" for layer in layers]
        if layers == list(range(len(layers))) and all(theirs[name].numel() == 1 for name in names):
            ours[f"scalar_mix_{k}.w"] = torch.cat([theirs.pop(name).reshape(-1) for name in names])
    return ours


def _numbers(names: Mapping[str, Any], before: str, after: str) -> list[int]:
    """Return the numbers n for which before + n + after is a name, in increasing order."""
    between = [name[len(before) : len(name) - len(after)] for name in names if name.startswith(before)]
    numbers = [text for text in between if re.fullmatch(r"[0-9]{1,9}", text)]
    fits = [text for text in numbers if f"{before}{text}{after}" in names]
    return sorted(map(int, dict.fromkeys(fits)))


_FLAGS = ("requires_grad", "do_layer_norm", "keep_sentence_boundaries", "stateful")
File = str | os.PathLike[str]


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
        if isinstance(vocab_to_cache, list) and not vocab_to_cache:
            vocab_to_cache = None  # as in AllenNLP
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
        elif vocab_to_cache is not None:
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
        for name in arguments.keys() & set(_FLAGS):
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
            "mask": mask.reshape(shape + mask.shape[1:]).contiguous(),  # as AllenNLP's: many call mask.view(-1)
        }
