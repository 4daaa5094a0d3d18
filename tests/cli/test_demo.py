"""`elmo demo`: its table, its vectors, and a picture that has what the table has."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from matplotlib.figure import Figure
from matplotlib.text import Text

from spacy_elmo.cli.demo import SampleWord, plot_senses
from spacy_elmo.formats import read_vectors

SENSES = (("bank", "river"), ("bank", "money"), ("spring", "season"), ("spring", "water"))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """What is drawn while a test runs."""
    figures: list[Figure] = []
    save = Figure.savefig

    def savefig(figure: Figure, *args: Any, **settings: Any) -> None:
        figures.append(figure)
        save(figure, *args, **settings)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return figures


@pytest.mark.slow
def test_the_table_and_the_files(tmp_path: Path, drawn: list[Figure]) -> None:
    assert "bank 1.00 / 1.00" in run("elmo", "demo", tmp_path / "out")
    assert (tmp_path / "out" / "senses.png").stat().st_size > 20_000
    vectors = list(read_vectors(tmp_path / "out" / "vectors.hdf5"))
    assert len(vectors) == 40
    assert all(array.shape[0] == 3 and array.shape[2] == 512 for _, array in vectors)
    assert np.isfinite(vectors[0][1]).all()
    for axes in drawn[0].axes:
        labels = [Text.get_window_extent(text) for text in axes.texts]  # without the lines to the points
        assert len(labels) == 8
        assert not any(one.overlaps(other) for one, other in combinations(labels, 2))


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf8")
    assert "can't be written ([Errno 20] Not a directory" in run("elmo", "demo", tmp_path / "file/out", code=1)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def test_the_picture_has_the_first_word_in_each_layer_above_the_first(tmp_path: Path, drawn: list[Figure]) -> None:
    random = np.random.default_rng(0)
    occurrences = [
        SampleWord(word, sense, f"This {word} is number {k}", random.normal(size=(3, 6)).astype("f"))
        for word, sense in SENSES
        for k in range(3)
    ]
    assert plot_senses(occurrences, tmp_path / "senses.png")
    pairs = [(a, b) for a, b in combinations(occurrences[:6], 2)]
    for layer, axes in enumerate(drawn[0].axes, start=1):
        same, different = (
            np.mean([cosine(a.layers[layer], b.layers[layer]) for a, b in pairs if (a.sense == b.sense) is equal])
            for equal in (True, False)
        )
        assert axes.get_title() == f"layer {layer}: cosine {same:.2f} in one sense, {different:.2f} between senses"
        # the plane of two principal components: distances are those of the best approximation of rank 2
        vectors = np.stack([one.layers[layer] for one in occurrences[:6]])
        u, s, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
        expected = u[:, :2] * s[:2]
        places = np.concatenate([np.asarray(points.get_offsets()) for points in axes.collections])
        np.testing.assert_allclose(np.abs(places), np.abs(expected), atol=1e-5)
    assert len(drawn[0].axes) == 2
