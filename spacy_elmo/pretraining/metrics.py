"""The evaluations of a run: metrics.jsonl, one JSON object a line."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CheckpointError, shown
from ..formats.atomic import replacing, writing
from ..formats.characters import MAX_CHARACTERS
from ..formats.options import BiLMOptions
from ..formats.strict_json import parse_json
from ..formats.text import BadLine
from .scoring import Score

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
        raise CheckpointError(
            f"{path}: can't be read ({'a folder or a special file'}). Expected the evaluations of a run, one JSON "
            "object a line."
        )
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(
            f"{path}: can't be read ({error}). Expected the evaluations of a run, one JSON object a line."
        ) from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_row(parse_json(line)))
        except ValueError as error:
            if number < len(lines):
                message = (
                    f"{path}: line {number} is not the row of an evaluation ({error}). Expected one JSON object a "
                    "line, as the run wrote it: correct that line, or move the file away."
                )
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


@dataclass(frozen=True)
class TextFacts:
    """A text that a run reads.

    source: file, folder or pattern, as in the settings.
    sentences: their number.
    tokens: number of words.
    sha256: of the sentences, a line each with words separated by blanks; None if it is a part of another text.
    n_bad: lines that were left out, because they can't be used.
    bad: the first ten of these.
    """

    source: str
    sentences: int
    tokens: int
    sha256: str | None = None
    n_bad: int = 0
    bad: Sequence[BadLine] = ()


class InitFacts(NamedTuple):
    """The biLM that a run tunes.

    name: paths.init.
    sha256: of its weights; None if run.json has none.
    language: that its model card names; None if it names none.
    """

    name: str
    sha256: str | None
    language: str | None


class RunFacts(NamedTuple):
    """What is known about a run at its start.

    train, heldout: its texts.
    words: size of the vocabulary.
    coverage: share of the training text's tokens that are in the vocabulary; None if it is unknown.
    parameters: of the biLM, without its softmax.
    total_tokens: length of the run, in tokens of one direction, `</S>` counted.
    processes: their number.
    sampled: whether the training loss is over sampled words, so that its exponential is no perplexity.
    readers: which programs can read the biLM, as a line.
    max_characters: positions per word of the biLM, two more than the bytes that it reads.
    cut_share: share of the training text's words with more bytes than that.
    heldout_unknown: share of the held-out text's words that are not in the vocabulary.
    init: the biLM that it tunes; None for one that begins with random weights.
    scored: held-out sentences that are scored during the run; None: all.
    """

    train: TextFacts
    heldout: TextFacts
    words: int
    coverage: float | None
    parameters: int
    total_tokens: int
    processes: int = 1
    sampled: bool = False
    readers: str = ""
    max_characters: int = MAX_CHARACTERS
    cut_share: float = 0.0
    heldout_unknown: float = 0.0
    init: InitFacts | None = None
    scored: int | None = None


class CardFacts(NamedTuple):
    """What a model card tells.

    settings: all settings of the run, in the format of a config file.
    options: sizes of the network.
    language: of the spaCy tokenizer; None if words were separated by blanks.
    run: what is known about the run.
    step: updates so far.
    tokens: tokens of one direction so far, `</S>` counted.
    epochs: the same as a multiple of the training text.
    seconds: of training and evaluation so far.
    score: of this model on held-out text, zero state.
    """

    settings: str
    options: BiLMOptions
    language: str | None
    run: RunFacts
    step: int
    tokens: int
    epochs: float
    seconds: float
    score: Score


class Reporter:
    """Is called during a run. This one does nothing; subclasses override the methods of what they show.

    `start` comes first, then `resumed` if the run continues from a checkpoint, then `step` for each update,
    `evaluating` during an evaluation and `evaluated` after it, and `message` at any time. `done` comes at the end if
    there was no error, `close` always.
    """

    def start(self, facts: RunFacts, warnings: Sequence[str]) -> None:
        """Training is about to start: texts and vocabulary are ready.

        facts: what is known about the run.
        warnings: what is unusual about it, though it may be intended.
        """

    def resumed(self, step: int, tokens: int) -> None:
        """The run continues from a checkpoint. step, tokens: of that checkpoint."""

    def step(
        self, step: int, tokens: int, total_tokens: int, loss: float, rate: float, tokens_per_second: float
    ) -> None:
        """An update was made.

        step: updates so far.
        tokens: tokens of one direction so far, `</S>` counted.
        total_tokens: length of the run.
        loss: smoothed training loss, in nats.
        rate: learning rate.
        tokens_per_second: smoothed speed.
        """

    def evaluating(self, scored: int, sentences: int) -> None:
        """Some held-out sentences were scored, of the selection or, at the end of a run, of all.

        scored: sentences that were scored so far.
        sentences: number that will be scored.
        """

    def evaluated(self, row: EvaluationRow) -> None:
        """The held-out sentences were scored. row: the result."""

    def message(self, text: str) -> None:
        """Something else happened that a person should know. text: a sentence."""

    def done(self, output: Path, best: float | None, stopped_by: int | None) -> None:
        """The run has ended, or was stopped by a signal.

        output: its folder.
        best: lowest held-out perplexity; None if there was no evaluation.
        stopped_by: number of the signal; None if the run has ended.
        """

    def close(self) -> None:
        """No other method will be called: the run has ended, also after an error."""
