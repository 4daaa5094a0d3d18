"""BiLMOptions at its limits: the last value that is taken and the first that is refused, and counts of parameters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spacy_elmo.errors import OptionsError
from spacy_elmo.formats import BiLMOptions, read_options

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
    ("filters", ((1, 65_535), (2, 1)), ((1, 65_535), (2, 2))),
    # the largest float32, and the next float64
    ("cell_clip", float.fromhex("0x1.fffffep127"), float.fromhex("0x1.fffffe0000001p127")),
    ("proj_clip", float.fromhex("0x1.fffffep127"), float.fromhex("0x1.fffffe0000001p127")),
    ("cell_clip", 5e-324, 0.0),
]


@pytest.mark.parametrize(("name", "last", "beyond"), LIMITS, ids=[f"{name}-{i}" for i, (name, *_) in enumerate(LIMITS)])
def test_the_last_value_is_taken_and_the_next_is_not(name: str, last: object, beyond: object) -> None:
    assert getattr(replace(SMALL, **{name: last}), name) == last
    with pytest.raises(OptionsError, match="Expected"):
        replace(SMALL, **{name: beyond})


def test_parameters_without_projections() -> None:
    """The values of each dataset, counted by hand for 8 filters and cells of 8."""
    options = BiLMOptions(4, ((1, 3), (2, 5)), 0, "tanh", 50, 8, 8, 1, None, None, False)
    convolutions = 3 * 4 + 3 + 5 * 2 * 4 + 5
    cells = 2 * ((8 + 8) * 32 + 32)
    assert options.n_parameters == 261 * 4 + convolutions + cells
    highway = 2 * (8 * 8 + 8)
    assert replace(options, n_highway=3).n_parameters == options.n_parameters + 3 * highway
    assert replace(options, dim=9).n_parameters == 261 * 4 + convolutions + 2 * (16 * 36 + 36 + 9 * 8)
    narrow = replace(options, projection_dim=7, dim=7)
    assert narrow.n_parameters == 261 * 4 + convolutions + (8 * 7 + 7) + 2 * (14 * 28 + 28)


def test_the_largest_number_of_parameters() -> None:
    largest = BiLMOptions(1, ((1, 23_074),), 0, "relu", 50, 2_405, 2_405, 11, None, None, False)
    cells = 22 * (4 * 2_405 * 2 * 2_405 + 4 * 2_405)
    assert 261 + 2 * 23_074 + 2_405 * 23_074 + 2_405 + cells == 2**30 == largest.n_parameters
    with pytest.raises(OptionsError, match=r"parameters"):
        replace(largest, filters=((1, 23_075),))


def test_the_largest_file(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_bytes(json.dumps(SMALL.to_dict()).encode().ljust(2**20))
    assert read_options(path) == SMALL
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(OptionsError, match=r"1[,_]?048[,_]?576 bytes"):
        read_options(path)


@pytest.mark.parametrize("address", ["https://example.org/options.json", "s3://bucket/options.json"])
def test_an_address_is_refused(address: str) -> None:
    with pytest.raises(OptionsError, match="an address on the network"):
        read_options(address)
