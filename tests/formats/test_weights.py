"""Weight files: the table of datasets, golden files, round trips, bad contents, and the programs that can read them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from bilm_cases import drawn_options, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from weight_files import CELL, W_0, Arrays, assert_same, contents, random_arrays, refused, rewrite

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats import BiLMOptions, read_options, read_weights, write_weights
from spacy_elmo.formats.weights import readers_of
from spacy_elmo.pretraining.pack import round_mantissas


@pytest.mark.parametrize("name", ["random_a", "random_b"])
def test_golden(name: str, golden: Path, tmp_path: Path) -> None:
    options = read_options(golden / name / "options.json")
    arrays = read_weights(golden / name / "weights.hdf5", options)
    assert sum(array.size for array in arrays.values()) == options.n_parameters + options.char_dim
    write_weights(tmp_path / "copy.hdf5", options, arrays)
    assert_same(contents(tmp_path / "copy.hdf5"), contents(golden / name / "weights.hdf5"))


OPTIONAL = ("char_cnn.projection.weight", "lstm.layers.0.projection")  # where the sizes do not require them


@settings(max_examples=10, deadline=None)
@given(drawn_options(), st.sets(st.sampled_from(OPTIONAL)), seeds)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, options: BiLMOptions, extra: set[str], seed: int) -> None:
    arrays = random_arrays(options, tuple(extra), seed)
    path = tmp_path_factory.mktemp("round_trip") / "weights.hdf5"
    write_weights(path, options, arrays)
    assert_same(read_weights(path, options), arrays)


SQUARE = BiLMOptions(2, ((1, 2), (2, 3)), 0, "tanh", 20, 5, 5, 2, None, None, False)


@pytest.mark.parametrize(
    ("extra", "dataset"),
    [
        ("lstm.layers.0.projection", "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"),
        ("char_cnn.projection.weight", "CNN_proj/b_proj"),
    ],
)
def test_incomplete_optional_projections(extra: str, dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.hdf5"
    write_weights(path, SQUARE, random_arrays(SQUARE, (extra,)))
    with h5py.File(path, "a") as file:
        del file[dataset]
    refused(path, SQUARE, f"missing datasets: {dataset}")


BIAS, EMBEDDING = "lstm.layers.0.bias", "char_cnn.embedding.weight"
BAD_ARRAYS = {
    "misshapen": ({BIAS: np.zeros((2, 33), np.float32)}, f"{BIAS} has shape (2, 33), expected (2, 32)"),
    "float64": ({BIAS: np.zeros((2, 32))}, f"{BIAS} is float64"),
    "list": ({BIAS: [1.0]}, f"{BIAS} is list"),
    "NaN": ({BIAS: np.full((2, 32), np.nan, np.float32)}, f"{BIAS} holds 64 values"),
    "infinity": ({BIAS: np.full((2, 32), np.inf, np.float32)}, f"{BIAS} holds 64 values"),
    "unexpected": ({"more": np.zeros(1, np.float32)}, "more is unexpected"),
    "missing": ({BIAS: None}, f"{BIAS} is missing, expected shape (2, 32)"),
    "padding": ({EMBEDDING: np.eye(262, 3, dtype=np.float32)}, f"row 0 of {EMBEDDING}"),
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_bad_arrays(weights: Path, options: BiLMOptions, arrays: Arrays, kind: str) -> None:
    changes, part = BAD_ARRAYS[kind]
    bad = {name: array for name, array in (arrays | changes).items() if array is not None}
    before = weights.read_bytes()
    with pytest.raises(WeightsError, match=re.escape(part)):
        write_weights(weights, options, bad)
    assert weights.read_bytes() == before
    assert list(weights.parent.iterdir()) == [weights]


def test_arrays_in_other_layouts(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    for changed in (np.asfortranarray, lambda array: array.astype(">f4")):
        write_weights(weights, options, {name: changed(array) for name, array in arrays.items()})
        assert_same(read_weights(weights, options), arrays)


def test_failed_write_keeps_the_earlier_file(
    weights: Path, options: BiLMOptions, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights.read_bytes()

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    for owner, name in ((os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            with pytest.raises(WeightsError, match="No space left"):
                write_weights(weights, options, arrays)
        assert weights.read_bytes() == before
        assert list(weights.parent.iterdir()) == [weights]


def test_files_that_are_no_weights(tmp_path: Path, options: BiLMOptions) -> None:
    path = tmp_path / "weights.hdf5"
    refused(path, options, "no such file")
    for content in (b"", b"PK\x03\x04" + b"\0" * 100, b"\x89HDF\r\n\x1a\n", b"{}"):
        path.write_bytes(content)
        refused(path, options, "not an HDF5 file")
    h5py.File(path, "w").close()
    refused(path, options, "char_embed", "and 13 more", "nothing")


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def unfilled(shape: tuple[int, ...], dtype: Any) -> Callable[[h5py.File, str], object]:
    return lambda file, name: file.create_dataset(name, shape, dtype)


CHANGES: list[tuple[str, Any, list[str]]] = [
    ("char_embed", zeros(262, 3), ["(262, 3), expected (261, 3)", "the number of characters"]),
    ("char_embed", zeros(261, 4), ["(261, 4), expected (261, 3)", "char_cnn.embedding.dim"]),
    ("char_embed", unfilled((2**40, 2**20), "f4"), [str(2**40), "expected (261, 3)"]),
    ("CNN/W_cnn_1", zeros(1, 2, 3, 4), ["(1, 2, 3, 4), expected (1, 3, 3, 4)", "char_cnn.filters[1][0]"]),
    ("CNN/b_cnn_1", zeros(5), ["(5,), expected (4,)", "char_cnn.filters[1][1]"]),
    ("CNN/b_cnn_1", None, ["missing datasets: CNN/b_cnn_1.", "at its root the file has CNN,"]),
    ("CNN_proj", None, ["missing datasets: CNN_proj/W_proj, CNN_proj/b_proj."]),
    ("CNN_high_0/W_carry", zeros(7, 7), ["(7, 7), expected (6, 6)", "the sum of char_cnn.filters"]),
    ("CNN_proj/W_proj", zeros(6, 7), ["(6, 7), expected (6, 5)", "lstm.projection_dim"]),
    (W_0, zeros(10, 33), ["(10, 33), expected (10, 32)", "4 * lstm.dim"]),
    (W_0, zeros(9, 32), ["(9, 32), expected (10, 32)", "2 * lstm.projection_dim"]),
    (W_0, zeros(10, 32, 1), ["(10, 32, 1), expected (10, 32)", "2 * lstm.projection_dim, 4 * lstm.dim"]),
    (W_0, h5py.Empty("f4"), ["None, expected (10, 32)"]),
    (W_0, np.full((10, 32), -np.inf, np.float32), ["320 values that are NaN or infinite"]),
    *(
        (W_0, unfilled((10, 32), dtype), [f"holds {np.dtype(dtype)}. Expected float32"])
        for dtype in ("i4", "S4", "c8", "bool", [("x", "f4")], h5py.ref_dtype, h5py.string_dtype())
    ),
    (W_0, lambda file, name: file.create_group(name), ["is a group. Expected a dataset"]),
    (f"{CELL}/W_P_0", zeros(9, 5), ["(9, 5), expected (8, 5)", "lstm.dim"]),
    (f"{CELL}/B", np.float32(0), ["(), expected (32,)", "4 * lstm.dim"]),
    (f"{CELL}/B", zeros(0), ["(0,), expected (32,)", "4 * lstm.dim"]),
    (CELL, zeros(10, 32), ["is a dataset. Expected a group"]),
    (CELL, np.dtype("f4"), ["is a named type. Expected a group"]),
]


@pytest.mark.parametrize(("name", "value", "parts"), CHANGES, ids=range(len(CHANGES)))
def test_what_does_not_fit(weights: Path, options: BiLMOptions, name: str, value: Any, parts: list[str]) -> None:
    with h5py.File(weights, "a") as file:
        del file[name]
        if callable(value):
            value(file, name)
        elif value is not None:
            file[name] = value
    refused(weights, options, name, *parts)


@pytest.mark.parametrize(
    ("change", "name", "key"),
    [
        ({"n_layers": 1}, "RNN_0/RNN/MultiRNNCell/Cell1", "lstm.n_layers"),
        ({"n_highway": 0}, "CNN_high_0", "char_cnn.n_highway"),
        ({}, "CNN/W_cnn_2", "char_cnn.filters"),
    ],
)
def test_file_of_a_larger_model(weights: Path, options: BiLMOptions, change: dict, name: str, key: str) -> None:
    if not change:
        with h5py.File(weights, "a") as file:
            file[name] = np.zeros((1, 1, 3, 2), np.float32)
    refused(weights, replace(options, **change), name, key)


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f2", ">f2"])
def test_other_floats_are_converted(weights: Path, options: BiLMOptions, dtype: str) -> None:
    """As AllenNLP does: torch.FloatTensor(array)."""
    expected = contents(weights)[W_0].astype(dtype).astype(np.float32)
    rewrite(weights, W_0, dtype)
    layer = (read_weights(weights, options)[f"lstm.layers.0.{name}_weight"][0] for name in ("input", "recurrent"))
    assert np.concatenate(list(layer)).tobytes() == expected.tobytes()


def test_a_file_that_another_process_writes(weights: Path, options: BiLMOptions) -> None:
    code = "import h5py, sys; file = h5py.File(sys.argv[1], 'r+'); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(weights)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        message = refused(weights, options, "can't be locked", "HDF5_USE_FILE_LOCKING")
        assert "not an HDF5 file" not in message
        writer.communicate()
    read_weights(weights, options)


def test_rounded_weights_are_read_bit_for_bit_from_a_smaller_file(tmp_path: Path, options: BiLMOptions) -> None:
    larger = replace(options, dim=512, projection_dim=128, n_layers=1, filters=((1, 32), (3, 64)))
    arrays = {name: round_mantissas(values, 10) for name, values in random_arrays(larger).items()}
    write_weights(tmp_path / "plain.hdf5", larger, arrays)
    write_weights(tmp_path / "packed.hdf5", larger, arrays, compress=True)
    assert_same(read_weights(tmp_path / "packed.hdf5", larger), arrays)
    plain, packed = ((tmp_path / f"{name}.hdf5").stat().st_size for name in ("plain", "packed"))
    assert packed < 0.6 * plain
    for name, values in contents(tmp_path / "packed.hdf5").items():  # as h5py itself reads them
        assert np.array_equal(values, contents(tmp_path / "plain.hdf5")[name])
    with h5py.File(tmp_path / "packed.hdf5") as file:
        matrix = file["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"]
        assert (matrix.dtype, matrix.compression, matrix.shuffle) == (np.dtype("<f4"), "gzip", True)
        assert matrix.chunks == (128, 2048)  # 1 MiB, of 2
        assert file["CNN_high_0/W_carry"].dtype == np.dtype("<f2")  # has no value too small for float16
        assert file["CNN/b_cnn_0"].chunks is None  # 128 bytes


PLAIN = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 50, 20, 6, 2, 3.0, 3.0, True)
CASES: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "all": ({}, ()),
    "no highway, no clips": ({"n_highway": 0, "cell_clip": None, "proj_clip": None}, ()),
    "no skip connections": ({"use_skip_connections": False}, ()),
    "one layer without skip connections": ({"use_skip_connections": False, "n_layers": 1}, ()),
    "25 characters": ({"max_characters": 25}, ()),
    "no LSTM projection": ({"dim": 6}, ()),
    "no character projection": ({"projection_dim": 12}, ()),
    "LSTM projection without need": ({"dim": 6}, ("lstm.layers.0.projection",)),
    "character projection without need": ({"projection_dim": 12}, ("char_cnn.projection.weight",)),
    "fewer filters than projection_dim": ({"projection_dim": 16}, ()),
    "8 layers": ({"n_layers": 8}, ()),
    "9 layers": ({"n_layers": 9}, ()),
}


def allennlp_refuses(options: BiLMOptions, file: h5py.File) -> bool:
    """_ElmoBiLm and ElmoLstm.load_weights: the datasets that they ask for. Elmo's words have 50 characters, which
    _ElmoCharacterEncoder views as (-1, max_characters_per_token), and views the result as the number of words again.
    """
    if not options.to_dict()["lstm"].get("use_skip_connections"):
        return True  # raise ConfigurationError("We only support pretrained biLMs with residual connections")
    words = 3
    if words * 50 % options.max_characters or words * 50 // options.max_characters != words:
        return True
    try:
        file["char_embed"][...]
        for i, _ in enumerate(options.filters):
            file["CNN"][f"W_cnn_{i}"][...], file["CNN"][f"b_cnn_{i}"][...]
        for k in range(options.n_highway):
            file[f"CNN_high_{k}"]["W_transform"][...], file[f"CNN_high_{k}"]["W_carry"][...]
        file["CNN_proj"]["W_proj"][...], file["CNN_proj"]["b_proj"][...]
        for direction in range(2):
            for layer in range(options.n_layers):
                dataset = file[f"RNN_{direction}"]["RNN"]["MultiRNNCell"][f"Cell{layer}"]["LSTMCell"]
                dataset["W_0"][...], dataset["B"][...], dataset["W_P_0"][...]
    except KeyError:
        return True
    return False


def bilm_tf_variables(options: BiLMOptions) -> Iterator[str]:
    """The names in the file of the variables that BidirectionalLanguageModelGraph makes."""
    names = {
        f"RNN_{i}/RNN/MultiRNNCell/Cell{j}": f"RNN_{i}/RNN/MultiRNNCell/Cell{j}/LSTMCell/"
        for i in range(2)
        for j in range(8)  # if we decide to add more layers
    }
    n_filters = sum(n for _, n in options.filters)
    yield "char_embed"
    for i, _ in enumerate(options.filters):
        yield from (f"CNN/W_cnn_{i}", f"CNN/b_cnn_{i}")
    if n_filters != options.projection_dim:
        assert n_filters > options.projection_dim
        yield from ("CNN_proj/W_proj", "CNN_proj/b_proj")
    for k in range(options.n_highway):
        yield from (f"CNN_high_{k}/{part}" for part in ("W_carry", "b_carry", "W_transform", "b_transform"))
    for i in range(2):
        for j in range(options.n_layers):
            root = names[f"RNN_{i}/RNN/MultiRNNCell/Cell{j}"]
            yield from (root + "W_0", root + "B")
            if options.projection_dim < options.dim:
                yield root + "W_P_0"


def bilm_tf_refuses(options: BiLMOptions, file: h5py.File) -> bool:
    """Or leaves out a dataset of the file, so that its vectors would be others."""
    present: list[str] = []
    file.visititems(lambda name, item: present.append(name) if isinstance(item, h5py.Dataset) else None)
    try:
        return sorted(bilm_tf_variables(options)) != sorted(present)
    except (AssertionError, KeyError):
        return True


@pytest.mark.parametrize("case", CASES)
def test_as_their_sources_read(tmp_path: Path, case: str) -> None:
    changes, extra = CASES[case]
    options = replace(PLAIN, **changes)  # type: ignore[arg-type]
    arrays = random_arrays(options, extra)
    write_weights(tmp_path / "weights.hdf5", options, arrays)
    problems = readers_of(options, arrays)
    with h5py.File(tmp_path / "weights.hdf5") as file:
        assert bool(problems["AllenNLP"]) is allennlp_refuses(options, file)
        assert bool(problems["bilm-tf"]) is bilm_tf_refuses(options, file)
    assert not problems["this package"]
    if not extra:
        assert readers_of(options) == problems


@pytest.mark.parametrize(
    ("key", "value", "allennlp", "bilm_tf"),
    [
        ("char_cnn.n_highway", ..., True, False),
        ("char_cnn.n_highway", None, True, False),  # range(None)
        ("char_cnn.n_characters", ..., False, True),
        ("char_cnn.n_characters", None, False, True),
        ("char_cnn.n_characters", 261, False, True),  # char_embed has the mask's row and 261 from the file
        ("lstm.cell_clip", ..., True, False),
        ("lstm.cell_clip", None, False, False),
        ("lstm.proj_clip", ..., True, False),
        ("lstm.proj_clip", None, False, False),
        ("lstm.use_skip_connections", ..., True, True),
        ("lstm.use_skip_connections", None, True, False),
    ],
)
def test_what_an_options_file_leaves_out(key: str, value: object, allennlp: bool, bilm_tf: bool) -> None:
    """What the code of both subscripts: ElmoLstm's arguments and _load_highway, and _build_word_char_embeddings."""
    contents = PLAIN.to_dict()
    part, name = key.split(".")
    contents[part][name] = value
    if value is ...:
        del contents[part][name]
    problems = readers_of(BiLMOptions.from_dict(contents), None, contents)
    assert (bool(problems["AllenNLP"]), bool(problems["bilm-tf"])) == (allennlp, bilm_tf)
    if value is ... and bilm_tf:
        assert problems["bilm-tf"] == [f"no {key} in options.json"]
