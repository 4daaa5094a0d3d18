"""A smaller copy of a biLM: rounded mantissas, a softmax in half precision, compressed files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import CommandError, Errors, WeightsError
from ...formats.atomic import writing
from ...formats.atomic_folder import replacing_folder
from ...formats.hdf5_checks import Floats
from ...formats.options import read_options, write_options
from ...formats.rounding import round_mantissas
from ...formats.weights.hdf5 import read_weights, write_weights
from ..text.vocabulary import Vocabulary
from .files import CARD, COUNTS, FILES, OPTIONS, SOFTMAX, WEIGHTS, WORDS, bilm_folder, has_softmax, softmax_folder
from .language_model import LanguageModel, write_output_layer

NO_SOFTMAX = "none"
_CARD_LINE = """
## Packed

The mantissas of the weights are rounded to {bits} bits. They change by {largest:.2g} of themselves at most, by \
{mean:.2g} in the mean.{softmax} What stands above was measured before.
"""


class Packed(NamedTuple):
    """sizes: bytes before and after, by file name, of the files that were written.

    largest, mean: |after - before| / |before| over all weights that are not 0; the softmax is not among them.
    """

    sizes: dict[str, tuple[int, int]]
    largest: float
    mean: float


def pack(
    model: str | os.PathLike[str], output: Path, mantissa_bits: int = 10, softmax: str = "float16", force: bool = False
) -> Packed:
    """Write a biLM with rounded weights and compressed files to a folder, whole or not at all.

    model: a folder with options.json and weights.hdf5; softmax.hdf5, vocabulary.txt, its counts and README.md are taken
    where they are there. Or en_mini. output: a new folder; with force, the biLM in one that is there is replaced.
    mantissa_bits: of the weights, 1 to 23 (all). softmax: "float16", "float32" (not rounded) or "none" (left out).

    The files are HDF5's with its filters shuffle and gzip. AllenNLP and bilm-tf read them through h5py, which undoes
    both: they see plain float32. Raises ElmoError.
    """
    folder = bilm_folder(model)
    _check_output(folder, output, force)
    options = read_options(folder / OPTIONS)
    arrays = read_weights(folder / WEIGHTS, options)
    rounded = {name: round_mantissas(values, mantissa_bits) for name, values in arrays.items()}
    largest, mean = relative_change(arrays, rounded)
    known = LanguageModel.load(model) if softmax != NO_SOFTMAX and has_softmax(model) else None
    words = _words(known, folder)
    with replacing_folder(output, (*FILES, COUNTS, CARD), WeightsError) as temporary:
        write_options(temporary / OPTIONS, options)
        write_weights(temporary / WEIGHTS, options, rounded, compress=True)
        if known is not None:
            write_output_layer(temporary / SOFTMAX, known.softmax, softmax, compress=True)
        if words is not None:
            words.write(temporary / WORDS)
        if (folder / CARD).is_file():
            with writing(output, WeightsError):
                line = _card_line(mantissa_bits, largest, mean, None if known is None else softmax)
                (temporary / CARD).write_bytes((folder / CARD).read_bytes() + line.encode())
        before = [folder] if known is None else [folder, softmax_folder(model) or folder]
        sizes = {path.name: (_size(path.name, before), path.stat().st_size) for path in sorted(temporary.iterdir())}
    return Packed(sizes, largest, mean)


def relative_change(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> tuple[float, float]:
    """The largest and the mean of |after - before| / |before| over all values that are not 0; 0 without any."""
    largest, total, n = 0.0, 0.0, 0
    for name, values in before.items():
        known = values != 0
        old, new = values[known].astype(np.float64), after[name][known].astype(np.float64)
        change = np.abs(new - old) / np.abs(old)
        largest = max(largest, float(change.max(initial=0.0)))
        total, n = total + float(change.sum()), n + change.size
    return largest, total / max(1, n)


def _check_output(folder: Path, output: Path, force: bool) -> None:
    if output.exists() and not output.is_dir():
        raise CommandError(Errors.PACK_FILE.format(path=output))
    if output.exists() and folder.exists() and output.samefile(folder):
        raise CommandError(Errors.PACK_SAME.format(path=output))
    if output.exists() and any(output.iterdir()) and not force:
        raise CommandError(Errors.PACK_EXISTS.format(path=output))


def _words(known: LanguageModel | None, folder: Path) -> Vocabulary | None:
    if known is not None:
        return known.vocabulary
    return Vocabulary.read(folder / WORDS) if (folder / WORDS).exists() else None


def _card_line(bits: int, largest: float, mean: float, softmax: str | None) -> str:
    told = "" if softmax is None else f" The softmax is stored as {softmax}."
    return _CARD_LINE.format(bits=bits, largest=largest, mean=mean, softmax=told)


def _size(name: str, folders: list[Path]) -> int:
    """Of the last folder's file of that name, where several have it."""
    return [path.stat().st_size for path in (folder / name for folder in folders) if path.is_file()][-1]
