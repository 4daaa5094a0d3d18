"""The plot of a run: held-out perplexity over tokens."""

import math
from collections.abc import Sequence
from pathlib import Path

from ...errors import CheckpointError
from ...formats.atomic import replacing, writing
from .metrics import EvaluationRow

CURVE = "curve.png"
_LINES = {"perplexity_forward": "forward", "perplexity_backward": "backward", "perplexity": "mean"}


def draw_curve(path: Path, rows: Sequence[EvaluationRow]) -> bool:
    """Write a PNG with the perplexity of each direction and their mean over tokens, atomically, on a logarithmic scale.

    path: the file to write.
    rows: the evaluations of the run.

    Returns whether it was written: not if matplotlib is missing, or if there is no finite perplexity.
    Raises CheckpointError if the file can't be written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import StrMethodFormatter
    except ImportError:
        return False
    rows = [row for row in rows if all(math.isfinite(getattr(row, name)) for name in _LINES)]
    if not rows:
        return False
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_yscale("log")
    millions = [row.tokens / 1e6 for row in rows]
    for name, title in _LINES.items():
        mean = title == "mean"
        values = [getattr(row, name) for row in rows]
        axes.plot(
            millions,
            values,
            marker=".",
            label=f"{title}, {values[-1]:.1f}",
            color="black" if mean else None,
            ls="-" if mean else "--",
        )
    for axis in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        axis(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("tokens seen, millions")
    axes.set_ylabel("held-out perplexity")
    axes.set_title("full softmax, zero state", fontsize=10)
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    with replacing(path, CheckpointError) as temporary, writing(path, CheckpointError):
        figure.savefig(temporary, format="png", dpi=120)
    return True
