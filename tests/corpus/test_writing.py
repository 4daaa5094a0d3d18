"""What is written of the layers of a sentence, against the formulas; and the digests of shards."""

from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.corpus.shards import cut
from spacy_elmo.corpus.writing import Selection
from spacy_elmo.errors import SettingsError
from spacy_elmo.text.stream import Item

LAYERS = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
MIX = {"w": [0.5, -1.0, 2.0], "gamma": 1.5}
WEIGHTS = 1.5 * np.exp(MIX["w"]) / np.exp(MIX["w"]).sum()
EXPECTED = {
    "all": LAYERS,
    "top": LAYERS[2],
    "mean": (LAYERS[0] + LAYERS[1] + LAYERS[2]) / 3,
    "mix": WEIGHTS[0] * LAYERS[0] + WEIGHTS[1] * LAYERS[1] + WEIGHTS[2] * LAYERS[2],
}


@pytest.mark.parametrize("name", list(EXPECTED))
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float16", 2e-3)])
def test_values(name: str, dtype: str, tolerance: float) -> None:
    layers, expected = MIX if name == "mix" else name, EXPECTED[name]
    tokens, sentence = (Selection.of(layers, dtype, sentence) for sentence in (False, True))
    means = (expected[..., 0, :] + expected[..., 1, :] + expected[..., 2, :] + expected[..., 3, :]) / 4
    for selection, wanted in ((tokens, expected), (sentence, means)):
        got = selection(LAYERS)
        assert (got.dtype, got.shape) == (np.dtype(dtype), wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance)
        columns = dict(zip(selection.columns(3), selection.by_column(got), strict=True))
        if name == "all":
            assert list(columns) == ["layer_0", "layer_1", "layer_2"]
            np.testing.assert_array_equal(columns["layer_1"], got[1])
        else:
            assert list(columns) == ["vector" if selection is sentence else "vectors"]


def test_values_that_float16_does_not_have() -> None:
    large = np.full((1, 2, 3), 65_504, np.float32)  # the largest number of float16
    assert np.isfinite(Selection.of("top", "float16", False)(large)).all()
    assert Selection.of("top", "float32", False)(2 * large).max() == 131_008
    with pytest.raises(SettingsError, match="float16"):
        Selection.of("top", "float16", False)(2 * large)


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ({}, r'layers: not the weights of a mix \(no object with "w"\)'),
        ('{"w": ["a"]}', r"mix\.json: not the weights of a mix .*finite numbers"),
        ('[{"w": [0, 1]}, {"w": [1, 0]}]', r"mix\.json: not the weights of a mix .*mixes; keep the one"),
        ({"w": []}, "no list of finite numbers"),
        ({"w": [float("nan"), 0]}, "finite numbers"),
        ({"w": [0, 0], "gamma": float("inf")}, "finite numbers"),
        ({"w": [10**400, 0]}, "finite numbers"),
    ],
)
def test_mixes_that_are_none(mix: dict | str, message: str, tmp_path: Path) -> None:
    if isinstance(mix, str):
        (tmp_path / "mix.json").write_text(mix, encoding="utf8")
    with pytest.raises(SettingsError, match=message):
        Selection.of(tmp_path / "mix.json" if isinstance(mix, str) else mix, "float32", False)


def test_shards_of_other_items_have_another_digest() -> None:
    """Else a command that goes on would keep vectors of another text, or name the wrong lines."""
    first, second = Item("a", 1, "text", b"ab"), Item("a", 2, "text", b"c")
    shards = [
        [first, second],
        [first._replace(data=b"a"), second._replace(data=b"bc")],
        [first._replace(source="b"), second],
        [first, second._replace(line=3)],
        [first._replace(kind="json"), second],
        [first, second._replace(data=b"d")],
        [first],
    ]
    digests = [shard.digest for items in [*shards, shards[0]] for shard in cut(items, 1000)]
    assert len(set(digests)) == len(shards)
    assert digests[0] == digests[-1]


def test_the_same_file_by_another_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has another name, and one real path. Standard input has none."""
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    names = ["a", str(tmp_path / "a"), "b", f"../{tmp_path.name}/a", "standard input"]
    shards = [shard for name in names for shard in cut([Item(name, 1, "text", b"ab")], 9)]
    assert len({shard.digest for shard in shards}) == 5
    assert len({shard.real_digest for shard in shards[:4]}) == 1
    assert shards[4].real_digest == shards[4].digest
