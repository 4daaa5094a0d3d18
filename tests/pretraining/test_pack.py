"""Packed models: their arrays are exactly the rounded ones, which are checked by hand and against float16."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from embedded_case import COUNTS, OPTIONS, WORDS, embed, make_package, model_of

from spacy_elmo.errors import CommandError, SettingsError, WeightsError
from spacy_elmo.formats import read_options, read_weights
from spacy_elmo.formats.softmax import read_softmax, write_softmax
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.pack import pack, round_mantissas, round_to_steps

FILES = {"options.json", "weights.hdf5", "softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    return tmp_path / "model"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def half(values: np.ndarray) -> np.ndarray:
    """Rounded to 10 bits by numpy's float16, scaled so that all values are in its range of normal numbers."""
    scale = np.exp2(-np.floor(np.log2(np.abs(values), where=values != 0, out=np.zeros(values.shape))))
    return ((values * scale).astype(np.float16).astype(np.float64) / scale).astype(np.float32)


def test_the_rounded_arrays_are_read_back(model: Path, tmp_path: Path) -> None:
    packed = pack(model, tmp_path / "packed")
    assert names(tmp_path / "packed") == FILES == set(packed.sizes)
    assert read_options(tmp_path / "packed" / "options.json") == OPTIONS
    before = read_weights(model / "weights.hdf5", OPTIONS)
    after = read_weights(tmp_path / "packed" / "weights.hdf5", OPTIONS)
    changes = []
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], half(values))
        old, new = (array[values != 0].astype(np.float64) for array in (values, after[name]))
        changes.append(np.abs(new - old) / np.abs(old))
    every = np.concatenate(changes)
    assert packed.largest == pytest.approx(every.max(), rel=1e-12)
    assert packed.mean == pytest.approx(every.mean(), rel=1e-9)
    assert 0 < packed.mean < packed.largest <= 2**-11
    softmax = read_softmax(tmp_path / "packed" / "softmax.hdf5")
    for name, expected in read_softmax(model / "softmax.hdf5").items():
        np.testing.assert_array_equal(softmax[name], expected.astype(np.float16).astype(np.float32))
    loaded = LanguageModel.load(tmp_path / "packed")
    assert loaded.words == WORDS
    np.testing.assert_array_equal(loaded.vocabulary.counts, COUNTS)


def test_without_a_softmax(model: Path, tmp_path: Path) -> None:
    assert set(pack(model, tmp_path / "left_out", softmax="none").sizes) == FILES - {"softmax.hdf5"}
    for name in ("softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy"):
        (model / name).unlink()
    assert set(pack(model, tmp_path / "official").sizes) == {"options.json", "weights.hdf5"}


def test_the_card_tells_what_was_rounded(model: Path, tmp_path: Path) -> None:
    card = b"# Mine\n\nperplexity 50\n" + b"\xff"  # copied unchanged, even if it is not UTF-8
    (model / "README.md").write_bytes(card)
    pack(model, tmp_path / "packed", 12)
    text = (tmp_path / "packed" / "README.md").read_bytes()
    assert text.startswith(card)
    added = text[len(card) :].decode()
    for part in ("## Packed", "to 12 bits", "0.00012 of themselves at most", "The softmax is stored as float16."):
        assert part in added
    pack(tmp_path / "packed", tmp_path / "same", 12)  # changes nothing, so what was told stays
    assert (tmp_path / "same" / "README.md").read_bytes() == text
    (tmp_path / "packed" / "README.md").write_bytes(text + b"\n## Limits\n\nMany.\n")
    pack(tmp_path / "packed", tmp_path / "twice", 5)
    again = (tmp_path / "twice" / "README.md").read_bytes()
    assert again.startswith(card + b"\n## Limits\n\nMany.\n\n## Packed\n\nThe mantissas")
    assert b"to 5 bits" in again
    assert again.count(b"## Packed") == 1


def test_the_embedded_bilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bilm = embed(monkeypatch, tmp_path / "bilms")
    assert set(pack("en_core", tmp_path / "alone").sizes) == {"options.json", "weights.hdf5"}
    package = make_package(monkeypatch, tmp_path / "site" / "softmax_package_packed", bilm / "weights.hdf5")
    sizes = pack("en_core", tmp_path / "both").sizes
    assert set(sizes) == FILES
    for folder, name in ((bilm, "weights.hdf5"), (package, "softmax.hdf5"), (package, "vocabulary.txt")):
        assert sizes[name][0] == (folder / name).stat().st_size
    assert LanguageModel.load(tmp_path / "both").words == WORDS


# The folder


def test_an_older_model_is_replaced_with_force_alone(model: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.mkdir()
    pack(model, packed)  # an empty folder can be used
    (packed / "notes.txt").write_text("kept", encoding="utf8")
    before = {path.name: path.read_bytes() for path in packed.iterdir()}
    with pytest.raises(CommandError, match=r"packed: exists\. Give another folder, or add --force"):
        pack(model, packed, 5)
    assert {path.name: path.read_bytes() for path in packed.iterdir()} == before
    pack(model, packed, 5, "none", force=True)
    assert names(packed) == FILES - {"softmax.hdf5"} | {"notes.txt"}  # no softmax of other weights is left
    assert names(tmp_path) == {"model", "packed"}


def test_what_can_not_be_packed_leaves_nothing(model: Path, tmp_path: Path) -> None:
    large = {"weight": np.full((8, 16), 70_000, np.float32), "bias": np.zeros(8, np.float32)}
    write_softmax(model / "softmax.hdf5", large)
    with pytest.raises(WeightsError, match="too large for float16"):
        pack(model, tmp_path / "packed")
    shutil.rmtree(model)
    with pytest.raises(SettingsError, match="names no biLM: there is no such folder"):
        pack(model, tmp_path / "packed")
    assert not names(tmp_path)


def test_matrices_of_eight_bits(model: Path, tmp_path: Path) -> None:
    """Each output has a step of its own. Biases and the embedding are rounded as before."""
    (model / "README.md").touch()
    packed = pack(model, tmp_path / "packed", bits=8)
    card = (tmp_path / "packed" / "README.md").read_text(encoding="utf8")
    for part in ("## Packed", "to 10 bits", "The softmax is stored as float16."):
        assert part in card
    assert "matrices are rounded to 8 bits" in card
    assert f"change by {max(packed.norms.values()):.2g} of their norm" in card
    before = read_weights(model / "weights.hdf5", OPTIONS)
    after = read_weights(tmp_path / "packed" / "weights.hdf5", OPTIONS)
    softmax = read_softmax(tmp_path / "packed" / "softmax.hdf5")
    exact = read_softmax(model / "softmax.hdf5")
    np.testing.assert_array_equal(softmax["bias"], exact["bias"].astype(np.float16))
    np.testing.assert_array_equal(softmax["weight"], round_to_steps(exact["weight"], 8, (1,)))
    for name, values in after.items():
        if name.endswith("bias") or "embedding" in name:
            np.testing.assert_array_equal(values, half(before[name]))
            continue
        axes = (1,) if name.startswith("lstm") else tuple(range(1, values.ndim))
        np.testing.assert_array_equal(values, round_to_steps(before[name], 8, axes))
        change = np.linalg.norm(values - before[name]) / np.linalg.norm(before[name])
        assert packed.norms[name] == pytest.approx(change, rel=1e-5)
        assert 0 < change < 0.02


# Rounding


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == np.float32
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # numbers of 2 bits are 1, 1.25, 1.5, 1.75, 2, 2.5, 3 ...
        (1.0, 1.0),
        (1.75, 1.75),
        (1.1, 1.0),
        (1.2, 1.25),
        (1.125, 1.0),  # in the middle: 1 ends in 0
        (1.375, 1.5),  # in the middle: 1.5 = 1.10 ends in 0
        (1.625, 1.5),
        (1.875, 2.0),  # the carry increases the exponent
        (1.126, 1.25),
        (2.25, 2.0),
        (2.75, 3.0),
        (-1.375, -1.5),
        (-0.0, -0.0),
        (0.0, 0.0),
        (2.0**-100 * 1.2, 2.0**-100 * 1.25),
        (2.0**-149, 0.0),  # subnormal numbers are rounded to multiples of 2 ** -128
        (2.0**-128 * 3, 2.0**-128 * 3),
        (2.0**-129 * 3, 2.0**-127),  # in the middle between 1 and 2 times 2 ** -128: 2 is even
        (-(2.0**-129) * 5, -(2.0**-127)),
    ],
)
def test_by_hand(value: float, expected: float) -> None:
    same_bits(round_mantissas(f32(value), 2), f32(expected))


def test_nan_and_infinity_do_not_change() -> None:
    # If these NaN were rounded like numbers, the first would become infinity and the second a number.
    nans = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32).view(np.float32)
    for values in (nans, f32(np.inf, -np.inf)):
        same_bits(round_mantissas(values, 10), values)


# Whole numbers of a step


@pytest.mark.parametrize(
    ("values", "bits", "expected"),
    [
        ((3.0, -1.4, 0.3), 3, (3.0, -1.0, 0.0)),  # numbers from -3 to 3, step 1
        ((3.1, -1.4, 0.3), 3, (3.0, -1.0, 0.0)),  # 3.1 is out of reach of step 1, which still leaves less than step 2
        ((1.5, 2.5, 3.5, 7.0), 4, (2.0, 2.0, 4.0, 7.0)),  # in the middle: the even number
        ((0.0, 0.0), 8, (0.0, 0.0)),
        ((2.0**-149, 0.0), 2, (2.0**-149, 0.0)),  # the smallest float32
        ((1.0, -0.25), 2, (1.0, 0.0)),  # -1, 0 and 1
        # steps 8, 4 and 2 lose all ones: 100, 116 and 136; step 1 cuts the 8: 49
        ((8.0, *[1.0] * 100), 2, (1.0,) * 101),
    ],
)
def test_steps_by_hand(values: tuple[float, ...], bits: int, expected: tuple[float, ...]) -> None:
    np.testing.assert_array_equal(round_to_steps(f32(*values), bits, (0,)), f32(*expected))


def test_each_output_has_its_own_power_of_two() -> None:
    """Against the nearest multiple of the step, in float64, for steps that are searched by trying all of them."""
    rng = np.random.default_rng(0)
    values = (rng.standard_normal((6, 40)) * np.exp2(rng.integers(-30, 30, (6, 1)))).astype(np.float32)
    for bits in (2, 5, 8, 16):
        got, most = round_to_steps(values, bits, (1,)), 2 ** (bits - 1) - 1
        for row, rounded in zip(values.astype(np.float64), got.astype(np.float64)):
            errors = {}
            for exponent in range(-60, 60):
                numbers = np.clip(np.round(row / 2.0**exponent), -most, most)
                errors[exponent] = float(((numbers * 2.0**exponent - row) ** 2).sum())
            assert ((rounded - row) ** 2).sum() == pytest.approx(min(errors.values()), rel=1e-12)
