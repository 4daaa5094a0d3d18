"""A smaller copy of a biLM: rounded weights, a softmax in half precision, compressed files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from ...errors import CommandError, Errors, WeightsError
from ...formats.atomic import writing
from ...formats.atomic_folder import replacing_folder
from ...formats.hdf5_checks import Floats
from ...formats.options import read_options, write_options
from ...formats.rounding import round_mantissas, round_to_steps
from ...formats.weights.hdf5 import read_weights, write_weights
from ..text.vocabulary import Vocabulary
from .files import (
    CARD,
    COUNTS,
    FILES,
    OPTIONS,
    RUN,
    SOFTMAX,
    WEIGHTS,
    WORDS,
    bilm_folder,
    has_softmax,
    is_embedded,
    refuse_new_run,
    softmax_folder,
)
from .language_model import LanguageModel, write_output_layer

NO_SOFTMAX = "none"
EMBEDDING = "char_cnn.embedding.weight"
_CARD_LINE = """
## Packed

{rounded}{softmax} What stands above was measured before.
"""
_MANTISSAS = """\
The mantissas of the weights are rounded to {bits} bits. They change by {largest:.2g} of themselves at most, by \
{mean:.2g} in the mean."""
_STEPS = """\
The matrices are rounded to {bits} bits: each value is a whole number times a power of two, one for each output. They \
change by {norm:.2g} of their norm at most. The mantissas of the biases and the character embedding are rounded to \
{mantissa_bits} bits."""


class Packed(NamedTuple):
    """What packing has changed.

    sizes: for each file that was written, its name and its size in bytes, before and after.
    largest: largest relative change |after - before| / |before| of the biLM's weights; weights of 0 are left out.
    mean: mean relative change of the same weights.
    norms: for each parameter, the norm of its change divided by its norm before.
    """

    sizes: dict[str, tuple[int, int]]
    largest: float
    mean: float
    norms: dict[str, float]


def pack(
    model: str | os.PathLike[str],
    output: Path,
    mantissa_bits: int = 10,
    softmax: str = "float16",
    force: bool = False,
    bits: int | None = None,
) -> Packed:
    """Write a copy of a biLM with rounded weights and compressed files, atomically.

    The files use HDF5's own filters shuffle and gzip. AllenNLP and bilm-tf read them through h5py, which undoes both.

    model: a folder with options.json and weights.hdf5, or of a pretraining run, or a name. softmax.hdf5,
        vocabulary.txt, its counts and README.md are copied too if they exist.
    output: the folder to write.
    mantissa_bits: bits of the weights' mantissas, from 1 to 23; 23 changes nothing.
    softmax: type of the softmax: "float16", "float32" (not rounded) or "none" (left out).
    force: whether to replace a biLM in `output`, but not in the folder of a run. Without it `output` must be new or
        empty.
    bits: bits of the matrices and of the softmax's, from 2 to 16 (see `round_to_steps`); biases and the character
        embedding are rounded to `mantissa_bits`. None: `mantissa_bits` for all weights.

    Raises ElmoError if the model can't be read, if `output` can't be used, or if it can't be written.
    """
    folder = bilm_folder(model)
    refuse_new_run(folder)
    _check_output(folder, output, force)
    options = read_options(folder / OPTIONS)
    arrays = read_weights(folder / WEIGHTS, options, untrusted=not is_embedded(model))
    rounded = {name: rounded_parameter(name, values, mantissa_bits, bits) for name, values in arrays.items()}
    largest, mean = relative_change(arrays, rounded)
    norms = {name: _norm(rounded[name] - values) / (_norm(values) or 1.0) for name, values in arrays.items()}
    full = LanguageModel.load(model, untrusted=True) if softmax != NO_SOFTMAX and has_softmax(model) else None
    if full is not None and bits is not None:
        round_matrices(full.softmax, bits)
    words = _words(full, folder)
    with replacing_folder(output, (*FILES, COUNTS, CARD), WeightsError) as temporary:
        write_options(temporary / OPTIONS, options)
        write_weights(temporary / WEIGHTS, options, rounded, compress=True)
        if full is not None:
            write_output_layer(temporary / SOFTMAX, full.softmax, softmax, compress=True)
        if words is not None:
            words.write(temporary / WORDS)
        if (folder / CARD).is_file():
            with writing(output, WeightsError):
                sentence = _MANTISSAS.format(bits=mantissa_bits, largest=largest, mean=mean)
                if bits is not None:
                    sentence = _STEPS.format(bits=bits, norm=max(norms.values()), mantissa_bits=mantissa_bits)
                line = _card_line(sentence, None if full is None else softmax)
                (temporary / CARD).write_bytes((folder / CARD).read_bytes() + line.encode())
        before = [folder] if full is None else [folder, softmax_folder(model) or folder]
        sizes = {path.name: (_size(path.name, before), path.stat().st_size) for path in sorted(temporary.iterdir())}
    return Packed(sizes, largest, mean, norms)


def rounded_parameter(name: str, values: Floats, mantissa_bits: int, bits: int | None) -> Floats:
    """Return the rounded values of a biLM's parameter.

    name: of the parameter.
    values: of any shape.
    mantissa_bits: bits of the mantissas of what is not a matrix, and of all if `bits` is None.
    bits: bits of the matrices; None: `mantissa_bits`.
    """
    if bits is None or name.endswith("bias") or name == EMBEDDING:
        return round_mantissas(values, mantissa_bits)
    # outputs are the last axis of the LSTM's matrices, whose first axis is the direction; of all others the first axis
    inputs = (1,) if name.startswith("lstm.") else tuple(range(1, values.ndim))
    return round_to_steps(values, bits, inputs)


def round_matrices(softmax: nn.Module, bits: int) -> None:
    """Round the matrices of a softmax in place, with a step for each row of a matrix. bits: from 2 to 16."""
    with torch.no_grad():
        for parameter in softmax.parameters():
            if parameter.ndim == 2:
                parameter.copy_(torch.from_numpy(round_to_steps(parameter.numpy(), bits, (1,))))


def _norm(values: Floats) -> float:
    return float(np.linalg.norm(values.astype(np.float64)))


def relative_change(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> tuple[float, float]:
    """Return the largest and the mean of |after - before| / |before| over all values that are not 0 before.

    before: arrays by their names, of any shape.
    after: arrays of the same names and shapes.

    Returns (0, 0) if all values are 0.
    """
    largest, total, n = 0.0, 0.0, 0
    for name, values in before.items():
        nonzero = values != 0
        old, new = values[nonzero].astype(np.float64), after[name][nonzero].astype(np.float64)
        change = np.abs(new - old) / np.abs(old)
        largest = max(largest, float(change.max(initial=0.0)))
        total, n = total + float(change.sum()), n + change.size
    return largest, total / max(1, n)


def _check_output(folder: Path, output: Path, force: bool) -> None:
    if output.exists() and not output.is_dir():
        raise CommandError(Errors.PACK_FILE.format(path=output))
    if output.exists() and folder.exists() and output.samefile(folder):
        raise CommandError(Errors.PACK_SAME.format(path=output))
    if (output / RUN).is_file():  # a biLM in it would hide the model-best of the run
        raise CommandError(Errors.PACK_RUN.format(path=output))
    if output.exists() and any(output.iterdir()) and not force:
        raise CommandError(Errors.PACK_EXISTS.format(path=output))


def _words(full: LanguageModel | None, folder: Path) -> Vocabulary | None:
    if full is not None:
        return full.vocabulary
    return Vocabulary.read(folder / WORDS) if (folder / WORDS).exists() else None


def _card_line(rounded: str, softmax: str | None) -> str:
    sentence = "" if softmax is None else f" The softmax is stored as {softmax}."
    return _CARD_LINE.format(rounded=rounded, softmax=sentence)


def _size(name: str, folders: list[Path]) -> int:
    """Return the size of a file; if several folders have it, of the last one's."""
    return [path.stat().st_size for path in (folder / name for folder in folders) if path.is_file()][-1]
