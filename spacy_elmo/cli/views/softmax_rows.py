"""What `elmo info` tells of a softmax.hdf5 and the words beside it."""

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
    """Whether an HDF5 file is a biLM's softmax. Raises WeightsError."""
    with open_hdf5(path, "weights or softmax of a biLM", WeightsError) as file:
        return any(name in file for name in GROUPS)


def softmax_rows(path: Path, options: BiLMOptions | None) -> Rows:
    """A softmax, read whole, and the number of words in the vocabulary.txt beside it.

    options: of its biLM, where they are known. Raises ElmoError for what does not fit them or the words.
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
    found = len(read_words(words))
    if found != layer.n_words:
        raise WeightsError(Errors.MODEL_WORDS.format(source=path.parent, words=found, rows=layer.n_words))
    return [*rows, (WORDS, f"{found:,} words")]
