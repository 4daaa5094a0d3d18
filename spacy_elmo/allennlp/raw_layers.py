"""AllenNLP's _ElmoBiLm: the layers as they are, without a mix."""

import os
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ..errors import Errors, SettingsError
from ..modules.loading import load_bilm
from .checks import checked_inputs
from .elmo_bilm import ElmoBiLM

File = str | os.PathLike[str]


class RawBiLM(ElmoBiLM):
    """An ElmoBiLM that users call themselves, so that it checks what it is called with."""

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Run sentences. Arguments and returns are those of `ElmoBiLM.forward`.

        Raises ElmoError if a tensor cannot be used.
        """
        inputs, word_inputs = checked_inputs(inputs, word_inputs, self, dims=3)
        return super().forward(inputs, word_inputs)


class _ElmoBiLm(RawBiLM):
    """A drop-in for AllenNLP's class of this name (2.10): all layers, with the vectors of `<S>` and `</S>`.

    options_file, weight_file: paths of the official files; both None: the embedded biLM.
    requires_grad: whether the biLM is trained.
    vocab_to_cache: words whose vectors of layer 0 are cached, as for `Elmo`.
    stateful: whether row i of a batch starts from the state after row i of the previous batch, as in AllenNLP.

    Raises ElmoError if files or settings cannot be used.
    """

    def __init__(
        self,
        options_file: File | None,
        weight_file: File | None,
        requires_grad: bool = False,
        vocab_to_cache: Sequence[str] | None = None,
        stateful: bool = False,
    ) -> None:
        if isinstance(vocab_to_cache, list) and not vocab_to_cache:
            vocab_to_cache = None  # as in AllenNLP
        if requires_grad and vocab_to_cache is not None:
            raise SettingsError(Errors.ELMO_CACHED_AND_TRAINED)
        bilm = load_bilm(options_file, weight_file).requires_grad_(requires_grad)
        super().__init__(bilm, vocab_to_cache, stateful)
