"""The rows that `elmo info` prints for a softmax.hdf5 and its vocabulary.txt."""

from pathlib import Path

from ...errors import Errors, WeightsError
from ...formats.hdf5_checks import open_hdf5
from ...formats.options import BiLMOptions
from ...modules.softmax.adaptive import AdaptiveSoftmax
from ...pretraining.model.files import WORDS
from ...pretraining.model.language_model import read_output_layer
from ...pretraining.text.vocabulary_file import read_words
from .info_rows import Rows

GROUPS = ("softmax", "adaptive")


def holds_softmax(path: Path) -> bool:
    """Return whether an HDF5 file is a biLM's softmax. Raises WeightsError if it can't be read."""
    with open_hdf5(path, "weights or softmax of a biLM", WeightsError) as file:
        return any(name in file for name in GROUPS)


def softmax_rows(path: Path, options: BiLMOptions | None) -> Rows:
    """Return the sizes of a softmax, after reading all of it, and of the vocabulary in the same folder.

    path: softmax.hdf5.
    options: of its biLM; None if they are unknown.

    Raises ElmoError if the softmax does not fit the options or the vocabulary.
    """
    layer = read_output_layer(path)
    if options is not None and layer.projection_dim != options.projection_dim:
        expected = options.projection_dim
        raise WeightsError(Errors.MODEL_SOFTMAX_DIM.format(source=path, got=layer.projection_dim, expected=expected))
    kind = "one vector for each word"
    if isinstance(layer, AdaptiveSoftmax):
        kind = "adaptive, clusters from word " + " and ".join(f"{cutoff:,}" for cutoff in layer.cutoffs)
    rows = [
        ("softmax", kind),
        ("words", f"{layer.n_words:,}"),
        ("vectors", f"{layer.projection_dim:,}"),
        ("parameters", f"{sum(values.numel() for values in layer.parameters()):,}"),
    ]
    words = path.with_name(WORDS)
    if not words.exists():
        return [*rows, (WORDS, "not there: the softmax can't be used without its words")]
    n_words = len(read_words(words))
    if n_words != layer.n_words:
        raise WeightsError(Errors.MODEL_WORDS.format(source=path.parent, words=n_words, rows=layer.n_words))
    return [*rows, (WORDS, f"{n_words:,} words")]
