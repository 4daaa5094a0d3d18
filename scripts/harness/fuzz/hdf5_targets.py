"""Files of HDF5: changed bytes, and valid files of another structure than expected."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import torch

from spacy_elmo.formats import VectorsWriter, read_vectors, read_weights
from spacy_elmo.formats import contents as untrusted
from spacy_elmo.formats.softmax import read_adaptive, read_softmax, write_softmax
from spacy_elmo.modules.softmax import AdaptiveSoftmax
from spacy_elmo.pretraining.language_model import read_output_layer, write_output_layer

from .forks import in_fork
from .mutate import ODD_TEXTS, mutated
from .pool import Target
from .samples import OPTIONS, bilm_files, new_folder

_TYPES = ("<f4", ">f4", "<f2", "<f8", "<i4", "u1", "?", "<c8", "S7", [("a", "<f4"), ("b", "<i2")])
_HUGE = 2**40
_REFUSED = (ValueError, TypeError, OSError, RuntimeError, KeyError, OverflowError, MemoryError)


def weights() -> Target:
    """A biLM's weights.hdf5."""
    return _target(
        bilm_files()[1].read_bytes(),
        lambda path: read_weights(path, OPTIONS),
        lambda path: read_weights(path, OPTIONS, untrusted=True),
    )


def softmax() -> Target:
    """The softmax.hdf5 of a full or sampled softmax."""
    path = new_folder() / "softmax.hdf5"
    random = np.random.default_rng(0)
    write_softmax(path, random.normal(size=(30, 8)).astype(np.float32), random.normal(size=30).astype(np.float32))
    return _target(path.read_bytes(), _both(read_softmax, read_output_layer), untrusted.ask_output_layer)


def adaptive() -> Target:
    """The softmax.hdf5 of an adaptive softmax."""
    path = new_folder() / "softmax.hdf5"
    layer = AdaptiveSoftmax(30, 16, (5, 15))
    layer.reset_parameters(generator=torch.Generator().manual_seed(0))
    write_output_layer(path, layer, np.float32)
    return _target(path.read_bytes(), _both(read_adaptive, read_output_layer), untrusted.ask_output_layer)


def vectors() -> Target:
    """Vectors that `elmo embed` wrote."""
    path = new_folder() / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        for n in (2, 1, 5):
            writer.write(" ".join("a" * n), np.ones((3, n, 8), np.float32))
    return _target(
        path.read_bytes(),
        lambda path: list(read_vectors(path)),
        lambda path: list(read_vectors(path, untrusted=True)),
    )


def _both(*readers: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return a function that calls the readers by turns: which one depends on the file's size."""
    return lambda path: readers[path.stat().st_size % len(readers)](path)


def _target(valid: bytes, read: Callable[[Path], object], safely: Callable[[Path], object]) -> Target:
    def make(folder: Path, random: Random) -> None:
        path = folder / "file.hdf5"
        if random.random() < 0.6:
            path.write_bytes(mutated(valid, random))
            return
        path.write_bytes(valid)
        in_fork(lambda: _restructured(path, random))
        if random.random() < 0.2:
            path.write_bytes(mutated(path.read_bytes(), random))

    return Target(make, lambda folder: read(folder / "file.hdf5"), lambda folder: safely(folder / "file.hdf5"))


def _restructured(path: Path, random: Random) -> None:
    with suppress(*_REFUSED), h5py.File(path, "a") as file:  # h5py itself refuses some of them
        for _ in range(random.choice((1, 1, 2, 4))):
            _restructure(file, random)


def _restructure(file: h5py.File, random: Random) -> None:
    """Replace a dataset or a group by something else, or add something."""
    names: list[str] = []
    file.visit(names.append)
    if not names:
        return
    name = random.choice(names)
    replacement = random.choice(_REPLACEMENTS)
    values = np.zeros(3, np.float32)
    if name in file and isinstance(file[name], h5py.Dataset) and (file[name].size or 0) < 10_000:
        values = np.ones(file[name].shape, np.float32)
    if random.random() < 0.1:
        name += random.choice(ODD_TEXTS[:4]).replace("\0", "") + "x"
    elif name in file:
        del file[name]
    replacement(file, name, values, random)


def _other_type(file: h5py.File, name: str, values: Any, random: Random) -> None:
    kind = np.dtype(random.choice(_TYPES))
    file.create_dataset(name, values.shape, kind)


def _other_shape(file: h5py.File, name: str, values: Any, random: Random) -> None:
    shape = random.choice(((), (0,), (1,), values.shape[::-1], (*values.shape, 1), (1,) * 32, values.shape[1:]))
    file.create_dataset(name, shape, "<f4")


def _not_stored(file: h5py.File, name: str, values: Any, random: Random) -> None:
    """A dataset of any size of which the file holds nothing."""
    shape = random.choice((values.shape, (_HUGE,), (_HUGE, 8), (2**62,)))
    chunks = None if random.random() < 0.5 else tuple(min(size, 1024) for size in shape)
    file.create_dataset(name, shape, "<f4", chunks=chunks, fillvalue=random.choice((0.0, float("nan"), 1e38)))


def _filtered(file: h5py.File, name: str, values: Any, random: Random) -> None:
    options = random.choice(
        (
            *({"compression": "gzip"}, {"compression": "lzf"}, {"shuffle": True}, {"fletcher32": True}),
            *({"scaleoffset": 2}, {"chunks": True, "maxshape": (None,) * values.ndim}, {"compression": "szip"}),
        )
    )
    chunks = tuple(max(1, size // random.choice((1, 2, 3))) for size in values.shape)
    file.create_dataset(name, data=values, **{"chunks": chunks, **options})


def _bomb(file: h5py.File, name: str, values: Any, random: Random) -> None:
    """Zeros that take little room in the file and much in memory."""
    shape = (*((2**12,) * 2,) * 1, (2**28,), (2**24, 8))[random.randrange(3)]
    data = file.create_dataset(name, shape, "<f4", chunks=True, compression="gzip")
    data[(slice(0, 1),) * len(shape)] = 1.0


def _link(file: h5py.File, name: str, values: Any, random: Random) -> None:
    target = random.choice(("/", name, "/none", f"/{name}/.", "char_embed"))
    file[name] = random.choice((h5py.SoftLink(target), h5py.ExternalLink("file.hdf5", target),
                                h5py.ExternalLink("/etc/passwd", target)))  # fmt: skip


def _hard_link(file: h5py.File, name: str, values: Any, random: Random) -> None:
    file[name] = file["/"]


def _virtual(file: h5py.File, name: str, values: Any, random: Random) -> None:
    layout = h5py.VirtualLayout(values.shape, "<f4")
    layout[...] = h5py.VirtualSource(random.choice(("file.hdf5", ".", "/etc/passwd")), name, values.shape)
    file.create_virtual_dataset(name, layout)


def _external(file: h5py.File, name: str, values: Any, random: Random) -> None:
    file.create_dataset(name, values.shape, "<f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


def _reference(file: h5py.File, name: str, values: Any, random: Random) -> None:
    file.create_dataset(name, (3,), random.choice((h5py.ref_dtype, h5py.regionref_dtype, h5py.string_dtype())))


def _group(file: h5py.File, name: str, values: Any, random: Random) -> None:
    file.create_group(name)


def _named_type(file: h5py.File, name: str, values: Any, random: Random) -> None:
    file[name] = np.dtype("<f4")


def _odd_values(file: h5py.File, name: str, values: Any, random: Random) -> None:
    file.create_dataset(name, data=np.full(values.shape, random.choice((np.nan, np.inf, 3e38, 1e-45)), np.float32))


def _attributes(file: h5py.File, name: str, values: Any, random: Random) -> None:
    file.create_dataset(name, data=values).attrs["x"] = random.choice(("a" * 60_000, np.zeros(5000), h5py.Empty("f")))


_REPLACEMENTS = (
    *(_other_type, _other_shape, _not_stored, _filtered, _bomb, _link, _hard_link, _virtual, _external, _reference),
    *(_group, _named_type, _odd_values, _attributes),
)
