"""Pretraining from the first update, or from a checkpoint, to the last one."""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import CheckpointError, Errors, SettingsError
from ...formats.atomic import writing
from ...formats.folders.lock import folder_lock
from ..model.language_model import LanguageModel
from ..settings.config import PretrainConfig
from ..settings.config_file import text_without_folders
from ..settings.sections import EvaluationSettings
from ..text.read_ahead import check_readers
from ..training.allocation import enough_memory, reuse_memory
from ..training.distributed import Group, processes
from ..training.trainer import Trainer
from .checkpoint import CHECKPOINTS, Checkpoints, from_text
from .evaluating import CardContext, Evaluator, facts_of
from .folder import Run, has_checkpoint, open_run, reopen_run
from .metrics import METRICS, cut_back
from .progress import Progress
from .reporting import Reporter
from .start_warnings import start_warnings
from .starting import check_new_run, empty_model, starting_model
from .stopping import Stop, Stopped, asked_to_stop

SPEED_SMOOTHING = 0.9  # weight of earlier updates in the running mean of tokens per second
OWED = "owed"  # in a checkpoint whose evaluation was stopped


class Outcome(NamedTuple):
    """How a run ended.

    stopped_by: number of the signal that stopped it; None if it is finished.
    best: lowest held-out perplexity; None if there was no evaluation.
    """

    stopped_by: int | None
    best: float | None


def pretrain(config: PretrainConfig, output: Path, reporter: Reporter) -> Outcome:
    """Train a biLM, from the newest undamaged checkpoint in `output` if there is one.

    It writes to `output`: config.cfg, run.json, the prepared texts and the vocabulary at the start; checkpoints;
    model-last, model-best, metrics.jsonl and curve.png after each evaluation. A model folder holds options.json and
    weights.hdf5 in the official format, softmax.hdf5, vocabulary.txt and a model card.

    SIGINT, SIGTERM and SIGHUP make it write a checkpoint and return. A run that is killed and started again continues
    from its last checkpoint, and its weights at the end are bit by bit those of an uninterrupted run. With torchrun all
    processes call this function.

    config: all settings.
    output: folder of the run.
    reporter: is called during the run.

    Raises ElmoError if settings or files can't be used, or if the loss is not finite.
    """
    reuse_memory()
    with processes(config.training.device) as group, ExitStack() as resources:
        group.check_alike(config, SettingsError(Errors.PROCESS_SETTINGS.format(rank=group.rank)))
        run = None
        with group.together():
            check_readers(config.training.readers, config.training.streams // group.size)
            if group.first:
                if not has_checkpoint(output):
                    check_new_run(config.bilm, config.paths, config.vocabulary, config.training, output)
                with writing(output, CheckpointError):
                    output.mkdir(parents=True, exist_ok=True)
                resources.enter_context(folder_lock(output, CheckpointError))
                run = open_run(config, output)
        with group.together():
            run = run or reopen_run(config, output)
            with enough_memory(config.training):
                model = _model(config, run)
                trainer = Trainer(config.training, model, run.train, config.corpus.shuffle_block, group)
            facts = facts_of(config.paths, run, trainer, config.evaluation.sentences)
            context = CardContext(text_without_folders(config), config.corpus.language, facts)
        trainer.check_rounding()
        group.copy_first([*model.bilm.parameters(), *model.softmax.parameters()])
        # Until here there is nothing to save, so a signal ends the process at once.
        with asked_to_stop() as stop, trainer:
            evaluator = Evaluator(trainer, run.heldout, config.evaluation.sentences, context, output, reporter, stop)
            checkpoints = Checkpoints(output / CHECKPOINTS)
            loop = _Loop(config.evaluation, trainer, evaluator, checkpoints, output, reporter, stop, run.identity)
            reporter.start(facts, start_warnings(config.paths, config.training, facts))
            return loop.run(tuning=config.paths.init is not None)


def _model(config: PretrainConfig, run: Run) -> LanguageModel:
    if run.resumed:
        return empty_model(config.bilm, config.training.softmax, run.vocabulary)
    return starting_model(config.bilm, config.paths, config.training, run.vocabulary)


class _Loop:
    def __init__(
        self,
        settings: EvaluationSettings,
        trainer: Trainer,
        evaluator: Evaluator,
        checkpoints: Checkpoints,
        output: Path,
        reporter: Reporter,
        stop: Stop,
        identity: str,
    ) -> None:
        self.trainer, self.evaluator, self.checkpoints = trainer, evaluator, checkpoints
        self.output, self.reporter, self.stop, self.identity = output, reporter, stop, identity
        self.group: Group = trainer.group
        self.settings, self.progress = settings, Progress()
        self.stopped = 0  # number of the signal, in all processes
        self.owed = False  # whether a signal stopped the evaluation of this step
        self.speed = math.nan

    def run(self, tuning: bool) -> Outcome:
        """Train to the end of the run, or until a signal comes. tuning: whether the run started from a trained biLM."""
        trainer = self.trainer
        self._resume()
        if self.owed:
            self._evaluate()
        elif trainer.step_number == 0 and tuning and not trainer.frozen:
            self._score()  # the biLM before tuning
        if not self._ended():
            self.progress.finished = False  # the settings may have a longer run now
        elif self.progress.finished:
            what = "patience" if trainer.step_number < trainer.total_steps else "epochs or training.total_tokens"
            self.reporter.message(f"finished before: training.{what} would make it longer")
        while not self._ended() and not self.stopped:
            self.stopped = self.group.largest(self.stop.number or 0)
            if self.stopped:
                break
            self._step()
            number, last = trainer.step_number, trainer.step_number == trainer.total_steps
            if number % self.settings.every == 0 or last:
                self._evaluate()
            elif number % self.settings.checkpoint_every == 0:
                self._write_checkpoint()
        if not self.stopped and not self.progress.finished:
            self._finish()
        if self.stopped and trainer.step_number:
            self._write_checkpoint()
            self.reporter.message(f"stopped at step {trainer.step_number}")
        best = self.progress.best if math.isfinite(self.progress.best) else None
        self.reporter.done(self.output, best, self.stopped or None)
        return Outcome(self.stopped or None, best)

    def _resume(self) -> None:
        with self.group.together():
            latest = self.checkpoints.latest(self.reporter.message)
        got = "none" if latest is None else f"that of step {latest[0]}"
        problem = Errors.PROCESS_CHECKPOINT.format(path=self.checkpoints.folder, rank=self.group.rank, got=got)
        self.group.check_alike(got, CheckpointError(problem))
        if latest is None:
            with self.group.together():
                if self.group.first:
                    cut_back(self.output / METRICS, -1)
            return
        step, arrays = latest
        with self.group.together():
            if not np.array_equal(arrays.pop("run", np.empty(0)), from_text(self.identity)):
                problem = Errors.CHECKPOINT_PARTS.format(path=self.checkpoints.folder, problems="it is of another run")
                raise CheckpointError(problem)
            self.progress = Progress.pop_from(arrays)
            self.owed = arrays.pop(OWED, None) is not None
            self.trainer.restore(arrays, str(self.checkpoints.folder))
            if self.trainer.step_number != step:
                problem = f"the file is of step {step}, its contents of {self.trainer.step_number}"
                raise CheckpointError(Errors.CHECKPOINT_PARTS.format(path=self.checkpoints.folder, problems=problem))
            if self.group.first:
                # A row of the owed evaluation is there if a later process was killed just after it had written it.
                cut_back(self.output / METRICS, step - 1 if self.owed else step)
        self.reporter.resumed(step, self.trainer.tokens)

    def _step(self) -> None:
        trainer, progress = self.trainer, self.progress
        rate, start = trainer.rate, time.perf_counter()
        with enough_memory(trainer.settings):
            loss = trainer.step()
        seconds = time.perf_counter() - start
        if not math.isfinite(loss):  # so in all processes, since it is the sum of their losses
            with self.group.together():
                what = f"the loss of step {trainer.step_number}"
                raise CheckpointError(Errors.DIVERGED.format(what=what, path=self.checkpoints.folder))
        progress.add_update(loss, seconds)
        speed = trainer.tokens_per_update / seconds
        self.speed = speed if math.isnan(self.speed) else SPEED_SMOOTHING * self.speed + (1 - SPEED_SMOOTHING) * speed
        total = trainer.total_steps * trainer.tokens_per_update
        self.reporter.step(trainer.step_number, trainer.tokens, total, progress.loss, rate, self.speed)

    def _evaluate(self) -> None:
        """Evaluate after a step and write a checkpoint. If a signal stops it, the resumed run evaluates this step."""
        self._score()
        self.owed = bool(self.stopped)
        if not self.stopped:
            self._write_checkpoint()

    def _score(self) -> None:
        progress, start = self.progress, time.perf_counter()
        perplexity = self._in_first(
            lambda: self.evaluator.evaluate(progress.seconds, progress.loss, self.speed, progress.best)
        )
        progress.seconds += time.perf_counter() - start
        if not self.stopped:
            progress.add_evaluation(perplexity)

    def _finish(self) -> None:
        def work() -> float:
            self.evaluator.finish(self.progress.seconds)
            return 0.0

        self._in_first(work)
        if not self.stopped:
            self.progress.finished = True
            self._write_checkpoint()

    def _in_first(self, work: Callable[[], float]) -> float:
        """Work in the first process, and hand the result to all. If a signal stops it, all processes are stopped."""
        result = 0.0
        with self.group.together():
            if self.group.first:
                try:
                    result = work()
                except Stopped:
                    result = math.nan
        result = self.group.from_first(result)
        if math.isnan(result):
            self.stopped = self.group.largest(self.stop.number or 0)
        return result

    def _ended(self) -> bool:
        return self.trainer.step_number >= self.trainer.total_steps or self._out_of_patience()

    def _out_of_patience(self) -> bool:
        patience = self.trainer.settings.patience
        return 0 < patience <= self.progress.stale

    def _write_checkpoint(self) -> None:
        arrays = self.trainer.state_arrays() | self.progress.arrays() | {"run": from_text(self.identity)}
        if self.owed:
            arrays[OWED] = np.array(True)
        with self.group.together():
            if self.group.first:
                self.checkpoints.write(self.trainer.step_number, arrays)
