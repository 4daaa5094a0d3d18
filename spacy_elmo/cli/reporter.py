"""What `elmo pretrain` shows on the way."""

import math
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy.training.loggers import setup_table
from tqdm import tqdm

from ..pretraining.evaluating import EvaluationRow, Reporter
from ..pretraining.folder import Run
from .console import TerminalPrinter, give_up, quoted

EVERY = 60.0  # seconds
_SPACING = 2
_WIDTHS = {"E": 5, "#": 7, "Tokens": 13, "": 12, "PPL fwd": 7, "PPL bwd": 7, "PPL": 7, "Rate": 9, "Tokens/s": 8}


def same_command(restart: bool) -> str:
    """Return what messages call the command that resumes a run. restart: whether the run was started with --restart."""
    return "the same command without --restart" if restart else "the same command"


class ConsoleReporter(Reporter):
    """Prints a row for each evaluation, as `spacy train` does, and a progress bar.

    A run must not end because its output is closed. If that happens, nothing else is printed.

    restart: whether the run was started with --restart, which the command that resumes it must not have.
    language: of the run's texts; None: their words are separated by blanks.
    every: seconds between lines that replace the bar if standard error is not a terminal.
    """

    def __init__(self, *, restart: bool = False, language: str | None = None, every: float = EVERY) -> None:
        self._restart, self._language = restart, language
        self._every, self._told = every, time.monotonic()
        self._loss, self._begun, self._lost = "loss", False, False
        self._run: Run | None = None
        self._bar: tqdm | None = None
        self._scored: tqdm | None = None
        self._printer = TerminalPrinter(no_print=True)

    def start(self, run: Run, warnings: Sequence[str]) -> None:
        """Print texts, vocabulary and sizes, and the warnings."""
        self._loss = "sampled loss" if run.config.training.softmax.kind == "sampled" else "loss"
        self._run = run
        scored = "" if run.scored is None else f"; {run.scored:,} are scored during the run"
        coverage = run.vocabulary.coverage
        covered = "" if coverage is None else f", {coverage:.2%} of the training text's tokens"
        rows = [
            (name, f"{source}: {len(corpus):,} sentences, {corpus.n_tokens:,} tokens")
            for name, source, corpus in run.texts
        ]
        rows[-1] = (rows[-1][0], rows[-1][1] + scored)
        rows += [
            ("vocabulary", f"{len(run.vocabulary):,} words{covered}"),
            ("biLM", f"{run.config.bilm.n_parameters:,} parameters"),
            ("read by", run.readers),
            ("length", f"{run.total_tokens:,} tokens of one direction"),
            ("processes", str(run.processes)),
        ]
        self._write(self._printer.table(rows, max_col=100))
        for _, source, corpus in run.texts:
            report = corpus.meta.report
            if report.n_bad:
                self._write(self._printer.warn(f"{source}: {report.n_bad:,} bad lines were left out"))
                self._write("".join(f"  {line}\n" for line in report.bad))
        for warning in warnings:
            self._write(self._printer.warn(warning))

    def resumed(self, step: int, tokens: int) -> None:
        """Print the step of the checkpoint."""
        self._write(self._printer.info(f"going on after step {step:,}, {tokens:,} tokens"))

    def step(
        self, step: int, tokens: int, total_tokens: int, loss: float, rate: float, tokens_per_second: float
    ) -> None:
        """Move the bar, or print a line if the last one is `every` seconds old."""
        if self._bar is None:
            self._bar = _bar(total_tokens, "tok", initial=tokens, unit_scale=True)
        status = f"{self._loss} {loss:.3f}, rate {rate:.2g}"
        if not self._bar.disable:
            self._bar.set_postfix_str(status, refresh=False)
            self._bar.update(tokens - self._bar.n)
        elif self._due():
            left = tqdm.format_interval((total_tokens - tokens) / max(tokens_per_second, 1e-9))
            share = tokens / max(1, total_tokens)
            speed = f"{tokens_per_second:,.0f} tokens/s"
            self._write(f"step {step:,}, {tokens:,} tokens ({share:.1%}), {speed}, {left} left, {status}")

    def evaluating(self, scored: int, sentences: int) -> None:
        """Move a bar of the evaluation, or print a line if the last one is `every` seconds old."""
        if self._scored is None:
            self._scored = _bar(sentences, " sentences", desc="evaluating")
        if not self._scored.disable:
            self._scored.update(scored - self._scored.n)
        elif self._due():
            self._write(f"evaluating: {scored:,} of {sentences:,} held-out sentences ({scored / sentences:.1%})")
        if scored == sentences:
            self._close_scored()

    def evaluated(self, row: EvaluationRow) -> None:
        """Print a row of the table, the first time with its header."""
        names = {name or ("Loss sampled" if "sampled" in self._loss else "Loss"): n for name, n in _WIDTHS.items()}
        header, widths, aligns = setup_table(cols=list(names), widths=list(names.values()))
        if not self._begun:
            self._begun = True
            self._write(self._printer.row(header, widths=widths, spacing=_SPACING, aligns=aligns))
            self._write(self._printer.row(["-" * width for width in widths], spacing=_SPACING))
        perplexities = (row.perplexity_forward, row.perplexity_backward, row.perplexity)
        cells = [f"{row.epochs:.2f}", str(row.step), f"{row.tokens:,}", _known(row.loss, ".3f")]
        cells += [f"{value:.2f}" for value in perplexities]
        cells += [f"{row.rate:.2g}", _known(row.tokens_per_second, ",.0f")]
        self._write(self._printer.row(cells, widths=widths, spacing=_SPACING, aligns=aligns))

    def message(self, text: str) -> None:
        """Print a message."""
        self._write(text)

    def done(self, output: Path, best: float | None, stopped_by: int | None) -> None:
        """Print how the run ended and what to do next."""
        self.close()
        if stopped_by is not None:
            name = signal.Signals(stopped_by).name
            command = same_command(self._restart)
            self._write(self._printer.warn(f"stopped by {name}: {command} goes on from there"))
            return
        if best is None:
            self._write(self._printer.warn(f"{output}: the held-out perplexity was never a finite number"))
            return
        scored = None if self._run is None else self._run.scored
        of = "" if scored is None else f" (of {scored:,} sentences)"
        self._write(self._printer.good(f"{output}: lowest held-out perplexity on the way {best:.2f}{of}"))
        if self._run is not None and self._run.readers:
            self._write(f"options.json and weights.hdf5 are read by {self._run.readers}")
        language = "" if self._language is None else f" --lang {self._language}"
        self._write(f"python -m spacy elmo evaluate {quoted(output / 'model-best')} TEXT{language}")

    def close(self) -> None:
        """Remove the progress bars."""
        self._close_scored()
        if self._bar is not None:
            self._bar.close()

    def _close_scored(self) -> None:
        if self._scored is not None:
            self._scored.close()
            self._scored = None

    def _due(self) -> bool:
        """Whether it is time for a line in place of a bar; if so, start to wait for the next one."""
        now = time.monotonic()
        if now - self._told < self._every:
            return False
        self._told = now
        return True

    def _write(self, text: str) -> None:
        if self._lost:
            return
        try:
            # tqdm prints above the bar
            tqdm.write(text, file=sys.stdout)
            sys.stdout.flush()
        except (AttributeError, OSError, ValueError):  # None, a full disk or a closed pipe, a closed file
            self._lost = True
            give_up()


def _bar(total: int, unit: str, **options: Any) -> tqdm:
    """Return a progress bar, which is hidden if standard error is closed (None) or not a terminal."""
    return tqdm(total=total, unit=unit, leave=False, disable=None if sys.stderr else True, **options)


def _known(value: float, form: str) -> str:
    """Return a formatted number, or "-" if it is not known before the first update."""
    return format(value, form) if math.isfinite(value) else "-"
