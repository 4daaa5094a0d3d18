"""Loading a biLM from its files."""

import os

import torch

from .. import bilms
from ..errors import ElmoError, Errors, SettingsError
from ..formats.options import read_options
from ..formats.weights.hdf5 import read_weights
from .bilm import BiLM

File = str | os.PathLike[str]
EMBEDDED = "en_mini"


def embedded_files() -> tuple[str, str]:
    """Return the paths of options.json and weights.hdf5 of the embedded biLM."""
    return bilms.paths(EMBEDDED)


def check_files(options_file: File | None, weight_file: File | None) -> None:
    """Raise SettingsError if one of the two settings is None and the other is not."""
    if (options_file is None) != (weight_file is None):
        names = ("options_file", "weight_file")
        missing, present = names if options_file is None else names[::-1]
        raise SettingsError(Errors.ONE_FILE.format(missing=missing, given=present))


@torch.inference_mode(False)  # the weights must be trainable, even if the caller is in inference mode
def load_bilm(options_file: File | None = None, weight_file: File | None = None) -> BiLM:
    """Load a biLM in the official format. If both files are None, load the embedded one, en_mini.

    options_file: the options.json, with sizes and settings.
    weight_file: the weights.hdf5.

    Raises ElmoError, which names the setting and says what is wrong with its file.
    """
    check_files(options_file, weight_file)
    embedded = options_file is None or weight_file is None
    if options_file is None or weight_file is None:
        options_file, weight_file = embedded_files()
    setting = "options_file"
    try:
        options = read_options(options_file)
        setting = "weight_file"
        return BiLM.from_arrays(options, read_weights(weight_file, options, trusted=embedded))
    except ElmoError as error:
        raise type(error)(Errors.FILE_SETTING.format(error=error, setting=setting)) from error
