"""Ways of storing values in HDF5 that are read, and ways that are refused: links, filters, bombs, damage, sizes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from weight_files import CELL, W_0, Arrays, assert_same, contents, refused, rewrite, rewrite_as

from spacy_elmo.errors import SettingsError, WeightsError
from spacy_elmo.formats import BiLMOptions, expected_parameters, read_weights, write_weights
from spacy_elmo.formats.weights import weights_table


def test_other_ways_to_store_float32(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    ways: list[dict] = [
        {"dtype": ">f4"},
        {"chunks": (3, 7)},
        {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (4, 8), "compression": "lzf"},
        {"chunks": (10, 32), "maxshape": (None, None), "compression": "gzip"},
    ]
    for how in ways:
        rewrite(weights, W_0, **how)
        assert_same(read_weights(weights, options), arrays)


@pytest.mark.parametrize("name", [W_0, CELL, "RNN_0"])
@pytest.mark.parametrize("external", [False, True])
def test_links(weights: Path, options: BiLMOptions, name: str, external: bool, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.hdf5", "w") as other, h5py.File(weights, "a") as file:
        file.copy(name, other, "moved")
        file.move(name, "moved")
        file[name] = h5py.ExternalLink("other.hdf5", "/moved") if external else h5py.SoftLink("/moved")
    refused(weights, options, f"{name} is a link")


def virtual(file: h5py.File, values: np.ndarray) -> None:
    file["moved"] = values
    layout = h5py.VirtualLayout(values.shape, np.float32)
    layout[...] = h5py.VirtualSource(file["moved"])
    file.create_virtual_dataset(W_0, layout)


def external(file: h5py.File, values: np.ndarray) -> None:
    raw = Path(file.filename).with_name("raw.bin")
    raw.write_bytes(values.tobytes())
    file.create_dataset(W_0, values.shape, "f4", external=[(str(raw), 0, values.nbytes)])


def one_of_two_chunks(file: h5py.File, values: np.ndarray) -> None:
    file.create_dataset(W_0, values.shape, "f4", chunks=(5, 32), compression="gzip")[:5] = values[:5]


def created(**how: object) -> Callable[[h5py.File, np.ndarray], None]:
    return lambda file, values: file.create_dataset(W_0, **({"data": values} | how))


REFUSED: list[tuple[Callable[[h5py.File, np.ndarray], None], str]] = [
    (virtual, "virtual"),
    (external, "stored in another file"),
    (created(data=None, shape=(10, 32), dtype="f4"), "stores 0 bytes for 1,280 bytes"),
    (created(data=None, shape=(10, 32), dtype="f4", chunks=(5, 32)), "stores 0 bytes for 1,280 bytes"),
    (one_of_two_chunks, "incomplete"),
    (created(scaleoffset=3), "the filter number 6"),
]


def test_other_ways_are_refused(weights: Path, options: BiLMOptions) -> None:
    for make, part in REFUSED:
        rewrite_as(weights, make)
        refused(weights, options, W_0, part)


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
    refused(weights, options, "damaged")


def test_a_dataset_of_more_bytes_than_all_float32_values(weights: Path, options: BiLMOptions) -> None:
    """As float64, the largest dataset takes more memory than all weights as float32, for which there is room."""
    wide = replace(options, dim=50, projection_dim=50, n_highway=0, n_layers=1, filters=((1, 4000),))
    zeros = {name: np.zeros(shape, np.float32) for name, shape in expected_parameters(wide).items()}
    write_weights(weights, wide, zeros, compress=True)
    n_bytes = 4 * sum(values.size for values in contents(weights).values())
    with h5py.File(weights, "a") as file:
        del file["CNN_proj/W_proj"]
        file.create_dataset("CNN_proj/W_proj", data=np.zeros((4000, 50)), compression="gzip", chunks=(1000, 50))
    assert 4 * weights.stat().st_size < n_bytes < 8 * 4000 * 50
    with pytest.raises(WeightsError, match="CNN_proj/W_proj would take 1,600,000 bytes"):
        read_weights(weights, wide, max_bytes=n_bytes)
    assert not read_weights(weights, wide, max_bytes=1_600_000)["char_cnn.projection.weight"].any()


def test_more_memory_than_allowed(weights: Path, options: BiLMOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment raises the limit for callers that can't give max_bytes: components, Elmo, ElmoEmbedder, info."""
    big = replace(options, filters=((1, 600),))
    zeros = {name: np.zeros(shape, np.float32) for name, shape in expected_parameters(big).items()}
    write_weights(weights, big, zeros, compress=True)
    n_bytes, size = 4 * big.n_parameters, weights.stat().st_size
    assert n_bytes > 20 * size
    message = f"the biLM would take {n_bytes:,} bytes of memory, but the file has {size:,}. Expected at most"
    for max_bytes, allowed in ((n_bytes - 1, n_bytes - 1), (0, 4 * size)):
        told = f"{message} {allowed:,}. .* SPACY_ELMO_MAX_BYTES to {n_bytes} or more"
        with pytest.raises(WeightsError, match=told):
            read_weights(weights, big, max_bytes=max_bytes)
    assert not read_weights(weights, big, max_bytes=n_bytes)["lstm.layers.0.bias"].any()
    monkeypatch.setenv("SPACY_ELMO_MAX_BYTES", str(n_bytes))
    assert not read_weights(weights, big, max_bytes=0)["lstm.layers.0.bias"].any()
    for wrong in ("2 GB", "-1", "1e9", "9" * 30):
        monkeypatch.setenv("SPACY_ELMO_MAX_BYTES", wrong)
        with pytest.raises(SettingsError, match="SPACY_ELMO_MAX_BYTES is"):
            read_weights(weights, big)


def test_megabytes_that_unpack_to_gigabytes(weights: Path, options: BiLMOptions) -> None:
    """Each dataset has the shape that the options state, and would be unpacked from one chunk."""
    big = replace(options, dim=6000, projection_dim=6000, n_layers=1)
    with h5py.File(weights, "w") as file:
        for entry in weights_table(big, big.has_char_projection, big.has_lstm_projection):
            file.create_dataset(entry.dataset, entry.shape, "f4", chunks=entry.shape, compression="gzip")
    refused(weights, big, "the biLM would take 2,3", "Expected at most 1,073,741,824")
