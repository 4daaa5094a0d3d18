"""A smaller copy of a biLM: rounded weights, a softmax in half precision, compressed files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ..errors import CommandError, WeightsError
from ..formats import outputs
from ..formats.atomic import real, replacing_folder, writing
from ..formats.hdf5 import Floats
from ..formats.options import read_options, write_options
from ..formats.weights import read_weights, write_weights
from ..modules.loading import files_of, find_bilm
from . import language_model as files
from .language_model import LanguageModel, refuse_new_run, softmax_folder, write_output_layer
from .vocabulary import Vocabulary

MANTISSA_BITS = 23  # that a float32 stores (IEEE 754 binary32), without the implicit leading 1
STEPS_TRIED = 4  # a still smaller step would reach too few values
SMALLEST = 2.0**-149  # the smallest float32 above 0


def round_mantissas(values: Floats, bits: int) -> Floats:
    """Round float32 values to the nearest ones whose mantissas have `bits` bits, 1 to 23, half to even.

    Subnormal numbers are rounded to multiples of 2 ** -(126 + bits). A number that would round to infinity becomes the
    largest one of `bits` bits. NaN and infinity do not change.
    """
    # At least one dimension, because numpy warns if a scalar overflows.
    raw = np.array(values, dtype=np.float32, ndmin=1).view(np.uint32)
    n_dropped = MANTISSA_BITS - bits
    if n_dropped == 0:
        return raw.view(np.float32).reshape(values.shape)
    mask = np.uint32(2**32 - 2**n_dropped)
    last_bit = (raw >> np.uint32(n_dropped)) & np.uint32(1)
    # A carry out of the mantissa increases the exponent: the next power of two, as it should be.
    rounded = ((raw + np.uint32(2 ** (n_dropped - 1) - 1) + last_bit) & mask).view(np.float32)
    finite = np.isfinite(raw.view(np.float32))
    rounded = np.where(np.isfinite(rounded), rounded, (raw & mask).view(np.float32))
    result: Floats = np.where(finite, rounded, raw.view(np.float32)).reshape(values.shape)
    return result


def round_to_steps(values: Floats, bits: int, axes: tuple[int, ...]) -> Floats:
    """Round values to whole numbers of a step, half to even. Each output has its own step (see `steps_of`).

    The whole numbers have `bits` bits with their sign, 2 to 16.

    values: float32, finite. axes: those of one output's values.
    """
    step, most = steps_of(values, bits, axes), 2 ** (bits - 1) - 1
    result: Floats = (np.clip(np.rint(values / step), -most, most) * step).astype(np.float32)
    return result


def steps_of(values: Floats, bits: int, axes: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return the step of each output, a power of two, with the axes of the values.

    It is the smallest that reaches all values, or one of the next three below, which cut the largest values: that with
    the smallest sum of squared changes.
    """
    exact = values.astype(np.float64)
    most = 2 ** (bits - 1) - 1
    largest = np.abs(exact).max(axis=axes, keepdims=True, initial=0.0)
    # From a step that reaches all values. It is at least float32's smallest number, whose multiples are exact: so no
    # smaller step changes the values less.
    step = np.exp2(np.ceil(np.log2(np.maximum(largest / most, SMALLEST))))
    best: npt.NDArray[np.float64] = step
    change = np.full_like(largest, np.inf)
    for _ in range(STEPS_TRIED):
        rounded = np.clip(np.rint(exact / step), -most, most) * step
        rounded_change = ((rounded - exact) ** 2).sum(axis=axes, keepdims=True)
        best = np.where(rounded_change < change, step, best)
        change = np.minimum(rounded_change, change)
        step = step / 2
    return best


def inputs_of(name: str, dimensions: int) -> tuple[int, ...] | None:
    """Return the axes of one output's values of a biLM's parameter; None if its values are not rounded to steps."""
    if name.endswith("bias") or name == EMBEDDING:
        return None
    # outputs are the last axis of the LSTM's matrices, whose first axis is the direction; of all others the first axis
    return (1,) if name.startswith("lstm.") else tuple(range(1, dimensions))


NO_SOFTMAX = "none"
EMBEDDING = "char_cnn.embedding.weight"
_CARD_LINE = """
## Packed

{told} What stands above was measured before.
"""
_EARLIER = re.compile(rb"\r?\n## Packed\r?\n.*?(?=\r?\n## |\Z)", re.DOTALL)  # of a biLM that was packed before
_MANTISSAS = """\
The mantissas of the weights are rounded to {bits} bits. They change by {largest:.2g} of themselves at most, by \
{mean:.2g} in the mean."""
_STEPS = """\
The matrices are rounded to {bits} bits: each value is a whole number times a power of two, one for each output. They \
change by {norm:.2g} of their norm at most. The mantissas of the biases and the character embedding are rounded to \
{mantissa_bits} bits."""


class Packed(NamedTuple):
    """sizes: in bytes, before and after, of each file. norms: of each parameter's change, relative to its norm before.

    largest, mean: relative changes |after - before| / |before| of the biLM's weights that are not 0.
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
    """Write a copy of a biLM with rounded weights and files that HDF5 compresses.

    model: a folder, also of a run, or a name. Its softmax, vocabulary and card are copied too, if it has them.
    output: a new or empty folder; with `force` also one with a biLM, which is replaced, but not that of a run.
    softmax: its type: "float16", "float32" (not rounded) or "none" (left out).
    bits: of the matrices and of the softmax's (see `round_to_steps`); biases and the character embedding are rounded to
        `mantissa_bits`. None: `mantissa_bits` for all weights.
    """
    folder = find_bilm(model)
    refuse_new_run(folder)
    run = real(output)
    run = run.parent if run.name in (files.BEST, files.LAST) else run
    if (run / files.RUN).is_file():  # a biLM in it would hide the model-best of the run, or replace it
        raise CommandError(
            f"{run}: the folder of a pretraining run. Expected a folder of its own for the packed model: change OUT."
        )
    names = (*files.FILES, files.COUNTS, files.CARD)
    with outputs.output(output, CommandError, files_of(model), names=names, marks=(files.OPTIONS,), force=force):
        options = read_options(folder / files.OPTIONS)
        arrays = read_weights(folder / files.WEIGHTS, options)
        rounded = {name: _rounded(name, values, mantissa_bits, bits) for name, values in arrays.items()}
        largest, mean = _relative_change(arrays, rounded)
        norms = {name: _norm(rounded[name] - values) / (_norm(values) or 1.0) for name, values in arrays.items()}
        of_softmax = softmax_folder(model) if softmax != NO_SOFTMAX else None
        full = None if of_softmax is None else LanguageModel.load(model)
        if full is not None and bits is not None:
            weight = full.softmax.weight.data
            weight.copy_(torch.from_numpy(round_to_steps(weight.numpy(), bits, (1,))))
        with replacing_folder(output, (*files.FILES, files.COUNTS), WeightsError) as temporary:  # an own card stays
            write_options(temporary / files.OPTIONS, options)
            write_weights(temporary / files.WEIGHTS, options, rounded, compress=True)
            if full is not None:
                write_output_layer(temporary / files.SOFTMAX, full.softmax, softmax, compress=True)
                full.vocabulary.write(temporary / files.WORDS)
            elif (folder / files.WORDS).exists():
                Vocabulary.read(folder / files.WORDS).write(temporary / files.WORDS)
            if (folder / files.CARD).is_file():
                told = _MANTISSAS.format(bits=mantissa_bits, largest=largest, mean=mean)
                if bits is not None:
                    told = _STEPS.format(bits=bits, norm=max(norms.values()), mantissa_bits=mantissa_bits)
                told += "" if full is None else f" The softmax is stored as {softmax}."
                with writing(output, WeightsError):
                    card = (folder / files.CARD).read_bytes()
                    if largest:  # otherwise the weights are as they were
                        card = _EARLIER.sub(b"", card) + _CARD_LINE.format(told=told).encode()
                    (temporary / files.CARD).write_bytes(card)
            before = [*filter(None, (folder, of_softmax))]
            sizes = {path.name: (_size(path.name, before), path.stat().st_size) for path in sorted(temporary.iterdir())}
        return Packed(sizes, largest, mean, norms)


def _rounded(name: str, values: Floats, mantissa_bits: int, bits: int | None) -> Floats:
    inputs = inputs_of(name, values.ndim)
    if bits is None or inputs is None:
        return round_mantissas(values, mantissa_bits)
    return round_to_steps(values, bits, inputs)


def _norm(values: Floats) -> float:
    return float(np.linalg.norm(values.astype(np.float64)))


def _relative_change(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> tuple[float, float]:
    largest, total, n = 0.0, 0.0, 0
    for name, values in before.items():
        nonzero = values != 0
        old, new = values[nonzero].astype(np.float64), after[name][nonzero].astype(np.float64)
        change = np.abs(new - old) / np.abs(old)
        largest = max(largest, float(change.max(initial=0.0)))
        total, n = total + float(change.sum()), n + change.size
    return largest, total / max(1, n)


def _size(name: str, folders: list[Path]) -> int:
    return [path.stat().st_size for path in (folder / name for folder in folders) if path.is_file()][-1]
