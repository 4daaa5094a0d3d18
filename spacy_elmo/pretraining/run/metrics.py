"""The evaluations of a run: metrics.jsonl, one JSON object a line."""

import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import CheckpointError, Errors, shown
from ...formats.atomic import replacing, writing
from ...formats.strict.strict_json import parse_json

METRICS = "metrics.jsonl"


class EvaluationRow(NamedTuple):
    """One evaluation during a run.

    step: updates so far.
    tokens: tokens of one direction so far, `</S>` counted.
    epochs: the same as a multiple of the training text.
    seconds: of training and evaluation so far, over all resumes.
    loss: smoothed training loss, in nats. If the softmax is sampled, its exponential is no perplexity.
    rate: learning rate.
    perplexity_forward, perplexity_backward: exp of each direction's mean loss on the held-out sentences, by the full
        softmax, each sentence from the zero state.
    perplexity: exp of the mean of both mean losses.
    predictions: of one direction, over which the perplexities are means.
    tokens_per_second: smoothed speed of training.
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


_INTEGERS = ("step", "tokens", "predictions")


def append_row(path: Path, row: EvaluationRow) -> None:
    """Append a line, synced to the disk. For infinity and NaN, which JSON lacks, null is written.

    path: of metrics.jsonl.
    row: the evaluation.

    Raises CheckpointError if it can't be written.
    """
    record = {name: value if math.isfinite(value) else None for name, value in row._asdict().items()}
    with writing(path, CheckpointError), path.open("ab") as file:
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_metrics(path: Path) -> list[EvaluationRow]:
    """Return the evaluations in metrics.jsonl; none if there is no file. An incomplete last line is left out.

    path: of metrics.jsonl. null instead of a real number is read as infinity.

    Raises CheckpointError, which names the line, if the file can't be read or is damaged.
    """
    if path.exists() and not path.is_file():  # reading a pipe could wait for ever
        raise CheckpointError(Errors.METRICS_UNREADABLE.format(path=path, reason="a folder or a special file"))
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(Errors.METRICS_UNREADABLE.format(path=path, reason=error)) from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_row(parse_json(line)))
        except ValueError as error:
            if number < len(lines):
                message = Errors.METRICS_LINE.format(path=path, line=number, reason=error)
                raise CheckpointError(message) from error
    return rows


def cut_back(path: Path, step: int) -> list[EvaluationRow]:
    """Remove the evaluations after a step, and an incomplete last line, before a run continues from that step.

    path: of metrics.jsonl; it need not exist.
    step: of the checkpoint; -1 removes all.

    Returns the evaluations that are left.
    Raises CheckpointError if the file can't be read or written.
    """
    rows = [row for row in read_metrics(path) if row.step <= step]
    if not path.exists():
        return rows
    with replacing(path, CheckpointError) as temporary:
        temporary.touch()
        for row in rows:
            append_row(temporary, row)
    return rows


def _row(record: object) -> EvaluationRow:
    if not isinstance(record, dict):
        raise ValueError(f"{shown(record)} is no object")
    values: dict[str, Any] = {}
    for name in EvaluationRow._fields:
        if name not in record:
            raise ValueError(f"{name} is missing")
        value = record[name]
        is_integer = name in _INTEGERS
        if value is None and not is_integer:
            value = math.inf
        if isinstance(value, bool) or not isinstance(value, int if is_integer else (int, float)):
            raise ValueError(f"{name} is {shown(value)}")
        try:
            values[name] = value if is_integer else float(value)
        except OverflowError:
            raise ValueError(f"{name} is {shown(value)}") from None
    return EvaluationRow(**values)
