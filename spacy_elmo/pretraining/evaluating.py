"""Evaluation during a run: scores held-out sentences, and writes models, metrics and the plot."""

import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import CheckpointError, WeightsError
from ..formats.atomic import replacing, writing
from .card import write_card
from .checkpoint import CHECKPOINTS, Stop
from .folder import CURVE, METRICS, Run
from .language_model import BEST, LAST, LanguageModel
from .scoring import Score, score_text
from .trainer import Trainer

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
        """The run has ended, or was stopped by a signal. best, stopped_by: as in `Outcome`."""

    def close(self) -> None:
        """No other method will be called: the run has ended, also after an error."""


WORSE_THAN_CHANCE = 2.0  # times the number of words: random weights may be a little above one


class Evaluator:
    """Scores the trainer's model on a fixed selection of held-out sentences, and writes model folders."""

    def __init__(self, trainer: Trainer, run: Run, output: Path, reporter: Reporter, stop: Stop) -> None:
        self.trainer, self.run, self.output, self.reporter, self.stop = trainer, run, output, reporter, stop
        chosen = np.random.default_rng(1).permutation(len(run.heldout))[: run.config.evaluation.sentences]
        self.chosen = np.sort(chosen).tolist()
        self._told_worse = False

    def evaluate(self, seconds: float, loss: float, speed: float, best: float) -> float:
        """Score the selection, and write model-last, the metrics and the plot; model-best too if it is the best so far.

        Returns the mean held-out perplexity. Before it writes, it raises CheckpointError if that is not finite, and
        Stopped after a signal.
        """
        trainer, step = self.trainer, self.trainer.step_number
        sentences = [self.run.heldout.sentence(number) for number in self.chosen]
        try:
            score = self._score(trainer.model_to_keep, sentences, len(sentences))
        except WeightsError as error:  # a loss is not finite
            if not step:
                raise
            raise diverged(f"the held-out perplexity after step {step}", self.output) from error
        perplexities = score.perplexities
        if step and not math.isfinite(perplexities.mean):
            raise diverged(f"the held-out perplexity after step {step}", self.output)
        row = EvaluationRow(
            step=step,
            tokens=trainer.tokens,
            epochs=trainer.tokens / trainer.tokens_per_epoch,
            seconds=seconds,
            loss=loss,
            rate=trainer.rate,
            perplexity_forward=perplexities.forward,
            perplexity_backward=perplexities.backward,
            perplexity=perplexities.mean,
            predictions=score.predictions,
            tokens_per_second=speed,
        )
        for name in [LAST, BEST] if perplexities.mean < best else [LAST]:
            self._write(self.output / name, seconds, score)
        append_row(self.output / METRICS, row)
        draw_curve(self.output / CURVE, read_metrics(self.output / METRICS))
        self.reporter.evaluated(row)
        words = len(self.run.vocabulary)
        if step and perplexities.mean > WORSE_THAN_CHANCE * words and not self._told_worse:
            self._told_worse = True
            self.reporter.message(
                f"the held-out perplexity after step {step} is {perplexities.mean:,.0f}, worse than the {words:,} of "
                "equal probabilities for all words of the vocabulary. Probably training.optimizer.learning_rate "
                "is too high, or the text too short for so many epochs: start a new run in another output folder "
                "with a lower one."
            )
        return perplexities.mean

    def finish(self, seconds: float) -> None:
        """Score all held-out sentences at the end, and write the cards again. Raises Stopped; then call it again."""
        heldout = self.run.heldout
        if len(self.chosen) == len(heldout):
            return
        self.reporter.message(f"scoring all {len(heldout):,} held-out sentences for the model cards")
        score = self._score(self.trainer.model_to_keep, heldout, len(heldout))
        self._write(self.output / LAST, seconds, score)
        self._tell(LAST, score)
        rows = read_metrics(self.output / METRICS)
        best = min(rows, key=lambda row: row.perplexity) if rows else None
        if best is not None and (self.output / BEST).exists():
            if best.step != self.trainer.step_number:
                score = self._score(LanguageModel.load(self.output / BEST), heldout, len(heldout))
                self._tell(BEST, score)
            write_card(self.output / BEST, self.run, best.step, best.seconds, score)

    def _score(self, model: LanguageModel, sentences: Iterable[list[str]], n_sentences: int) -> Score:
        scored = 0

        def tell(more: int) -> None:
            nonlocal scored
            scored += more
            self.reporter.evaluating(scored, n_sentences)

        self.reporter.evaluating(0, n_sentences)
        with self.stop.at_once():
            return score_text(model, sentences, tell=tell)

    def _write(self, folder: Path, seconds: float, score: Score) -> None:
        self.trainer.model_to_keep.save(folder)
        write_card(folder, self.run, self.trainer.step_number, seconds, score)

    def _tell(self, name: str, score: Score) -> None:
        perplexities = score.perplexities
        self.reporter.message(
            f"{name} on all {score.sentences:,} held-out sentences: perplexity {perplexities.mean:.2f} (forward "
            f"{perplexities.forward:.2f}, backward {perplexities.backward:.2f})"
        )


def diverged(what: str, output: Path) -> CheckpointError:
    return CheckpointError(
        f"{what} is not finite: training has diverged. Start a new run in another output folder, with a lower "
        f"training.optimizer.learning_rate. If there are checkpoints in {output / CHECKPOINTS}, they are "
        "of earlier steps, but their weights may already be too large."
    )
