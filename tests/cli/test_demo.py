"""`elmo demo`: its table, its vectors, and a picture that has what the table has."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from matplotlib.figure import Figure

from spacy_elmo.cli.demo import SampleWord, plot_senses
from spacy_elmo.errors import CommandError
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


@pytest.mark.parametrize("place", ["file/out", "file/out/deeper"])
def test_a_folder_that_can_not_be_made(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf8")
    output = run("elmo", "demo", tmp_path / place, code=1)
    assert "this folder can't be made (Not a directory)" in output
    assert "give another folder" in output


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def test_the_rows_of_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    occurrences = [
        SampleWord(word, sense, "", random.normal(size=(2, 6)).astype("f")) for word, sense in SENSES for _ in range(3)
    ]
    drawn: list[Figure] = []

    write = Figure.savefig

    def save(figure: Figure, *arguments: Any, **settings: Any) -> None:
        drawn.append(figure)
        write(figure, *arguments, **settings)

    monkeypatch.setattr(Figure, "savefig", save)
    assert plot_senses(occurrences, tmp_path / "senses.png")
    titles = [axes.get_title() for axes in drawn[0].axes]
    assert titles == [
        *("bank, layer 0", "bank, layer 1", "mean cosine"),
        *("spring, layer 0", "spring, layer 1", "mean cosine"),
        "all words, mean cosine",
    ]
    drawn[0].canvas.draw()  # the layout is computed now
    for one, other in combinations(drawn[0].axes, 2):
        assert not one.get_window_extent().overlaps(other.get_window_extent())
    legend = drawn[0].axes[2].get_legend()
    assert legend is not None
    top = drawn[0].axes[2].transData.transform((0, 1))[1]  # of a bar of the highest cosine
    assert legend.get_window_extent().y0 > top
    assert legend.get_window_extent().width < drawn[0].axes[2].get_window_extent().width
    pairs = [(a, b) for a, b in combinations(occurrences, 2) if a.word == b.word]
    expected = [
        np.mean([cosine(a.layers[layer], b.layers[layer]) for a, b in pairs if (a.sense == b.sense) is same])
        for same in (True, False)
        for layer in range(2)
    ]
    heights = [bar.get_height() for bar in drawn[0].axes[-1].patches]
    np.testing.assert_allclose(heights, expected, atol=1e-6)


def test_a_picture_that_cannot_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "senses.png").write_bytes(b"mine")

    def fail(figure: Figure, path: Path, **_: Any) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    occurrences = [SampleWord(word, sense, "", np.eye(2, dtype="f")) for word, sense in SENSES for _ in range(2)]
    with pytest.raises(CommandError, match=r"senses\.png.*No space left"):
        plot_senses(occurrences, tmp_path / "senses.png")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"senses.png": b"mine"}
