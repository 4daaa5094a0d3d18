"""What `elmo pretrain` shows on the way."""

import math
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spacy.training.loggers import setup_table
from tqdm import tqdm

from ..pretraining.evaluating import EvaluationRow, Reporter
from ..pretraining.folder import Run
from .console import TerminalPrinter, give_up, quoted
from .shared import shown_bar

_LOST = (AttributeError, OSError, ValueError)  # by streams that are None, closed pipes or full disks, and closed files
_WIDTHS = {"E": 5, "#": 7, "Tokens": 13, "": 12, "PPL fwd": 7, "PPL bwd": 7, "PPL": 7, "Rate": 9, "Tokens/s": 8}


class ConsoleReporter(Reporter):
    """Prints a row for each evaluation, as `spacy train` does, and a bar; nothing more once its output is closed."""

    def __init__(self, language: str | None = None) -> None:
        self._language = language
        self._loss, self._begun, self._lost = "loss", False, False
        self._run: Run | None = None
        self._bars: dict[str, tqdm[None]] = {}
        self._printer = TerminalPrinter(no_print=True)

    def start(self, run: Run, warnings: Sequence[str]) -> None:
        self._loss = "sampled loss" if run.config.training.softmax.kind == "sampled" else "loss"
        self._run = run
        coverage = run.vocabulary.coverage
        covered = "" if coverage is None else f", {coverage:.2%} of the training text's tokens"
        rows = []
        for name, source, corpus in run.texts:
            rows.append((name, f"{source}: {len(corpus):,} sentences, {corpus.n_tokens:,} tokens"))
        if (scored := run.config.evaluation.sentences) < len(run.heldout):
            rows.append(("scored during the run", f"{scored:,} held-out sentences"))
        rows += [
            ("vocabulary", f"{len(run.vocabulary):,} words{covered}"),
            ("biLM", f"{run.config.bilm.n_parameters:,} parameters"),
            ("read by", run.compatible_with),
            ("length", f"{run.total_tokens:,} tokens of one direction"),
            ("processes", str(run.processes)),
        ]
        self.message(self._printer.table(rows))
        for _, source, corpus in run.texts:
            report = corpus.meta.report
            if report.n_bad:
                bad = "\n".join(map(str, report.bad))
                self.message(self._printer.warn(f"{source}: {report.n_bad:,} bad lines were left out", bad))
        for warning in warnings:
            self.message(self._printer.warn(warning))

    def resumed(self, step: int, tokens: int) -> None:
        self.message(self._printer.info(f"going on after step {step:,}, {tokens:,} tokens"))

    def step(
        self, step: int, tokens: int, total_tokens: int, loss: float, rate: float, tokens_per_second: float
    ) -> None:
        status = f"step {step:,}, {self._loss} {loss:.3f}, rate {rate:.2g}"
        self._move("pretraining", tokens, total_tokens, status, unit="tok", unit_scale=True)

    def evaluating(self, scored: int, sentences: int) -> None:
        self._move("evaluating", scored, sentences, unit=" sentences")

    def _move(self, name: str, done: int, total: int, status: str = "", **options: Any) -> None:
        with suppress(*_LOST):
            if name not in self._bars:
                self._bars[name] = shown_bar(60, total=total, desc=name, leave=False, initial=done, **options)
            self._bars[name].set_postfix_str(status, refresh=False)
            self._bars[name].update(done - self._bars[name].n)
            if done >= total:
                self._bars.pop(name).close()

    def evaluated(self, row: EvaluationRow) -> None:
        names = {name or ("Loss sampled" if "sampled" in self._loss else "Loss"): n for name, n in _WIDTHS.items()}
        header, widths, aligns = setup_table(cols=list(names), widths=list(names.values()))
        if not self._begun:
            self._begun = True
            self.message(self._printer.row(header, widths=widths, spacing=2, aligns=aligns))
            self.message(self._printer.row(["-" * width for width in widths], spacing=2))
        perplexities = (row.perplexity_forward, row.perplexity_backward, row.perplexity)
        cells = [f"{row.epochs:.2f}", str(row.step), f"{row.tokens:,}", _known(row.loss, ".3f")]
        cells += [f"{value:.2f}" for value in perplexities]
        cells += [f"{row.rate:.2g}", _known(row.tokens_per_second, ",.0f")]
        self.message(self._printer.row(cells, widths=widths, spacing=2, aligns=aligns))

    def message(self, text: str) -> None:
        if not self._lost:
            try:
                tqdm.write(text, file=sys.stdout)
                sys.stdout.flush()
            except _LOST:
                self._lost = True
                give_up()

    def done(self, output: Path, best: float | None, stopped_by: int | None) -> None:
        self.close()
        if stopped_by is not None:
            name = signal.Signals(stopped_by).name
            self.message(self._printer.warn(f"stopped by {name}: the same command, without --restart, goes on"))
            return
        if best is None:
            self.message(self._printer.warn(f"{output}: the held-out perplexity was never a finite number"))
            return
        self.message(self._printer.good(f"{output}: lowest held-out perplexity on the way {best:.2f}"))
        if self._run is not None and self._run.compatible_with:
            self.message(f"options.json and weights.hdf5 are read by {self._run.compatible_with}")
        language = "" if self._language is None else f" --lang {self._language}"
        self.message(f"python -m spacy elmo evaluate {quoted(output / 'model-best')} TEXT{language}")

    def close(self) -> None:
        for bar in self._bars.values():
            with suppress(*_LOST):
                bar.close()


def _known(value: float, form: str) -> str:
    """Return a formatted number, or "-" if it is not known before the first update."""
    return format(value, form) if math.isfinite(value) else "-"
