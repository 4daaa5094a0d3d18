"""The rows that `elmo info` prints for a softmax.hdf5 and its vocabulary.txt."""

from pathlib import Path

from ...errors import Errors, WeightsError
from ...formats.contents.untrusted import read_output_layer
from ...formats.options import BiLMOptions
from ...pretraining.model.files import WORDS
from ...pretraining.text.vocabulary_file import read_words
from .info_rows import Rows


def softmax_rows(path: Path, options: BiLMOptions | None) -> Rows:
    """Return the sizes of a softmax, after reading all of it, and of the vocabulary in the same folder.

    path: softmax.hdf5.
    options: of its biLM; None if they are unknown.

    Raises ElmoError if the softmax does not fit the options or the vocabulary.
    """
    cutoffs, arrays = read_output_layer(path)
    n_words, width = arrays["weight"].shape
    if cutoffs is not None:
        n_words = cutoffs[-1] + len(arrays[f"words.{len(cutoffs) - 1}"])
    if options is not None and width != options.projection_dim:
        expected = options.projection_dim
        raise WeightsError(Errors.MODEL_SOFTMAX_DIM.format(source=path, got=width, expected=expected))
    kind = "one vector for each word"
    if cutoffs is not None:
        kind = "adaptive, clusters from word " + " and ".join(f"{cutoff:,}" for cutoff in cutoffs)
    rows = [
        ("softmax", kind),
        ("words", f"{n_words:,}"),
        ("vectors", f"{width:,}"),
        ("parameters", f"{sum(values.size for values in arrays.values()):,}"),
    ]
    words = path.with_name(WORDS)
    if not words.exists():
        return [*rows, (WORDS, "not there: the softmax can't be used without its words")]
    found = len(read_words(words))
    if found != n_words:
        raise WeightsError(Errors.MODEL_WORDS.format(source=path.parent, words=found, rows=n_words))
    return [*rows, (WORDS, f"{found:,} words")]
