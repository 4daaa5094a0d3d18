"""BiLMOptions: reading, writing, and the messages for bad values."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.errors import ElmoError, OptionsError, shown
from spacy_elmo.formats import BiLMOptions, read_options

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
    if value is DELETED:
        del inner[last]
    else:
        inner[last] = value
    return data


@st.composite
def valid_options(draw: st.DrawFn) -> BiLMOptions:
    max_characters = draw(st.integers(3, 60))
    widths = st.integers(1, min(7, max_characters))
    clips = st.none() | st.floats(1e-6, 100)
    dim = draw(st.integers(1, 40))
    return BiLMOptions(
        char_dim=draw(st.integers(1, 16)),
        filters=tuple(draw(st.lists(st.tuples(widths, st.integers(1, 30)), min_size=1, max_size=5))),
        n_highway=draw(st.integers(0, 3)),
        activation=draw(st.sampled_from(["relu", "tanh"])),
        max_characters=max_characters,
        dim=dim,
        projection_dim=draw(st.integers(1, dim)),
        n_layers=draw(st.integers(1, 4)),
        cell_clip=draw(clips),
        proj_clip=draw(clips),
        use_skip_connections=draw(st.booleans()),
    )


@given(valid_options())
def test_round_trip(options: BiLMOptions) -> None:
    assert BiLMOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options


def test_the_written_layout(options: BiLMOptions) -> None:
    data = options.to_dict()
    assert data["char_cnn"]["n_characters"] == 262
    assert data["char_cnn"]["filters"] == [[1, 2], [3, 4]]
    assert data["lstm"]["projection_dim"] == 5


def test_golden(golden: Path) -> None:
    a = read_options(golden / "random_a" / "options.json")
    assert (a.char_dim, a.n_filters, a.n_highway, a.activation) == (4, 124, 2, "relu")
    assert (a.dim, a.projection_dim, a.width, a.layers) == (64, 16, 32, 3)
    b = read_options(golden / "random_b" / "options.json")
    assert (b.activation, b.cell_clip, b.proj_clip, b.layers) == ("tanh", 0.6, 0.4, 4)


def test_tiny_fixture(tiny_fixture: Path) -> None:
    assert read_options(tiny_fixture / "options.json").max_characters == 50


def test_size_of_the_original_model() -> None:
    filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    original = BiLMOptions(16, filters, 2, "relu", 50, 4096, 512, 2, 3, 3, True)
    assert original.n_parameters == 93_600_848
    assert original.cell_clip == 3.0
    assert isinstance(original.cell_clip, float)
    assert original.has_lstm_projection
    assert original.has_char_projection


def test_projections_that_the_sizes_do_not_require() -> None:
    options = BiLMOptions(4, ((1, 3), (2, 5)), 0, "tanh", 50, 8, 8, 1, None, None, False)
    assert not options.has_lstm_projection
    assert not options.has_char_projection


def test_unknown_keys_are_ignored() -> None:
    data = copy.deepcopy(VALID)
    data |= {"bidirectional": True, "dropout": 0.1, "n_tokens_vocab": 793471, "unroll_steps": 20}
    data["lstm"]["something"] = None
    assert BiLMOptions.from_dict(data) == BiLMOptions.from_dict(VALID)


@pytest.mark.parametrize("value", [DELETED, None])
def test_defaults_of_the_originals(value: object) -> None:
    assert BiLMOptions.from_dict(changed("lstm.use_skip_connections", value)).use_skip_connections is False
    assert BiLMOptions.from_dict(changed("lstm.cell_clip", value)).cell_clip is None
    assert BiLMOptions.from_dict(changed("lstm.proj_clip", value)).proj_clip is None
    assert BiLMOptions.from_dict(changed("char_cnn.n_highway", value)).n_highway == 0


REQUIRED = [
    "lstm",
    "lstm.dim",
    "lstm.projection_dim",
    "lstm.n_layers",
    "char_cnn",
    "char_cnn.embedding",
    "char_cnn.embedding.dim",
    "char_cnn.filters",
    "char_cnn.max_characters_per_token",
    "char_cnn.activation",
]


@pytest.mark.parametrize("key", REQUIRED)
def test_missing_key(key: str) -> None:
    with pytest.raises(OptionsError) as error:
        BiLMOptions.from_dict(changed(key, DELETED), source="my.json")
    assert str(error.value).startswith(f"my.json: the key {key} is missing")


@pytest.mark.parametrize("value", [DELETED, None])
def test_n_characters_may_be_missing(value: object) -> None:
    """AllenNLP's _ElmoCharacterEncoder never reads the key: its table has the file's rows, and one for the mask."""
    assert BiLMOptions.from_dict(changed("char_cnn.n_characters", value)) == BiLMOptions.from_dict(
        changed("char_cnn.n_characters", 262)
    )


SIZES = ["lstm.dim", "lstm.projection_dim", "lstm.n_layers", "char_cnn.embedding.dim", "char_cnn.n_highway"]
SIZES += ["char_cnn.max_characters_per_token", "char_cnn.n_characters"]
CLIPS = ["lstm.cell_clip", "lstm.proj_clip"]
BAD_VALUES = [(key, value) for key in SIZES for value in (True, "3", 2.0, -1, 10**30, [3], {}, float("nan"))]
BAD_VALUES += [(key, 0) for key in SIZES if key != "char_cnn.n_highway"]
BAD_VALUES += [
    (key, value) for key in CLIPS for value in (True, "3", 0, -1.0, float("nan"), float("inf"), 10**400, 10**5000, [])
]
BAD_VALUES += [("lstm.use_skip_connections", value) for value in (1, 0, "true", [])]
BAD_VALUES += [("char_cnn.activation", value) for value in ("gelu", "", "RELU", None, 1, ["relu"])]
BAD_VALUES += [("char_cnn.n_characters", value) for value in (260, 263, 256, 261.0)]
BAD_VALUES += [("char_cnn.filters", value) for value in ([], {}, "1,2", None, 3, [[1, 1]] * 65)]
BAD_VALUES += [("char_cnn.filters", [[1, 60_000], [2, 60_000]])]
BAD_VALUES += [("lstm.projection_dim", 65)]
BAD_VALUES += [("char_cnn.max_characters_per_token", value) for value in (2, 1_001)]
BAD_VALUES += [(key, value) for key in ("lstm", "char_cnn", "char_cnn.embedding") for value in (None, [], 1, "x")]


@pytest.mark.parametrize(("key", "value"), BAD_VALUES, ids=lambda value: shown(value)[:40])
def test_bad_value(key: str, value: object) -> None:
    with pytest.raises(OptionsError) as error:
        BiLMOptions.from_dict(changed(key, value), source="my.json")
    message = str(error.value)
    assert message.startswith("my.json: ")
    assert key in message
    assert "Expected" in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("pair", "key"),
    [
        ([1], "char_cnn.filters[1]"),
        ([1, 2, 3], "char_cnn.filters[1]"),
        (3, "char_cnn.filters[1]"),
        ("12", "char_cnn.filters[1]"),
        ([51, 4], "char_cnn.filters[1][0]"),
        ([0, 4], "char_cnn.filters[1][0]"),
        ([True, 4], "char_cnn.filters[1][0]"),
        ([1, 0], "char_cnn.filters[1][1]"),
        ([1, -4], "char_cnn.filters[1][1]"),
        ([1, 4.0], "char_cnn.filters[1][1]"),
    ],
)
def test_bad_filter(pair: object, key: str) -> None:
    with pytest.raises(OptionsError) as error:
        BiLMOptions.from_dict(changed("char_cnn.filters", [[1, 4], pair]))
    assert f" {key} is " in str(error.value)


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_the_top_level_must_be_an_object(data: object) -> None:
    with pytest.raises(OptionsError, match="top level"):
        BiLMOptions.from_dict(data)


def test_too_many_parameters() -> None:
    data = changed("lstm.dim", 65_536)
    data["lstm"]["projection_dim"] = 65_536
    with pytest.raises(OptionsError, match=r"my.json: .* parameters.*lstm\.dim"):
        BiLMOptions.from_dict(data, source="my.json")


def test_constructor_checks_too(options: BiLMOptions) -> None:
    with pytest.raises(OptionsError, match=r"lstm\.n_layers"):
        dataclasses.replace(options, n_layers=0)
    with pytest.raises(OptionsError, match=r"lstm\.projection_dim"):
        dataclasses.replace(options, projection_dim=9)
    assert dataclasses.replace(options, filters=[[1, 2], [3, 4]]) == options
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.dim = 3


def test_options_of_other_networks() -> None:
    """The keys of ELMoForManyLangs' cnn_50_100_512_4096_sample.json, and bilm-tf's options for word ids."""
    with pytest.raises(OptionsError, match=r"^o\.json: the options of a model of ELMoForManyLangs.*another network"):
        BiLMOptions.from_dict({"encoder": {"dim": 4096}, "token_embedder": {"n_highway": 2}, "dropout": 0.1}, "o.json")
    with pytest.raises(OptionsError, match=r"^o\.json: the key char_cnn is missing\. .*numbers of words"):
        BiLMOptions.from_dict({"lstm": VALID["lstm"], "n_tokens_vocab": 793471}, "o.json")


def test_errors_are_value_errors() -> None:
    assert issubclass(OptionsError, ElmoError)
    assert issubclass(ElmoError, ValueError)
