"""Checks of the tensors that the AllenNLP-compatible modules are called with."""

import warnings

import torch
from torch import Tensor

from ..errors import ElmoError, Errors
from ..formats.characters import N_CHARACTERS
from .elmo_bilm import ElmoBiLM


def checked_inputs(
    inputs: Tensor, word_inputs: Tensor | None, network: ElmoBiLM, dims: int | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return the character ids as int64, and the indices of words, or None if the network has no vocabulary for them.

    The ids are zeros if word_inputs were passed in their place, which AllenNLP permits.

    inputs, word_inputs: what the network is to be called with.
    network: the network.
    dims: number of dimensions that `inputs` must have; None: 3 or more.

    Raises ElmoError if a tensor cannot be used.
    """
    if word_inputs is not None and network.vocabulary is None:
        warnings.warn(Errors.ELMO_NO_VOCABULARY, stacklevel=3)
        word_inputs = None
    characters, device = network.bilm.options.max_characters, network.bilm.char_cnn.embedding.weight.device
    for name, tensor in (("inputs", inputs), ("word_inputs", word_inputs)):
        if tensor is None and name == "word_inputs":
            continue
        if not isinstance(tensor, Tensor):
            raise ElmoError(Errors.ELMO_NO_TENSOR.format(name=name, got=type(tensor).__name__))
        if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
            raise ElmoError(Errors.ELMO_DTYPE.format(name=name, got=str(tensor.dtype).removeprefix("torch.")))
        if tensor.device != device:
            raise ElmoError(Errors.ELMO_DEVICE.format(name=name, got=tensor.device, expected=device))
    if word_inputs is not None and inputs.shape == word_inputs.shape and inputs.dim() >= 2:
        inputs = inputs.new_zeros(*inputs.shape, characters)
    if inputs.dim() < 3 or inputs.dim() != (dims or inputs.dim()):
        message = Errors.ELMO_SHAPE if dims is None else Errors.ELMO_RAW_SHAPE
        raise ElmoError(message.format(got=tuple(inputs.shape), characters=characters))
    if inputs.shape[-1] != characters:
        raise ElmoError(Errors.ELMO_CHARACTERS.format(got=inputs.shape[-1], expected=characters))
    inputs = inputs.long()
    if inputs.numel():
        least, most = int(inputs.min()), int(inputs.max())
        if least < 0 or most > N_CHARACTERS:
            raise ElmoError(Errors.ELMO_RANGE.format(got=least if least < 0 else most))
    if word_inputs is not None and word_inputs.shape != inputs.shape[:-1]:
        raise ElmoError(Errors.ELMO_WORDS_SHAPE.format(got=tuple(word_inputs.shape), expected=tuple(inputs.shape[:-1])))
    is_word = (inputs > 0).any(-1) if word_inputs is None else word_inputs != 0
    # the network counts the words: the last ones would silently be read as padding
    gaps = (is_word[..., 1:] & ~is_word[..., :-1]).flatten(0, -2).any(1)
    if gaps.any():
        name = "inputs" if word_inputs is None else "word_inputs"
        raise ElmoError(Errors.ELMO_GAP.format(row=int(gaps.nonzero()[0]), name=name))
    return inputs, word_inputs
