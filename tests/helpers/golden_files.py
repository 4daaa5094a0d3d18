"""The reference files of tests/golden: what AllenNLP's own module gave (float32)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spacy_elmo.formats import read_options, read_weights
from spacy_elmo.modules import BiLM

GOLDEN_NAMES = ("random_a", "random_b")
Array = npt.NDArray[np.float32]


class Golden(NamedTuple):
    """A network, its sentences and what it is to give; expected: arrays by their names in expected.hdf5."""

    bilm: BiLM
    sentences: list[list[str]]
    carry_batches: list[list[list[str]]]
    expected: dict[str, Array]
    attributes: dict[str, dict[str, npt.NDArray[np.float64]]]


def bilm_in(folder: Path, weights: str = "weights.hdf5") -> BiLM:
    options = read_options(folder / "options.json")
    return BiLM.from_arrays(options, read_weights(folder / weights, options))


def datasets_in(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    """All arrays of an HDF5 file, by name."""
    found: dict[str, npt.NDArray[np.generic]] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
    return found


def read_golden(folder: Path) -> Golden:
    texts = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    path = folder / "expected.hdf5"
    with h5py.File(path) as file:
        attributes = {f"mix/{name}": dict(item.attrs) for name, item in file["mix"].items()}
    return Golden(bilm_in(folder), texts["sentences"], texts["carry_batches"], datasets_in(path), attributes)


def tiny_batches(folder: Path) -> Iterator[tuple[list[list[str]], list[Array | None]]]:
    """tiny_fixture's batches of three sentences, and for each its top layer, (tokens, 32), where it is known."""
    lists = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    known = [datasets_in(folder / f"lm_embeddings_{row}.hdf5") for row in (0, 1)]
    for k, sentences in enumerate(zip(*lists, strict=True)):
        expected = [np.concatenate(list(rows[str(k)]), 1).astype(np.float32) for rows in known]
        yield [sentence.split() for sentence in sentences], [*expected, None]


# contextual-repr-analysis: sums over the 32 dimensions of the mean of tiny_fixture's layers
SUMS = [
    (sentence, [float(number) for number in numbers.split()])
    for sentence, numbers in (
        (
            "The cryptocurrency space is now figuring out to have the highest search on Google globally .",
            "-5.4501357 0.57151437 -1.9986794 -1.9020741 -1.6883984 0.46092677 -2.0832047 -2.045756 "
            "-2.660774 -5.4992304 -3.6687968 -3.4485395 -1.9255438 -0.92559034 -1.7234659 -4.93639",
        ),
        (
            "Bitcoin alone has a sixty percent share of global search .",
            "-0.51167095 -0.61811006 -2.8013024 -3.7508147 -1.6987357 -1.1114583 -3.6302583 -3.3409853 "
            "-1.3613609 -3.6760461 -5.137144",
        ),
        (
            "ELMo has had trouble handling sentences / with forward slashes .",
            "-1.5057361 -2.6824353 -4.1259403 -3.4485295 -1.3296673 -4.5548496 -6.077871 -3.4515395 "
            "-3.8405519 -4.3518186 -4.8782477",
        ),
    )
]
