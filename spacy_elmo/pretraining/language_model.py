"""A biLM with what it predicts: its softmax and the words, and the folder that holds them."""

import os
import shutil
import uuid
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ..errors import Errors, WeightsError
from ..formats.adaptive_file import holds_adaptive, read_adaptive, write_adaptive
from ..formats.atomic import writing
from ..formats.hdf5_weights import read_weights, write_weights
from ..formats.options import read_options, write_options
from ..formats.softmax_file import read_softmax, write_softmax
from ..modules import BiLM
from ..modules.adaptive_softmax import AdaptiveSoftmax
from ..modules.output_layer import OutputLayer
from ..modules.softmax import Softmax
from .vocabulary import Vocabulary

OPTIONS, WEIGHTS, SOFTMAX, WORDS = "options.json", "weights.hdf5", "softmax.hdf5", "vocabulary.txt"
COUNTS = "vocabulary.counts.npy"  # may be missing
FILES = (OPTIONS, WEIGHTS, SOFTMAX, WORDS)
_EXPECTED = f"{OPTIONS}, {WEIGHTS}, {SOFTMAX} and {WORDS}"


class LanguageModel:
    """bilm; softmax: it predicts each word; vocabulary: the words, and their counts where they are known.

    source: what errors call it. Raises WeightsError where the three don't belong together.
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
        """The rows of a sentence's words, (words,); that of `<UNK>` where there is none, and for `<S>`, `</S>`."""
        return self.vocabulary.ids(sentence)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "LanguageModel":
        """Read options.json, weights.hdf5, softmax.hdf5, vocabulary.txt and, if there, vocabulary.counts.npy.

        Raises ElmoError, which names the file that is missing or what is wrong with it.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise WeightsError(Errors.MODEL_FOLDER.format(folder=folder, expected=_EXPECTED))
        missing = [name for name in FILES if not (folder / name).exists()]
        if SOFTMAX in missing and OPTIONS not in missing and WEIGHTS not in missing:
            raise WeightsError(Errors.MODEL_NO_SOFTMAX.format(folder=folder))
        if missing:
            raise WeightsError(Errors.MODEL_FILES.format(folder=folder, missing=", ".join(missing), expected=_EXPECTED))
        options = read_options(folder / OPTIONS)
        softmax = _read_output_layer(folder / SOFTMAX)
        bilm = BiLM.from_arrays(options, read_weights(folder / WEIGHTS, options))
        return cls(bilm, softmax, Vocabulary.read(folder / WORDS), str(folder))

    def save(self, folder: str | os.PathLike[str], softmax_dtype: npt.DTypeLike = np.float32) -> None:
        """Write what load reads. A new folder appears at once; in one that is there each file is replaced whole, when
        all have been written.

        softmax_dtype: float32, or float16 for a softmax of half the size. Raises ElmoError.
        """
        folder = Path(os.path.realpath(folder))  # a link stays one
        temporary = folder.parent / f".{uuid.uuid4().hex}.tmp"
        try:
            with writing(folder, WeightsError):
                temporary.mkdir(parents=True)
            self._write(temporary, softmax_dtype)
            with writing(folder, WeightsError):
                if folder.exists():
                    _replace_files(temporary, folder)
                else:
                    os.rename(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _write(self, folder: Path, softmax_dtype: npt.DTypeLike) -> None:
        arrays = {name: values.cpu().numpy() for name, values in self.softmax.state_dict().items()}
        write_options(folder / OPTIONS, self.bilm.options)
        write_weights(folder / WEIGHTS, self.bilm.options, self.bilm.to_arrays())
        if isinstance(self.softmax, AdaptiveSoftmax):
            write_adaptive(folder / SOFTMAX, self.softmax.cutoffs, arrays, softmax_dtype)
        else:
            write_softmax(folder / SOFTMAX, arrays["weight"], arrays["bias"], softmax_dtype)
        self.vocabulary.write(folder / WORDS)


def _read_output_layer(path: Path) -> OutputLayer:
    layer: OutputLayer
    if holds_adaptive(path):
        cutoffs, arrays = read_adaptive(path)
        n_words = cutoffs[-1] + len(arrays[f"words.{len(cutoffs) - 1}"])
        layer = AdaptiveSoftmax(n_words, arrays["weight"].shape[1], cutoffs)
    else:
        weight, bias = read_softmax(path)
        layer, arrays = Softmax(*weight.shape), {"weight": weight, "bias": bias}
    layer.load_state_dict({name: torch.from_numpy(values) for name, values in arrays.items()})
    return layer


def _replace_files(source: Path, folder: Path) -> None:
    if not (source / COUNTS).exists():
        (folder / COUNTS).unlink(missing_ok=True)  # of the words before
    for path in source.iterdir():
        os.replace(path, folder / path.name)
