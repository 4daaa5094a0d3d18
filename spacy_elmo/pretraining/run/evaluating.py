"""Evaluation during a run: scores held-out sentences, and writes models, their cards, metrics and the plot."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import CheckpointError, ElmoError, Errors, WeightsError
from ...formats.readers import readers_told
from ...modules.card_language import card_language
from ..model.files import BEST, LAST, OPTIONS, bilm_folder
from ..model.language_model import LanguageModel
from ..scoring import Score, score_text
from ..settings.sections import PathSettings
from ..text.prepared import PreparedCorpus
from ..text.word_shares import cut_share, unknown_share
from ..training.trainer import Trainer
from .card import write_card
from .checkpoint import CHECKPOINTS
from .curve import CURVE, draw_curve
from .facts import CardFacts, InitFacts, RunFacts, TextFacts
from .folder import Run
from .metrics import METRICS, EvaluationRow, append_row, read_metrics
from .reporting import Reporter
from .stopping import Stop

WORSE_THAN_CHANCE = 2.0  # times the number of words: random weights may be a little above one


class CardContext(NamedTuple):
    """What all model cards of a run tell beside the scores.

    settings: all settings, in the format of a config file.
    language: of the spaCy tokenizer; None if words were separated by blanks.
    facts: texts, sizes and length of the run.
    """

    settings: str
    language: str | None
    facts: RunFacts


def facts_of(paths: PathSettings, run: Run, trainer: Trainer, evaluated: int) -> RunFacts:
    """Return what is known about a run at its start.

    paths: its files.
    run: what it reads.
    trainer: what it trains.
    evaluated: held-out sentences that it scores during the run, if there are so many.
    """
    cut_off, options = paths.heldout is None, trainer.model.bilm.options
    return RunFacts(
        _text(paths.train, run.train, complete=not cut_off),
        _text(paths.heldout or paths.train, run.heldout, complete=not cut_off),
        len(run.vocabulary),
        run.vocabulary.coverage,
        options.n_parameters,
        trainer.total_steps * trainer.tokens_per_update,
        trainer.group.size,
        trainer.settings.softmax.kind == "sampled",
        readers_told(options, dict(trainer.model.bilm.named_parameters())),
        options.max_characters,
        cut_share(run.train, options.max_characters),
        unknown_share(run.heldout, run.vocabulary),
        None if paths.init is None else InitFacts(paths.init, run.init, _language_of(paths.init)),
        evaluated if evaluated < len(run.heldout) else None,
    )


def _language_of(init: str) -> str | None:
    try:
        return card_language(str(bilm_folder(init) / OPTIONS))
    except ElmoError:  # a biLM whose files were removed after the run began
        return None


class Evaluator:
    """Scores the trainer's model on a fixed selection of held-out sentences, and writes model folders.

    trainer: its model is scored, or that of the average of the weights.
    heldout: the held-out text.
    n_sentences: number of sentences that are scored during the run. `finish` scores all.
    context: what the model cards tell beside the scores.
    output: folder of the run.
    reporter: is told of each evaluation.
    stop: its first signal ends an evaluation at once.
    """

    def __init__(
        self,
        trainer: Trainer,
        heldout: PreparedCorpus,
        n_sentences: int,
        context: CardContext,
        output: Path,
        reporter: Reporter,
        stop: Stop,
    ) -> None:
        self.trainer, self.heldout, self.context = trainer, heldout, context
        self.output, self.reporter, self.stop = output, reporter, stop
        chosen = np.random.default_rng(1).permutation(len(heldout))[:n_sentences]
        self.chosen = np.sort(chosen).tolist()
        self._told_worse = False

    def evaluate(self, seconds: float, loss: float, speed: float, best: float) -> float:
        """Score the selection, and write model-last, the metrics and the plot; model-best too if it is the best so far.

        seconds: of training and evaluation so far.
        loss: smoothed training loss, in nats.
        speed: tokens per second.
        best: lowest perplexity of earlier evaluations.

        Returns the held-out perplexity, the mean of both directions.
        Raises CheckpointError if the perplexity of a trained model is not finite, and Stopped if a signal came before
        the sentences were scored. It then writes nothing.
        """
        trainer = self.trainer
        sentences = [self.heldout.sentence(number) for number in self.chosen]
        try:
            score = self._score(trainer.model_to_keep, sentences, len(sentences))
        except WeightsError as error:  # a loss is not finite
            if trainer.step_number == 0:
                raise
            raise self._diverged() from error
        perplexities = score.perplexities
        if trainer.step_number and not math.isfinite(perplexities.mean):
            raise self._diverged()
        row = EvaluationRow(
            step=trainer.step_number,
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
            self._write(self.output / name, row.seconds, score)
        append_row(self.output / METRICS, row)
        draw_curve(self.output / CURVE, read_metrics(self.output / METRICS))
        self.reporter.evaluated(row)
        self._tell_if_worse_than_chance(perplexities.mean)
        return perplexities.mean

    def _tell_if_worse_than_chance(self, perplexity: float) -> None:
        """Tell once that a trained model is worse than equal probabilities, whose perplexity is the number of words."""
        words, step = len(self.trainer.model.vocabulary.words), self.trainer.step_number
        if step and perplexity > WORSE_THAN_CHANCE * words and not self._told_worse:
            self._told_worse = True
            self.reporter.message(Errors.WORSE_THAN_CHANCE.format(step=step, got=perplexity, words=words))

    def _diverged(self) -> CheckpointError:
        what = f"the held-out perplexity after step {self.trainer.step_number}"
        return CheckpointError(Errors.DIVERGED.format(what=what, path=self.output / CHECKPOINTS))

    def finish(self, seconds: float) -> None:
        """Score all held-out sentences at the end of a run, and write the cards of model-last and model-best again.

        It does nothing if the selection is the complete held-out text.

        seconds: of training and evaluation.

        Raises Stopped if a signal came before the sentences were scored. Call it again in the resumed run.
        """
        if len(self.chosen) == len(self.heldout):
            return
        self.reporter.message(f"scoring all {len(self.heldout):,} held-out sentences for the model cards")
        score = self._score(self.trainer.model_to_keep, self.heldout, len(self.heldout))
        self._write(self.output / LAST, seconds, score)
        self._tell(LAST, score)
        rows = read_metrics(self.output / METRICS)
        best = min(rows, key=lambda row: row.perplexity) if rows else None
        if best is not None and (self.output / BEST).exists():
            if best.step != self.trainer.step_number:
                score = self._score(LanguageModel.load(self.output / BEST), self.heldout, len(self.heldout))
                self._tell(BEST, score)
            self._card(self.output / BEST, best.step, best.seconds, score)

    def _score(self, model: LanguageModel, sentences: Iterable[list[str]], n_sentences: int) -> Score:
        """Score sentences, and tell the reporter how many are finished. Raises Stopped."""
        scored = 0

        def tell(more: int) -> None:
            nonlocal scored
            scored += more
            self.reporter.evaluating(scored, n_sentences)

        self.reporter.evaluating(0, n_sentences)
        with self.stop.at_once():
            return score_text(model, sentences, tell=tell)

    def _tell(self, name: str, score: Score) -> None:
        perplexities = score.perplexities
        self.reporter.message(
            f"{name} on all {score.sentences:,} held-out sentences: perplexity {perplexities.mean:.2f} (forward "
            f"{perplexities.forward:.2f}, backward {perplexities.backward:.2f})"
        )

    def _write(self, folder: Path, seconds: float, score: Score) -> None:
        self.trainer.model_to_keep.save(folder)
        self._card(folder, self.trainer.step_number, seconds, score)

    def _card(self, folder: Path, step: int, seconds: float, score: Score) -> None:
        tokens = step * self.trainer.tokens_per_update
        epochs = tokens / self.trainer.tokens_per_epoch
        options = self.trainer.model.bilm.options
        settings, language, run = self.context
        write_card(folder, CardFacts(settings, options, language, run, step, tokens, epochs, seconds, score))


def _text(source: str, corpus: PreparedCorpus, complete: bool) -> TextFacts:
    report, sha256 = corpus.meta.report, corpus.meta.sha256 if complete else None
    return TextFacts(source, len(corpus), corpus.n_tokens, sha256, report.n_bad, tuple(report.bad))
