"""BiLMOptions and options.json: reading, writing, limits, and the messages for bad values and files."""

import copy
import dataclasses
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from spacy_elmo.errors import OptionsError, OptionsWarning
from spacy_elmo.formats import BiLMOptions, read_options, write_options

VALID = {
    "lstm": {
        "dim": 64,
        "projection_dim": 16,
        "n_layers": 2,
        "cell_clip": 3,
        "proj_clip": 3,
        "use_skip_connections": True,
    },
    "char_cnn": {
        "embedding": {"dim": 4},
        "filters": [[1, 4], [2, 8]],
        "n_highway": 2,
        "n_characters": 261,
        "max_characters_per_token": 50,
        "activation": "relu",
    },
}
DELETED = object()


def changed(key: str, value: object) -> dict:
    data = copy.deepcopy(VALID)
    *parents, last = key.split(".")
    inner = data
    for part in parents:
        inner = inner[part]
    inner[last] = value
    if value is DELETED:
        del inner[last]
    return data


def test_golden(golden: Path) -> None:
    a = read_options(golden / "random_a" / "options.json")
    assert (a.char_dim, a.n_filters, a.n_highway, a.activation) == (4, 124, 2, "relu")
    assert (a.dim, a.projection_dim, a.width, a.layers) == (64, 16, 32, 3)
    b = read_options(golden / "random_b" / "options.json")
    assert (b.activation, b.cell_clip, b.proj_clip, b.layers) == ("tanh", 0.6, 0.4, 4)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lstm.use_skip_connections", DELETED, "lstm.use_skip_connections is missing, and is taken for false"),
        ("lstm.num_layers", 3, r"lstm.num_layers is no key that is read \(nearest: lstm.n_layers\)"),
        ("lstm.xyz", None, r"lstm.xyz is no key that is read\. Correct it, or remove it"),
    ],
)
def test_what_a_file_may_not_mean(key: str, value: object, message: str, tmp_path: Path) -> None:
    """Keys beside lstm and char_cnn are of training."""
    data = changed(key, value) | {"bidirectional": True, "n_tokens_vocab": 793471, "unroll_steps": 20}
    (tmp_path / "options.json").write_text(json.dumps(data))
    with pytest.warns(OptionsWarning, match=message):
        got = read_options(tmp_path / "options.json")
    assert got == BiLMOptions.from_dict(data)
    assert replace(got, use_skip_connections=True) == BiLMOptions.from_dict(VALID)


@pytest.mark.parametrize("value", [DELETED, None])
def test_defaults_of_the_originals(value: object) -> None:
    """AllenNLP never reads n_characters: its table has the rows of the file, and one for the mask."""
    assert BiLMOptions.from_dict(changed("char_cnn.n_characters", value)) == BiLMOptions.from_dict(VALID)
    assert BiLMOptions.from_dict(changed("lstm.use_skip_connections", value)).use_skip_connections is False
    assert BiLMOptions.from_dict(changed("lstm.cell_clip", value)).cell_clip is None
    assert BiLMOptions.from_dict(changed("lstm.proj_clip", value)).proj_clip is None
    assert BiLMOptions.from_dict(changed("char_cnn.n_highway", value)).n_highway == 0


SIZES = ["lstm.dim", "lstm.projection_dim", "lstm.n_layers", "char_cnn.embedding.dim"]
SIZES += ["char_cnn.max_characters_per_token"]
OBJECTS = ["lstm", "char_cnn", "char_cnn.embedding"]
CLIPS = ["lstm.cell_clip", "lstm.proj_clip"]
FILTERS = "char_cnn.filters"
BAD_VALUES: dict[str, list[object]] = {
    **{key: [True, "3", 2.0, -1, 0, 10**30, [3], {}, float("nan")] for key in SIZES},
    **{key: [True, "3", 0, -1.0, float("nan"), float("inf"), 10**400, 10**5000, []] for key in CLIPS},
    **{key: [None, [], 1, "x"] for key in OBJECTS},
    "char_cnn.n_highway": [True, "3", 2.0, -1],
    "char_cnn.n_characters": [True, "3", 260, 263, 256, 261.0, [261]],
    "lstm.use_skip_connections": [1, 0, "true", []],
    "char_cnn.activation": ["gelu", "", "RELU", None, 1, ["relu"]],
    FILTERS: [[], {}, "1,2", None, 3, [[1, 1]] * 65],
    f"{FILTERS}[1]": [[[1, 4], pair] for pair in ([1], [1, 2, 3], 3, "12")],
    f"{FILTERS}[1][0]": [[[1, 4], pair] for pair in ([51, 4], [0, 4], [True, 4])],
    f"{FILTERS}[1][1]": [[[1, 4], pair] for pair in ([1, 0], [1, -4], [1, 4.0])],
}


@pytest.mark.parametrize("key", BAD_VALUES)
def test_bad_and_missing_values(key: str) -> None:
    if key in (*SIZES, *OBJECTS, FILTERS, "char_cnn.activation"):
        with pytest.raises(OptionsError, match=f"^my.json: the key {key} is missing"):
            BiLMOptions.from_dict(changed(key, DELETED), source="my.json")
    for value in BAD_VALUES[key]:
        with pytest.raises(OptionsError) as error:
            BiLMOptions.from_dict(changed(key.partition("[")[0], value), source="my.json")
        message = str(error.value)
        assert message.startswith("my.json: ")
        assert f"{key} is " in message
        assert "Expected" in message
        assert len(message) < 400


def test_constructor_checks_too(options: BiLMOptions) -> None:
    for data in (None, [], "x", 3):
        with pytest.raises(OptionsError, match=r"my.json: the top level is .*Expected an object"):
            BiLMOptions.from_dict(data, "my.json")
    assert replace(options, filters=[[1, 2], [3, 4]]) == options
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.dim = 3


def test_options_of_other_networks() -> None:
    """The keys of ELMoForManyLangs' cnn_50_100_512_4096_sample.json, and bilm-tf's options for word ids."""
    with pytest.raises(OptionsError, match=r"^o\.json: the options of a model of ELMoForManyLangs.*another network"):
        BiLMOptions.from_dict({"encoder": {"dim": 4096}, "token_embedder": {"n_highway": 2}, "dropout": 0.1}, "o.json")
    with pytest.raises(OptionsError, match=r"^o\.json: the key char_cnn is missing, .*numbers of words"):
        BiLMOptions.from_dict({"lstm": VALID["lstm"], "n_tokens_vocab": 793471}, "o.json")


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path / "options.json", "no such file"),
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "special file"),
        ("https://example.org/options.json", "an address on the network"),
        ("s3://bucket/options.json", "an address on the network"),
    ):
        with pytest.raises(OptionsError, match=message):
            read_options(path)


def test_write_and_read(options: BiLMOptions, tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_text("an earlier file", encoding="utf-8")
    write_options(path, options)
    assert read_options(path) == options
    unclipped = replace(options, activation="tanh", cell_clip=None, proj_clip=0.3, use_skip_connections=False)
    assert BiLMOptions.from_dict(unclipped.to_dict()) == unclipped
    assert list(tmp_path.iterdir()) == [path]
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["char_cnn"]["n_characters"] == 262
    assert data["char_cnn"]["filters"] == [[1, 2], [3, 4]]
    assert data["lstm"]["projection_dim"] == 5


SMALL = BiLMOptions(2, ((1, 3),), 0, "relu", 50, 8, 4, 1, None, None, False)
# Each pair is the last value that is taken and the first one that is not, as the docs state them.
LIMITS = [
    ("char_dim", 65_536, 65_537),
    ("n_highway", 64, 65),
    ("max_characters", 1_000, 1_001),
    ("max_characters", 3, 2),
    ("dim", 65_536, 65_537),
    ("dim", 4, 3),  # projection_dim is 4
    ("n_layers", 64, 65),
    ("filters", ((1, 1),) * 64, ((1, 1),) * 65),
    ("filters", ((50, 1),), ((51, 1),)),
    ("filters", ((1, 65_536),), ((1, 65_537),)),
    # the largest float32, and the next float64
    ("cell_clip", float.fromhex("0x1.fffffep127"), float.fromhex("0x1.fffffe0000001p127")),
    ("proj_clip", float.fromhex("0x1.fffffep127"), float.fromhex("0x1.fffffe0000001p127")),
    ("cell_clip", 5e-324, 0.0),
]


def test_the_last_value_is_taken_and_the_next_is_not() -> None:
    for name, last, beyond in LIMITS:
        assert getattr(replace(SMALL, **{name: last}), name) == last
        with pytest.raises(OptionsError, match="Expected"):
            replace(SMALL, **{name: beyond})


def test_numbers_of_parameters() -> None:
    """The values of each dataset, counted by hand for 8 filters and cells of 8; and those of the original biLM."""
    options = BiLMOptions(4, ((1, 3), (2, 5)), 0, "tanh", 50, 8, 8, 1, None, None, False)
    assert not options.has_lstm_projection
    assert not options.has_char_projection
    convolutions = 3 * 4 + 3 + 5 * 2 * 4 + 5
    cells = 2 * ((8 + 8) * 32 + 32)
    assert options.n_parameters == 261 * 4 + convolutions + cells
    highway = 2 * (8 * 8 + 8)
    assert replace(options, n_highway=3).n_parameters == options.n_parameters + 3 * highway
    assert replace(options, dim=9).n_parameters == 261 * 4 + convolutions + 2 * (16 * 36 + 36 + 9 * 8)
    narrow = replace(options, projection_dim=7, dim=7)
    assert narrow.n_parameters == 261 * 4 + convolutions + (8 * 7 + 7) + 2 * (14 * 28 + 28)
    filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    assert BiLMOptions(16, filters, 2, "relu", 50, 4096, 512, 2, 3, 3, True).n_parameters == 93_600_848


def test_the_largest_number_of_parameters() -> None:
    largest = BiLMOptions(1, ((1, 23_074),), 0, "relu", 50, 2_405, 2_405, 11, None, None, False)
    cells = 22 * (4 * 2_405 * 2 * 2_405 + 4 * 2_405)
    assert 261 + 2 * 23_074 + 2_405 * 23_074 + 2_405 + cells == 2**30 == largest.n_parameters
    with pytest.raises(OptionsError, match=r"parameters"):
        replace(largest, filters=((1, 23_075),))


def test_the_largest_file(tmp_path: Path) -> None:
    """With a byte order mark, too."""
    path = tmp_path / "options.json"
    path.write_bytes(json.dumps(SMALL.to_dict()).encode("utf-8-sig").ljust(2**20))
    assert read_options(path) == SMALL
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(OptionsError, match=r"1,048,576 bytes"):
        read_options(path)
