"""What a run tells: its evaluations in metrics.jsonl and in a plot, and what is called while it goes on."""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CheckpointError
from ..formats.atomic import replacing, writing
from .folder import Run

# metrics.jsonl: one JSON object a line


class EvaluationRow(NamedTuple):
    """One evaluation during a run. docs/pretraining.md tells what the values are."""

    step: int
    tokens: int
    epochs: float
    seconds: float
    loss: float
    rate: float
    perplexity_forward: float
    perplexity_backward: float
    perplexity: float
    predictions: int
    tokens_per_second: float


def append_row(path: Path, row: EvaluationRow) -> None:
    """Append a line, synced to the disk, with null for infinity and NaN."""
    record = {name: value if math.isfinite(value) else None for name, value in row._asdict().items()}
    with writing(path, CheckpointError), path.open("ab") as file:
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_metrics(path: Path) -> list[EvaluationRow]:
    """Return the evaluations in metrics.jsonl, null as infinity, without an incomplete last line."""
    kinds = EvaluationRow.__annotations__.items()
    rows: list[EvaluationRow] = []
    lines: list[bytes] = []
    try:
        lines = path.read_bytes().splitlines()
        for line in lines:
            record = json.loads(line)
            rows.append(EvaluationRow(*(kind(math.inf if record[n] is None else record[n]) for n, kind in kinds)))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        if len(rows) + 1 != len(lines):
            raise CheckpointError(
                f"{path}: can't be read (line {len(rows) + 1}: {error!r}). Expected the evaluations of a run, "
                "one JSON object a line: correct that line, or move the file away."
            ) from error
    return rows


def cut_back(path: Path, step: int) -> None:
    """Remove the evaluations after a step, and an incomplete last line."""
    rows = [row for row in read_metrics(path) if row.step <= step]
    if path.exists():
        with replacing(path, CheckpointError) as temporary:
            temporary.touch()
            for row in rows:
                append_row(temporary, row)


_LINES = {"perplexity_forward": "forward", "perplexity_backward": "backward", "perplexity": "mean"}


def draw_curve(path: Path, rows: Sequence[EvaluationRow]) -> bool:
    """Write a PNG with the perplexities over tokens. Returns false without matplotlib, or without a finite value."""
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
        values = [getattr(row, name) for row in rows]
        style: dict[str, Any] = {"color": "black", "ls": "-"} if title == "mean" else {"ls": "--"}
        axes.plot(millions, values, marker=".", label=f"{title}, {values[-1]:.1f}", **style)
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


class Reporter:
    """Is called during a run. This one does nothing; subclasses override the methods of what they show.

    Steps are updates so far; tokens are those of one direction, `</S>` counted.
    """

    def start(self, run: Run, warnings: Sequence[str]) -> None:
        """Training is about to start. warnings: what is unusual about the run, though it may be intended."""

    def resumed(self, step: int, tokens: int) -> None:
        """The run continues from a checkpoint."""

    def step(
        self, step: int, tokens: int, total_tokens: int, loss: float, rate: float, tokens_per_second: float
    ) -> None:
        """An update was made. loss, in nats, and tokens_per_second are smoothed; rate: learning rate."""

    def evaluating(self, scored: int, sentences: int) -> None:
        """Some of the sentences that are to be scored were scored."""

    def evaluated(self, row: EvaluationRow) -> None:
        """The held-out sentences were scored."""

    def message(self, text: str) -> None:
        """Something else happened that a person should know. text: a sentence."""

    def done(self, output: Path, best: float | None, stopped_by: int | None) -> None:
        """The run has ended, or was stopped by a signal, of this number. best: lowest held-out perplexity, if any."""

    def close(self) -> None:
        """No other method will be called: the run has ended, also after an error."""
