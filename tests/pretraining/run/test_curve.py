"""curve.png: what is drawn, and where nothing is."""

import builtins
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from run_cases import row

from spacy_elmo.errors import CheckpointError
from spacy_elmo.pretraining.metrics import draw_curve

ROWS = [row(100, 800.0), row(200, 200.0), row(300, 50.0)]


def test_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *args: Any, **settings: Any) -> None:
        figures.append(figure)
        save(figure, *args, **settings)

    monkeypatch.setattr(Figure, "savefig", keep)
    path = tmp_path / "curve.png"
    assert draw_curve(path, ROWS)
    (axes,) = figures[0].axes
    assert axes.get_yscale() == "log"
    lines = {str(line.get_label()): line for line in axes.lines}
    assert list(lines) == ["forward, 60.0", "backward, 40.0", "mean, 50.0"]
    for label, plus in (("forward, 60.0", 10), ("backward, 40.0", -10), ("mean, 50.0", 0)):
        np.testing.assert_allclose(np.asarray(lines[label].get_xdata()), [0.512, 1.024, 1.536])
        np.testing.assert_allclose(np.asarray(lines[label].get_ydata()), np.array([800, 200, 50]) + plus)
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert (width, height) == (768, 480)


def test_one_row_and_infinities(tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    assert not draw_curve(path, [])
    assert not draw_curve(path, [row(1, math.inf)])
    assert not path.exists()
    assert draw_curve(path, [row(1, math.inf), row(2, 90.0)])
    assert path.exists()


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert not draw_curve(tmp_path / "curve.png", ROWS)
    assert not list(tmp_path.iterdir())


def test_what_can_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is a folder"):
        draw_curve(tmp_path, ROWS)
    assert not list(tmp_path.iterdir())
