"""Checks of a biLM's parameters as arrays, wherever they come from or go to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import Errors, WeightsError
from ..hdf5_checks import Floats
from ..options import BiLMOptions
from .table import parameter_problems

_MAX_LISTED = 10


def check_arrays(arrays: Mapping[str, Floats], options: BiLMOptions, source: str) -> None:
    """Refuse what is not a biLM of these options; `source` begins the message.

    Raises WeightsError for arrays that are missing, unexpected, misshapen, not float32 or not finite,
    and for a character embedding whose row 0 is not zero: the file has no place for it.
    """
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.newbyteorder("=") != np.float32:
            got = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise WeightsError(Errors.PARAMETER_DTYPE.format(source=source, name=name, got=got))
    problems = parameter_problems(options, {name: array.shape for name, array in arrays.items()})
    if problems:
        raise WeightsError(Errors.PARAMETERS.format(source=source, problems=listed(problems, "; ")))
    for name, array in arrays.items():
        n_bad = int(array.size - np.isfinite(array).sum())
        if n_bad:
            raise WeightsError(Errors.PARAMETER_NOT_FINITE.format(source=source, name=name, got=n_bad))
    if arrays["char_cnn.embedding.weight"][0].any():
        raise WeightsError(Errors.PARAMETER_PADDING.format(source=source, name="char_cnn.embedding.weight"))


def listed(items: list[str], separator: str = ", ") -> str:
    more = len(items) - _MAX_LISTED
    return separator.join(items[:_MAX_LISTED]) + (f"{separator}and {more} more" if more > 0 else "")
