"""Ways of storing a weight file that are read, and ways that are refused: links, filters, bombs, damage."""

from __future__ import annotations

import contextlib
import dataclasses
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from weight_files import CELL, W_0, Arrays, assert_same, random_arrays, refused, rewrite, rewrite_as

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats import BiLMOptions, expected_parameters, read_weights, write_weights


@pytest.mark.parametrize(
    "how",
    [
        {"dtype": ">f4"},
        {"chunks": (3, 7)},
        {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (4, 8), "compression": "lzf"},
        {"chunks": (10, 32), "maxshape": (None, None), "compression": "gzip"},
    ],
    ids=str,
)
def test_other_ways_to_store_float32(weights: Path, options: BiLMOptions, arrays: Arrays, how: dict) -> None:
    rewrite(weights, W_0, **how)
    assert_same(read_weights(weights, options), arrays)


def test_compressed_zeros(weights: Path, options: BiLMOptions) -> None:
    big = dataclasses.replace(options, filters=((1, 1500),), projection_dim=5)
    zeros = {name: np.zeros(shape, np.float32) for name, shape in expected_parameters(big).items()}
    write_weights(weights, big, zeros)
    rewrite(weights, "CNN_high_0/W_carry", compression="gzip", compression_opts=9, chunks=(1500, 1500))
    assert_same(read_weights(weights, big), zeros)


@pytest.mark.parametrize("name", [W_0, CELL, "RNN_0"])
@pytest.mark.parametrize("external", [False, True])
def test_links(weights: Path, options: BiLMOptions, name: str, external: bool, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.hdf5", "w") as other, h5py.File(weights, "a") as file:
        file.copy(name, other, "moved")
        file.move(name, "moved")
        file[name] = h5py.ExternalLink("other.hdf5", "/moved") if external else h5py.SoftLink("/moved")
    refused(weights, options, f"{name} is a link")


def test_link_to_nowhere(weights: Path, options: BiLMOptions) -> None:
    for link in (h5py.SoftLink("/nowhere"), h5py.ExternalLink("no.hdf5", "/x")):
        rewrite_as(weights, lambda file, values, link=link: file.__setitem__(W_0, link))
        refused(weights, options, f"{W_0} is a link")


def test_virtual_dataset(weights: Path, options: BiLMOptions) -> None:
    def virtual(file: h5py.File, values: np.ndarray) -> None:
        file["moved"] = values
        layout = h5py.VirtualLayout(values.shape, np.float32)
        layout[...] = h5py.VirtualSource(file["moved"])
        file.create_virtual_dataset(W_0, layout)

    rewrite_as(weights, virtual)
    refused(weights, options, W_0, "virtual")


def test_external_storage(weights: Path, options: BiLMOptions, tmp_path: Path) -> None:
    (tmp_path / "raw.bin").write_bytes(b"\0" * 1280)

    def external(file: h5py.File, values: np.ndarray) -> None:
        file.create_dataset(W_0, (10, 32), "f4", external=[(str(tmp_path / "raw.bin"), 0, 1280)])

    rewrite_as(weights, external)
    refused(weights, options, W_0, "in another file")


@pytest.mark.parametrize("chunks", [None, (5, 32)])
def test_no_storage(weights: Path, options: BiLMOptions, chunks: tuple[int, ...] | None) -> None:
    rewrite_as(weights, lambda file, values: file.create_dataset(W_0, (10, 32), "f4", chunks=chunks))
    refused(weights, options, W_0, "stores 0 bytes for 1,280 bytes")


def test_a_chunk_is_missing(weights: Path, options: BiLMOptions) -> None:
    def partly(file: h5py.File, values: np.ndarray) -> None:
        file.create_dataset(W_0, (10, 32), "f4", chunks=(5, 32), compression="gzip")[:5] = values[:5]

    rewrite_as(weights, partly)
    refused(weights, options, W_0, "incomplete")


def test_unknown_and_repeated_filters(weights: Path, options: BiLMOptions) -> None:
    rewrite_as(weights, lambda file, values: file.create_dataset(W_0, data=values, scaleoffset=3))
    refused(weights, options, W_0, "the filter number 6")

    def twice(file: h5py.File, values: np.ndarray) -> None:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10, 32))
        plist.set_deflate(9)
        plist.set_deflate(9)
        space = h5py.h5s.create_simple((10, 32))
        group = file[CELL].id
        h5py.h5d.create(group, b"W_0", h5py.h5t.IEEE_F32LE, space, plist).write(space, space, values)

    rewrite_as(weights, twice)
    refused(weights, options, W_0, "the filter gzip twice")


def test_two_compressions(weights: Path, options: BiLMOptions) -> None:
    def both(file: h5py.File, values: np.ndarray) -> None:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10, 32))
        plist.set_deflate(9)
        plist.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((10, 32))
        h5py.h5d.create(file[CELL].id, b"W_0", h5py.h5t.IEEE_F32LE, space, plist).write(space, space, values)

    rewrite_as(weights, both)
    refused(weights, options, W_0, "both gzip and lzf")


def test_chunk_much_larger_than_the_dataset(weights: Path, options: BiLMOptions) -> None:
    def large(file: h5py.File, values: np.ndarray) -> None:
        how = {"chunks": (1024, 1024), "maxshape": (None, None), "compression": "gzip"}
        file.create_dataset(W_0, data=values, **how)

    rewrite_as(weights, large)
    refused(weights, options, W_0, "(1024, 1024)")


def test_chunk_that_inflates_beyond_its_size(weights: Path, options: BiLMOptions) -> None:
    def bomb(file: h5py.File, values: np.ndarray) -> None:
        dataset = file.create_dataset(W_0, (10, 32), "f4", chunks=(10, 32), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), zlib.compress(b"\0" * 2**24))

    rewrite_as(weights, bomb)
    refused(weights, options, W_0, "made to fill the memory")


def test_ratio_that_gzip_can_not_reach(weights: Path, options: BiLMOptions) -> None:
    big = dataclasses.replace(options, filters=((1, 1500),))
    write_weights(weights, big, random_arrays(big))
    name = "CNN_high_0/W_carry"

    def tiny(file: h5py.File, values: np.ndarray) -> None:
        dataset = file.create_dataset(name, (1500, 1500), "f4", chunks=(1500, 1500), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), b"x\x9c" + b"\0" * 100)

    rewrite_as(weights, tiny, name)
    refused(weights, big, name, "compress that well")


@pytest.mark.parametrize("how", [{"compression": "gzip"}, {"fletcher32": True}, {"compression": "lzf"}], ids=str)
def test_damaged_chunk(weights: Path, options: BiLMOptions, how: dict) -> None:
    def damaged(file: h5py.File, values: np.ndarray) -> None:
        # Rounded, since h5py stores a chunk without lzf if lzf does not make it smaller.
        dataset = file.create_dataset(W_0, data=np.round(values), chunks=(10, 32), **how)
        mask, raw = dataset.id.read_direct_chunk((0, 0))
        assert mask == 0
        raw = raw[: len(raw) // 2] + b"\xff" * (len(raw) - len(raw) // 2)
        dataset.id.write_direct_chunk((0, 0), raw)

    rewrite_as(weights, damaged)
    refused(weights, options, W_0, "damaged")


@pytest.mark.slow
def test_damaged_bytes(weights: Path, options: BiLMOptions) -> None:
    content = weights.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(content)
        # Damage to the values gives other values. This test is about the metadata, at the beginning of the file.
        for position in rng.integers(0, 4096, size=8):
            damaged[position] = rng.integers(256)
        weights.write_bytes(damaged)
        # Some damaged bytes are never read. Any exception but WeightsError fails the test.
        with contextlib.suppress(WeightsError):
            read_weights(weights, options)
