"""Evaluations: metrics.jsonl is written row by row, cut at any byte, and read again; and curve.png."""

import builtins
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from run_cases import row as evaluation

from spacy_elmo.errors import CheckpointError
from spacy_elmo.pretraining.evaluating import EvaluationRow, append_row, cut_back, draw_curve, read_metrics

ROWS = [evaluation(100, 800.0), evaluation(200, 200.0), evaluation(300, 50.0)]


def row(step: int) -> EvaluationRow:
    return EvaluationRow(step, step * 10, step / 7, step * 1.5, 6.25, 0.003, 120.5, 110.25, 115.3, 1234, 15000.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    for step in (5, 10, 15):
        append_row(path, row(step))
    return path


def test_a_line_is_one_json_object(path: Path) -> None:
    lines = path.read_text(encoding="utf8").split("\n")
    assert lines[3] == ""
    assert json.loads(lines[1]) == {
        "step": 10,
        "tokens": 100,
        "epochs": 10 / 7,
        "seconds": 15.0,
        "loss": 6.25,
        "rate": 0.003,
        "perplexity_forward": 120.5,
        "perplexity_backward": 110.25,
        "perplexity": 115.3,
        "predictions": 1234,
        "tokens_per_second": 15000.5,
    }
    assert read_metrics(path) == [row(5), row(10), row(15)]
    append_row(path, row(20)._replace(perplexity=math.inf))
    assert '"perplexity": null' in path.read_text(encoding="utf8")
    assert read_metrics(path)[-1].perplexity == math.inf


def test_cut_at_every_byte_it_is_as_if_it_had_never_stopped(path: Path) -> None:
    whole = path.read_bytes()
    ends = [k + 1 for k, byte in enumerate(whole) if byte == ord("\n")]
    for size in [*range(0, len(whole), 37), *(end + k for end in ends for k in (-1, 0))]:
        path.write_bytes(whole[:size])
        known = [row(step) for step, end in zip((5, 10, 15), ends) if end - 1 <= size]  # only the newline may miss
        assert read_metrics(path) == known
        cut_back(path, 10)
        assert read_metrics(path) == [one for one in known if one.step <= 10]
        for step in (5, 10, 15):
            if step not in [one.step for one in read_metrics(path)]:
                append_row(path, row(step))
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "3",
        "{}",
        json.dumps(row(7)._replace(tokens=None)._asdict()),  # type: ignore[arg-type]
        json.dumps(row(7)._replace(loss=10**400)._asdict()),
    ],
)
def test_a_damaged_line(path: Path, line: str) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + line.encode())
    assert len(read_metrics(path)) == 3
    path.write_bytes(line.encode() + b"\n" + whole)
    for read in (read_metrics, lambda path: cut_back(path, 10)):
        with pytest.raises(CheckpointError, match=r"metrics\.jsonl: can't be read \(line 1: "):
            read(path)
    assert path.read_bytes() == line.encode() + b"\n" + whole


# The plot


@pytest.mark.slow
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


@pytest.mark.slow
def test_one_row_and_infinities(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "metrics.jsonl") == []
    path = tmp_path / "curve.png"
    assert not draw_curve(path, [])
    assert not draw_curve(path, [evaluation(1, math.inf)])
    assert not path.exists()
    assert draw_curve(path, [evaluation(1, math.inf), evaluation(2, 90.0)])
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
