"""Checks of a biLM's parameters as arrays, before they are written or used."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import Errors, WeightsError
from ..hdf5_checks import Floats
from ..options import BiLMOptions
from .table import parameter_problems

_MAX_LISTED = 10  # items in a message


def check_arrays(arrays: Mapping[str, Floats], options: BiLMOptions, source: str) -> None:
    """Check that arrays are the parameters of a biLM.

    arrays: by parameter name (see `expected_parameters`).
    options: the biLM's sizes.
    source: where the arrays are from, as the beginning of the message.

    Raises WeightsError as check_shapes does, and if a value is not finite, or if row 0 of the character embedding (the
    mask) is not zero, since weights.hdf5 has no place for it.
    """
    check_shapes(arrays, options, source)
    for name, array in arrays.items():
        n_bad = int(array.size - np.isfinite(array).sum())
        if n_bad:
            raise WeightsError(Errors.PARAMETER_NOT_FINITE.format(source=source, name=name, got=n_bad))
    if arrays["char_cnn.embedding.weight"][0].any():
        raise WeightsError(Errors.PARAMETER_PADDING.format(source=source, name="char_cnn.embedding.weight"))


def check_shapes(arrays: Mapping[str, Floats], options: BiLMOptions, source: str) -> None:
    """Check that a biLM could have these arrays, whatever values are in them.

    arrays, options, source: as in check_arrays.

    Raises WeightsError if arrays are missing, unexpected, misshapen or not float32.
    """
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.newbyteorder("=") != np.float32:
            got = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise WeightsError(Errors.PARAMETER_DTYPE.format(source=source, name=name, got=got))
    problems = parameter_problems(options, {name: array.shape for name, array in arrays.items()})
    if problems:
        raise WeightsError(Errors.PARAMETERS.format(source=source, problems=listed(problems, "; ")))


def listed(items: list[str], separator: str = ", ") -> str:
    """Return the first ten items as text, and how many more there are."""
    more = len(items) - _MAX_LISTED
    return separator.join(items[:_MAX_LISTED]) + (f"{separator}and {more} more" if more > 0 else "")
