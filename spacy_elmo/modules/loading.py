"""Loading a biLM from its files: the options alone, the weights as plain arrays, or the network."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from .. import bilms
from ..errors import ElmoError, Errors, SettingsError
from ..formats.options import BiLMOptions, read_options
from ..formats.weights.hdf5 import read_weights
from .bilm import BiLM

File = str | os.PathLike[str]
Arrays = dict[str, npt.NDArray[np.float32]]  # weights by parameter name
EMBEDDED = "en_mini"


def embedded_files() -> tuple[str, str]:
    """options.json and weights.hdf5 of the embedded biLM."""
    return bilms.paths(EMBEDDED)


def check_files(options_file: File | None, weight_file: File | None) -> None:
    """Raise SettingsError if one of the two settings is None and the other is not."""
    if (options_file is None) != (weight_file is None):
        names = ("options_file", "weight_file")
        missing, present = names if options_file is None else names[::-1]
        raise SettingsError(Errors.ONE_FILE.format(missing=missing, given=present))


def load_options(options_file: File | None = None) -> BiLMOptions:
    """Load the sizes and settings of a biLM.

    options_file: an options.json; None: that of the embedded biLM.

    Raises ElmoError, which names the setting and says what is wrong with the file.
    """
    with _naming("options_file"):
        return read_options(embedded_files()[0] if options_file is None else options_file)


def load_arrays(options_file: File | None = None, weight_file: File | None = None) -> tuple[BiLMOptions, Arrays]:
    """Load the options and the weights of a biLM, without a network.

    options_file: the options.json, with sizes and settings.
    weight_file: the weights.hdf5 in the official format. If both are None, the embedded biLM is loaded.
    Raises ElmoError, which names the setting and says what is wrong with its file.
    """
    check_files(options_file, weight_file)
    options = load_options(options_file)
    with _naming("weight_file"):
        if weight_file is None:
            return options, read_weights(embedded_files()[1], options, trusted=True)
        return options, read_weights(weight_file, options)


def load_bilm(options_file: File | None = None, weight_file: File | None = None) -> BiLM:
    """Load a biLM in the official format as a network. If both files are None, load the embedded one, en_mini.

    options_file: the options.json, with sizes and settings.
    weight_file: the weights.hdf5.

    Raises ElmoError, which names the setting and says what is wrong with its file.
    """
    return BiLM.from_arrays(*load_arrays(options_file, weight_file))


@contextmanager
def _naming(setting: str) -> Iterator[None]:
    """Errors within say which setting names the file."""
    try:
        yield
    except ElmoError as error:
        raise type(error)(Errors.FILE_SETTING.format(error=error, setting=setting)) from error
