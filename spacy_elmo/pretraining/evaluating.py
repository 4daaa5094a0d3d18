"""Evaluation on the way: scores held-out sentences, and writes what a person or another program wants of it."""

from pathlib import Path

import numpy as np

from .config import PretrainConfig
from .curve import draw_curve
from .metrics import METRICS, EvaluationRow, append_row, read_metrics
from .model_card import write_card
from .prepared import PreparedCorpus
from .reporting import Reporter
from .run_facts import CardFacts, RunFacts, TextFacts
from .run_folder import BEST, LAST, Run
from .score import Score
from .scoring import score_text
from .trainer import Trainer


class Evaluator:
    """Scores the trainer's model on a fixed selection of held-out sentences, and writes model folders.

    facts: of the run, for reports and the model card.
    """

    def __init__(self, config: PretrainConfig, trainer: Trainer, run: Run, output: Path, reporter: Reporter) -> None:
        self.config, self.trainer, self.output, self.reporter = config, trainer, output, reporter
        self.heldout = run.heldout
        chosen = np.random.default_rng(1).permutation(len(run.heldout))[: config.evaluation.sentences]
        self.chosen = np.sort(chosen).tolist()
        cut_off = config.paths.heldout is None
        self.facts = RunFacts(
            _text(config.paths.train, run.train, whole=not cut_off),
            _text(config.paths.heldout or config.paths.train, run.heldout, whole=not cut_off),
            len(run.vocabulary),
            run.vocabulary.coverage,
            sum(parameter.numel() for parameter in trainer.parameters),
            trainer.total_steps * trainer.tokens_an_update,
            trainer.group.size,
        )

    def evaluate(self, seconds: float, loss: float, speed: float, best: float) -> float:
        """Score the selection, write model-last, model-best where it is better than `best`, and the metrics."""
        trainer = self.trainer
        score = score_text(trainer.model, [self.heldout.sentence(number) for number in self.chosen])
        perplexities = score.perplexities
        row = EvaluationRow(
            step=trainer.step_number,
            tokens=trainer.tokens,
            epochs=trainer.tokens / trainer.tokens_an_epoch,
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
            self._write(self.output / name, row.seconds, score)
        append_row(self.output / METRICS, row)
        draw_curve(self.output / "curve.png", read_metrics(self.output / METRICS))
        self.reporter.evaluated(row)
        return perplexities.mean

    def finish(self, seconds: float) -> None:
        """At the end: score all of the held-out text for model-last's card."""
        if self.trainer.group.first and len(self.chosen) < len(self.heldout):
            score = score_text(self.trainer.model, self.heldout)
            self._write(self.output / LAST, seconds, score)
            of_all = score.perplexities
            self.reporter.message(
                f"all {score.sentences:,} held-out sentences: perplexity {of_all.mean:.2f} (forward "
                f"{of_all.forward:.2f}, backward {of_all.backward:.2f})"
            )

    def _write(self, folder: Path, seconds: float, score: Score) -> None:
        trainer = self.trainer
        trainer.model.save(folder)
        epochs = trainer.tokens / trainer.tokens_an_epoch
        facts = CardFacts(self.config, self.facts, trainer.step_number, trainer.tokens, epochs, seconds, score)
        write_card(folder, facts)


def _text(source: str, corpus: PreparedCorpus, whole: bool) -> TextFacts:
    report, sha256 = corpus.meta.report, corpus.meta.sha256 if whole else None
    return TextFacts(source, len(corpus), corpus.n_tokens, sha256, report.n_bad, tuple(report.bad))
