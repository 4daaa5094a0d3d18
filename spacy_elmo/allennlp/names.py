"""Conversion of a state_dict of AllenNLP's Elmo to this package's names and layout.

AllenNLP has both parts of a highway layer in one matrix: first the rows of the transform, then those of the carry with
the opposite sign, because AllenNLP computes g * x + (1 - g) * f(x), bilm-tf (1 - g) * x + g * f(x). Its gates are in
the order i, f, j, o (input gate, forget gate, cell input, output gate), and its bias includes the forget bias. Its
matrices are W in W x; the LSTM's matrices are W in x W here.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..modules.lstm.cell import FORGET_BIAS, Gates

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
    """Replace AllenNLP's names that start with `prefix` by ours, and their tensors by ours, in place.

    If a tensor is missing, or does not match the others that it is combined with, then ours is missing as well, and
    torch's error names it. A state_dict with our names is not changed.

    state_dict: the state_dict, which may also contain other modules.
    prefix: start of the names of the module Elmo.
    ours_inside: whether the biLM is this package's; else only the mixes are converted.
    """
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
    """Return the gates in our order in place of i, f, j, o, and the bias without the forget bias.

    The forget bias is added when the LSTM runs.

    tensor: *Shape:* (4 * dim, ...).
    """
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
