"""Run or resume a pretraining run: train, evaluate, keep checkpoints and models."""

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError, Errors, SettingsError
from ...formats.atomic import writing
from ..model.language_model import LanguageModel
from ..settings.config import PretrainConfig
from ..settings.config_file import text_without_folders
from ..settings.sections import EvaluationSettings
from ..training.allocation import enough_memory, keep_memory
from ..training.distributed import Group, processes
from ..training.trainer import Trainer
from .checkpoint import Checkpoints, from_text
from .evaluating import Evaluator, Told, facts_of
from .folder import CHECKPOINTS, Run, begin, is_begun, reopen
from .lock import run_lock
from .metrics import METRICS, cut_back
from .reporting import Reporter
from .start_warnings import start_warnings
from .starting import check_paths, empty_model, starting_model
from .stopping import Stop, asked_to_stop

SMOOTHING = 0.98  # of the running mean of the training loss
SPEED_SMOOTHING = 0.9


class Outcome(NamedTuple):
    """stopped_by: the signal that ended the run early, or None; best: the lowest held-out perplexity, or None."""

    stopped_by: int | None
    best: float | None


@dataclass
class Progress:
    """What a checkpoint keeps beside the trainer.

    seconds: spent on training and evaluation, over all resumes; loss: smoothed; best: lowest held-out perplexity;
    stale: evaluations since; finished: whether all is done.
    """

    seconds: float = 0.0
    loss: float = math.nan
    best: float = math.inf
    stale: int = 0
    finished: bool = False

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """As plain arrays."""
        return {f"progress/{name}": np.array(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, arrays: dict[str, npt.NDArray[Any]]) -> "Progress":
        """From the arrays of a checkpoint, which are taken out of it. Raises CheckpointError."""
        found = {name: arrays.pop(name) for name in [*arrays] if name.startswith("progress/")}
        kinds, expected = (
            {name: (a.dtype.kind, a.shape) for name, a in each.items()} for each in (found, cls().arrays())
        )
        if kinds == expected:
            progress = cls(**{name.removeprefix("progress/"): array.item() for name, array in found.items()})
            if progress.seconds >= 0 and progress.best > 0 and progress.stale >= 0:
                return progress
        raise CheckpointError(Errors.CHECKPOINT_PARTS.format(path="the checkpoint", problems="progress"))


def pretrain(config: PretrainConfig, output: Path, reporter: Reporter) -> Outcome:
    """Train a biLM; go on from the last whole checkpoint in `output` where there is one.

    Writes to `output`: model-last and model-best (official options.json and weights.hdf5, softmax.hdf5,
    vocabulary.txt and a model card) after every evaluation, metrics.jsonl, curve.png, config.cfg, the prepared texts
    and checkpoints. SIGINT, SIGTERM and SIGHUP write a checkpoint and leave; a run that is killed goes on from the last
    checkpoint, and ends in the same bits. Under torchrun all processes call this. Raises ElmoError.
    """
    keep_memory()
    with processes(config.training.device) as group, ExitStack() as held:
        group.check_alike(config, SettingsError(Errors.PROCESS_SETTINGS.format(rank=group.rank)))
        run = None
        with group.together():
            if group.first:
                if not is_begun(output):
                    check_paths(config.paths, output)
                with writing(output, CheckpointError):
                    output.mkdir(parents=True, exist_ok=True)
                held.enter_context(run_lock(output))
                run = begin(config, output)
        with group.together():
            run = run or reopen(config, output)
            with enough_memory(config.training):
                model = _model(config, run)
                trainer = Trainer(config.training, model, run.train, config.corpus.shuffle_block, group)
            facts = facts_of(config.paths, run, trainer)
            told = Told(text_without_folders(config), config.corpus.language, facts)
            evaluator = Evaluator(trainer, run.heldout, config.evaluation.sentences, told, output, reporter)
        group.copy_first([*model.bilm.parameters(), *model.softmax.parameters()])
        # before, there is nothing to keep: a signal ends the process at once
        with asked_to_stop() as stop, trainer:
            checkpoints = Checkpoints(output / CHECKPOINTS)
            loop = _Loop(config.evaluation, trainer, evaluator, checkpoints, output, reporter, stop, run.identity)
            reporter.start(facts, start_warnings(config.paths, facts))
            return loop.run(tuning=config.paths.init is not None)


def _model(config: PretrainConfig, run: Run) -> LanguageModel:
    if run.begun:
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
        self.settings = settings
        self.progress = Progress()
        self.speed = math.nan

    def run(self, tuning: bool) -> Outcome:
        """Train to the end, or to a signal. tuning: whether the run started from a biLM."""
        trainer, stopped = self.trainer, 0
        self._resume()
        if trainer.step_number == 0 and tuning and not trainer.frozen:
            self._evaluate()  # what tuning starts from
        if trainer.step_number < trainer.total_steps:
            self.progress.finished = False  # it may have been made longer
        elif self.progress.finished:
            self.reporter.message("finished before: training.epochs or training.total_tokens would make it longer")
        while trainer.step_number < trainer.total_steps and not self._out_of_patience():
            stopped = self.group.largest(self.stop.number or 0)
            if stopped:
                break
            self._step()
            number, last = trainer.step_number, trainer.step_number == trainer.total_steps
            if number % self.settings.every == 0 or last:
                self._evaluate()
                self._keep()
            elif number % self.settings.checkpoint_every == 0:
                self._keep()
        if stopped and trainer.step_number:
            self._keep()
            self.reporter.message(f"stopped at step {trainer.step_number}")
        elif not stopped and not self.progress.finished:
            with self.group.together():
                self.evaluator.finish(self.progress.seconds)
            self.progress.finished = True
            self._keep()
        best = self.progress.best if math.isfinite(self.progress.best) else None
        self.reporter.done(self.output, best, stopped or None)
        return Outcome(stopped or None, best)

    def _resume(self) -> None:
        with self.group.together():
            found = self.checkpoints.latest(self.reporter.message)
        got = "none" if found is None else f"that of step {found[0]}"
        problem = Errors.PROCESS_CHECKPOINT.format(path=self.checkpoints.folder, rank=self.group.rank, got=got)
        self.group.check_alike(got, CheckpointError(problem))
        if found is None:
            with self.group.together():
                if self.group.first:
                    cut_back(self.output / METRICS, -1)
            return
        step, arrays = found
        with self.group.together():
            if not np.array_equal(arrays.pop("run", np.empty(0)), from_text(self.identity)):
                problem = Errors.CHECKPOINT_PARTS.format(path=self.checkpoints.folder, problems="it is of another run")
                raise CheckpointError(problem)
            self.progress = Progress.of(arrays)
            self.trainer.restore(arrays, str(self.checkpoints.folder))
            if self.trainer.step_number != step:
                problem = f"the file is of step {step}, its contents of {self.trainer.step_number}"
                raise CheckpointError(Errors.CHECKPOINT_PARTS.format(path=self.checkpoints.folder, problems=problem))
            if self.group.first:
                cut_back(self.output / METRICS, step)
        self.reporter.resumed(step, self.trainer.tokens)

    def _step(self) -> None:
        trainer, progress = self.trainer, self.progress
        rate, began = trainer.rate, time.perf_counter()
        with enough_memory(trainer.settings):
            loss = trainer.step()
        took = time.perf_counter() - began
        if not math.isfinite(loss):  # in all processes: the loss is the sum of theirs
            with self.group.together():
                what = f"the loss of step {trainer.step_number}"
                raise CheckpointError(Errors.DIVERGED.format(what=what, path=self.checkpoints.folder))
        progress.seconds += took
        progress.loss = loss if math.isnan(progress.loss) else SMOOTHING * progress.loss + (1 - SMOOTHING) * loss
        speed = trainer.tokens_per_update / took
        self.speed = speed if math.isnan(self.speed) else SPEED_SMOOTHING * self.speed + (1 - SPEED_SMOOTHING) * speed
        total = trainer.total_steps * trainer.tokens_per_update
        self.reporter.step(trainer.step_number, trainer.tokens, total, progress.loss, rate, self.speed)

    def _evaluate(self) -> None:
        """The first process scores and writes; all learn the result."""
        progress, began = self.progress, time.perf_counter()
        perplexity = 0.0
        with self.group.together():
            if self.group.first:
                perplexity = self.evaluator.evaluate(progress.seconds, progress.loss, self.speed, progress.best)
        perplexity = self.group.from_first(perplexity)
        progress.seconds += time.perf_counter() - began
        progress.stale = 0 if perplexity < progress.best else progress.stale + 1
        progress.best = min(progress.best, perplexity)

    def _out_of_patience(self) -> bool:
        patience = self.trainer.settings.patience
        return 0 < patience <= self.progress.stale

    def _keep(self) -> None:
        arrays = self.trainer.state_arrays() | self.progress.arrays() | {"run": from_text(self.identity)}
        with self.group.together():
            if self.group.first:
                self.checkpoints.write(self.trainer.step_number, arrays)
