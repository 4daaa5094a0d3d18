"""The evaluations of a run: metrics.jsonl, one JSON object a line."""

import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import CheckpointError, Errors, shown
from ...formats.atomic import replacing, writing

METRICS = "metrics.jsonl"


class EvaluationRow(NamedTuple):
    """One evaluation on the way.

    step: updates so far; tokens, epochs, seconds: seen and spent up to there, over all resumes.
    loss: smoothed loss of training, over sampled words where the softmax is sampled: no perplexity comes of it.
    rate: learning rate. perplexity: exp of the mean of both directions' mean losses on the held-out sentences, full
    softmax, zero state. predictions: of one direction, behind the perplexities.
    """

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


_WHOLE = ("step", "tokens", "predictions")


def append_row(path: Path, row: EvaluationRow) -> None:
    """Add a line, safe on the disk when this returns. JSON has no infinity: null is written. Raises CheckpointError."""
    record = {name: value if math.isfinite(value) else None for name, value in row._asdict().items()}
    with writing(path, CheckpointError), path.open("ab") as file:
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_metrics(path: Path) -> list[EvaluationRow]:
    """All rows; none where there is no file. A last line that was cut short is left out.

    null in the place of a real number is read as infinity. Raises CheckpointError, which names the line.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(Errors.METRICS_UNREADABLE.format(path=path, reason=error)) from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_row(json.loads(line)))
        except (ValueError, RecursionError) as error:
            if number < len(lines):
                message = Errors.METRICS_LINE.format(path=path, line=number, reason=error)
                raise CheckpointError(message) from error
    return rows


def cut_back(path: Path, step: int) -> list[EvaluationRow]:
    """Cut what a run wrote after the step it goes on from, and a last line that was cut short; give the rows kept.

    The file is then as if the run had never stopped. Raises CheckpointError.
    """
    kept = [row for row in read_metrics(path) if row.step <= step]
    if not path.exists():
        return kept
    with replacing(path, CheckpointError) as temporary:
        temporary.touch()
        for row in kept:
            append_row(temporary, row)
    return kept


def _row(record: object) -> EvaluationRow:
    if not isinstance(record, dict):
        raise ValueError(f"{shown(record)} is no object")
    values: dict[str, Any] = {}
    for name in EvaluationRow._fields:
        if name not in record:
            raise ValueError(f"{name} is missing")
        value = record[name]
        whole = name in _WHOLE
        if value is None and not whole:
            value = math.inf
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise ValueError(f"{name} is {shown(value)}")
        try:
            values[name] = value if whole else float(value)
        except OverflowError:
            raise ValueError(f"{name} is {shown(value)}") from None
    return EvaluationRow(**values)
