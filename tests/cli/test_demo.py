"""`elmo demo`: its table, its vectors, and a picture that has what the table has."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from matplotlib.figure import Figure

from spacy_elmo.cli.demo import SampleWord, plot_senses
from spacy_elmo.formats import read_vectors

SENSES = (("bank", "river"), ("bank", "money"), ("spring", "season"), ("spring", "water"))


@pytest.mark.slow
def test_the_table_and_the_files(tmp_path: Path) -> None:
    assert "bank 1.00 / 1.00" in run("elmo", "demo", tmp_path / "out")
    assert (tmp_path / "out" / "senses.png").stat().st_size > 20_000
    vectors = list(read_vectors(tmp_path / "out" / "vectors.hdf5"))
    assert len(vectors) == 40
    assert all(array.shape[0] == 3 and array.shape[2] == 256 for _, array in vectors)
    assert np.isfinite(vectors[0][1]).all()


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf8")
    assert "this folder can't be made (Not a directory)" in run("elmo", "demo", tmp_path / "file/out", code=1)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def test_the_rows_of_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    occurrences = [
        SampleWord(word, sense, "", random.normal(size=(2, 6)).astype("f")) for word, sense in SENSES for _ in range(3)
    ]
    drawn: list[Figure] = []

    def save(figure: Figure, path: Path, **_: Any) -> None:
        drawn.append(figure)
        Path(path).touch()

    monkeypatch.setattr(Figure, "savefig", save)
    assert plot_senses(occurrences, tmp_path / "senses.png")
    axes = drawn[0].axes
    assert [each.get_title() for each in axes] == [
        *("bank, layer 0", "bank, layer 1", "mean cosine"),
        *("spring, layer 0", "spring, layer 1", "mean cosine"),
        "all words, mean cosine",
    ]
    drawn[0].canvas.draw()  # the layout is computed now
    for one, other in combinations(axes, 2):
        assert not one.get_window_extent().overlaps(other.get_window_extent())
    legend = axes[2].get_legend()
    assert legend is not None
    assert legend.get_window_extent().y0 > axes[2].transData.transform((0, 1))[1]  # a bar of the highest cosine
    pairs = [(a, b) for a, b in combinations(occurrences, 2) if a.word == b.word]
    expected = [
        np.mean([cosine(a.layers[layer], b.layers[layer]) for a, b in pairs if (a.sense == b.sense) is same])
        for same in (True, False)
        for layer in range(2)
    ]
    np.testing.assert_allclose([bar.get_height() for bar in axes[-1].patches], expected, atol=1e-6)
