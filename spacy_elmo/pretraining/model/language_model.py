"""A biLM with its softmax and its vocabulary, and the folder that holds them."""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ...errors import Errors, WeightsError
from ...formats.adaptive_file import write_adaptive
from ...formats.atomic_folder import is_unfinished, replacing_folder
from ...formats.contents.files import read_output_layer as read_trusted
from ...formats.contents.untrusted import read_output_layer as read_untrusted
from ...formats.options import read_options, write_options
from ...formats.softmax_file import write_softmax
from ...formats.weights.hdf5 import read_weights, write_weights
from ...modules import BiLM
from ...modules.softmax.adaptive import AdaptiveSoftmax
from ...modules.softmax.full import Softmax
from ...modules.softmax.output_layer import OutputLayer
from ..text.vocabulary import Vocabulary
from .files import (
    COUNTS,
    FILES,
    OPTIONS,
    SOFTMAX,
    WEIGHTS,
    WORDS,
    bilm_folder,
    is_embedded,
    no_package,
    refuse_new_run,
    softmax_folder,
)

_EXPECTED = f"{OPTIONS}, {WEIGHTS}, {SOFTMAX} and {WORDS}"


class LanguageModel:
    """A biLM with the output layer that predicts words.

    bilm: the network.
    softmax: the output layer, of either kind.
    vocabulary: the words of the softmax's rows.
    source: the model's name in messages.

    Raises WeightsError if the sizes of the three do not fit each other.
    """

    def __init__(self, bilm: BiLM, softmax: OutputLayer, vocabulary: Vocabulary, source: str = "the model") -> None:
        rows, width = softmax.n_words, softmax.projection_dim
        if width != bilm.options.projection_dim:
            expected = bilm.options.projection_dim
            raise WeightsError(Errors.MODEL_SOFTMAX_DIM.format(source=source, got=width, expected=expected))
        if rows != len(vocabulary.words):
            raise WeightsError(Errors.MODEL_WORDS.format(source=source, words=len(vocabulary.words), rows=rows))
        self.bilm, self.softmax, self.vocabulary = bilm, softmax, vocabulary

    @property
    def words(self) -> list[str]:
        """The words of the softmax's rows: `<S>`, `</S>`, `<UNK>`, then the others."""
        return self.vocabulary.words

    def ids(self, sentence: list[str]) -> npt.NDArray[np.int32]:
        """Return the row of each word, *Shape:* (words,); that of `<UNK>` for unknown words and for special words."""
        return self.vocabulary.ids(sentence)

    @classmethod
    def load(cls, model: str | os.PathLike[str], *, untrusted: bool = False) -> "LanguageModel":
        """Read options.json, weights.hdf5, softmax.hdf5, vocabulary.txt, and vocabulary.counts.npy if it exists.

        model: the folder, also of a run, or a name such as en_mini, the embedded biLM, whose softmax is in a package of
            its own.
        untrusted: whether a process of its own reads the HDF5 files of a folder (see `read_weights`).

        Raises ElmoError, which names the file that is missing or damaged.
        """
        folder, output = bilm_folder(model), softmax_folder(model)
        if output is None:
            raise no_package(model)
        refuse_new_run(folder)
        if not folder.is_dir():
            raise WeightsError(Errors.MODEL_FOLDER.format(folder=folder, expected=_EXPECTED))
        if is_unfinished(folder):
            raise WeightsError(Errors.MODEL_UNFINISHED.format(folder=folder))
        paths = [folder / OPTIONS, folder / WEIGHTS, output / SOFTMAX, output / WORDS]
        missing = [path.name for path in paths if not path.exists()]
        if SOFTMAX in missing and OPTIONS not in missing and WEIGHTS not in missing:
            raise WeightsError(Errors.MODEL_NO_SOFTMAX.format(folder=folder))
        if missing:
            raise WeightsError(Errors.MODEL_FILES.format(folder=folder, missing=", ".join(missing), expected=_EXPECTED))
        options = read_options(folder / OPTIONS)
        untrusted &= not is_embedded(model)
        softmax = read_output_layer(output / SOFTMAX, untrusted=untrusted)
        bilm = BiLM.from_arrays(options, read_weights(folder / WEIGHTS, options, untrusted=untrusted))
        return cls(bilm, softmax, Vocabulary.read(output / WORDS), str(model))

    def save(self, folder: str | os.PathLike[str], softmax_dtype: npt.DTypeLike = np.float32) -> None:
        """Write the files that `load` reads.

        A new folder appears complete. In an existing folder the files are replaced one by one after all of them were
        written. If the process is killed in between, `load` refuses the folder until it is saved again.

        folder: a new folder, or an existing one, whose other files stay.
        softmax_dtype: float32, or float16 for a softmax of half the size.

        Raises ElmoError if the files can't be written.
        """
        with replacing_folder(folder, (*FILES, COUNTS), WeightsError) as temporary:
            write_options(temporary / OPTIONS, self.bilm.options)
            write_weights(temporary / WEIGHTS, self.bilm.options, self.bilm.to_arrays())
            write_output_layer(temporary / SOFTMAX, self.softmax, softmax_dtype)
            self.vocabulary.write(temporary / WORDS)


def write_output_layer(path: Path, layer: OutputLayer, dtype: npt.DTypeLike, *, compress: bool = False) -> None:
    """Write the softmax.hdf5 of either kind of softmax.

    path: the file to write.
    layer: the softmax.
    dtype: type of the values in the file: float32 or float16.
    compress: whether to use HDF5's filters shuffle and gzip.

    Raises WeightsError if a value is not finite in this type, or if the file can't be written.
    """
    arrays = {name: values.cpu().numpy() for name, values in layer.state_dict().items()}
    if isinstance(layer, AdaptiveSoftmax):
        write_adaptive(path, layer.cutoffs, arrays, dtype, compress=compress)
    else:
        write_softmax(path, arrays["weight"], arrays["bias"], dtype, compress=compress)


def read_output_layer(path: Path, *, untrusted: bool = False) -> OutputLayer:
    """Read the softmax.hdf5 of either kind of softmax.

    path: the file.
    untrusted: whether a process of its own reads it.

    Raises WeightsError if it is missing or damaged.
    """
    cutoffs, arrays = (read_untrusted if untrusted else read_trusted)(path)
    layer: OutputLayer
    if cutoffs is None:
        layer = Softmax(*arrays["weight"].shape)
    else:
        n_words = cutoffs[-1] + len(arrays[f"words.{len(cutoffs) - 1}"])
        layer = AdaptiveSoftmax(n_words, arrays["weight"].shape[1], cutoffs)
    layer.load_state_dict({name: torch.from_numpy(values) for name, values in arrays.items()})
    return layer
