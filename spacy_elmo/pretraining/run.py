"""Pretraining from the first update, or from a checkpoint, to the last one."""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import CHECKPOINT_PARTS, CheckpointError, ElmoError, SettingsError, WeightsError
from ..formats.atomic import lock, writing
from ..formats.characters import too_long
from ..formats.options import BiLMOptions
from ..formats.paths import find_files
from ..formats.weights import readers_of
from .card import write_card
from .checkpoint import CHECKPOINTS, Stop, Stopped, asked_to_stop, latest_checkpoint, write_checkpoint
from .config import PretrainConfig
from .distributed import Group, processes
from .evaluating import EvaluationRow, Reporter, append_row, cut_back, draw_curve, read_metrics
from .folder import CURVE, METRICS, Run, check_new_run, empty_model, has_checkpoint, open_run, starting_model
from .language_model import BEST, LAST, LanguageModel
from .prepared import PreparedCorpus
from .scoring import Score, score_text
from .trainer import Trainer, check_streams, enough_memory, reuse_memory
from .vocabulary import UNKNOWN

# weights of earlier updates in the running means of the training loss and of tokens per second
LOSS_SMOOTHING, SPEED_SMOOTHING = 0.98, 0.9
_OWED = "owed"  # in a checkpoint whose evaluation was stopped


def pretrain(config: PretrainConfig, output: Path, reporter: Reporter, force: bool = False) -> int | None:
    """Train a biLM in the folder of a run, from its newest undamaged checkpoint if there is one. Raises ElmoError.

    docs/pretraining.md tells what it writes, and when. SIGINT, SIGTERM and SIGHUP make it write a checkpoint and
    return their number. A run that goes on ends in the same bits as one that was never stopped. All processes of
    torchrun call it.

    force: whether a new run may begin in a folder that has files of others.
    """
    reuse_memory()
    with processes(config.training.device) as group, ExitStack() as resources:
        group.check_alike(
            config,
            SettingsError(
                f"process {group.rank} has other settings than process 0. Expected the same configuration and options "
                "in all processes, on all machines."
            ),
        )
        run = None
        with group.together():
            check_streams(config.training, group)
            if group.first:
                if not has_checkpoint(output):
                    check_new_run(config, output, force)
                resources.enter_context(lock(output, CheckpointError))
                with writing(output, CheckpointError):
                    output.mkdir(parents=True, exist_ok=True)
                if not has_checkpoint(output):
                    reporter.message(f"reading {config.paths.train}")  # which takes minutes if it is large
                run = open_run(config, output)
        with group.together():
            run = run or open_run(config, output, first=False)
            with enough_memory(config.training):
                model = (empty_model if run.resumed else starting_model)(config, run.vocabulary)
                trainer = Trainer(config.training, model, run.train, config.corpus.shuffle_block, group)
            run = replace(
                run,
                total_tokens=trainer.total_steps * trainer.tokens_per_update,
                processes=group.size,
                compatible_with=readers_told(config.bilm, dict(model.bilm.named_parameters())),
            )
        trainer.check_rounding()
        group.copy_first([*model.bilm.parameters(), *model.softmax.parameters()])
        # Until here there is nothing to save, so a signal ends the process at once.
        with asked_to_stop() as stop, trainer:
            loop = _Loop(run, trainer, output, reporter, stop)
            reporter.start(run, start_warnings(run) if group.first else [])
            return loop.run_to_end()


def readers_told(options: BiLMOptions, parameters: Iterable[str] | None = None) -> str:
    """Return a line that names the programs that can read a biLM, and says why the others cannot."""
    readers = readers_of(options, parameters)
    able = ", ".join(name for name, problems in readers.items() if not problems)
    unable = [f"not {name}: {', '.join(problems)}" for name, problems in readers.items() if problems]
    return "; ".join([able, *unable])


@dataclass
class Progress:
    """What a checkpoint holds beside the state of the trainer."""

    seconds: float = 0.0  # of training and evaluation, over all resumes
    loss: float = math.nan  # smoothed, in nats
    best: float = math.inf  # lowest held-out perplexity so far
    stale: int = 0  # evaluations since then
    finished: bool = False


class _Loop:
    """The updates of a run, its evaluations and its checkpoints. All processes go through it together."""

    def __init__(self, run: Run, trainer: Trainer, output: Path, reporter: Reporter, stop: Stop) -> None:
        self.run, self.trainer, self.output, self.reporter, self.stop = run, trainer, output, reporter, stop
        self.group: Group = trainer.group
        self.identity = np.frombuffer(run.identity.encode(), np.uint8)
        chosen = np.random.default_rng(1).permutation(len(run.heldout))[: run.config.evaluation.sentences]
        self.chosen = np.sort(chosen).tolist()  # held-out sentences that are scored during the run
        self.told_worse = False
        self.checkpoints = output / CHECKPOINTS
        self.progress = Progress()
        self.stopped = 0  # number of the signal, in all processes
        self.owed = False  # whether a signal stopped the evaluation of this step
        self.speed = math.nan

    def run_to_end(self) -> int | None:
        trainer, settings = self.trainer, self.run.config.evaluation
        self._resume()
        if self.owed:
            self._evaluate()
        elif trainer.step_number == 0 and self.run.config.paths.init is not None and not trainer.frozen:
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
            if number % settings.every == 0 or last:
                self._evaluate()
            elif number % settings.checkpoint_every == 0:
                self._write_checkpoint()
        if not self.stopped and not self.progress.finished:
            self._in_first(self._score_all)
            if not self.stopped:
                self.progress.finished = True
                self._write_checkpoint()
        if self.stopped and trainer.step_number:
            self._write_checkpoint()
            self.reporter.message(f"stopped at step {trainer.step_number}")
        best = self.progress.best if math.isfinite(self.progress.best) else None
        self.reporter.done(self.output, best, self.stopped or None)
        return self.stopped or None

    def _resume(self) -> None:
        folder = self.checkpoints
        with self.group.together():
            latest = latest_checkpoint(folder, self.reporter.message)
        step, arrays = latest or (-1, {})
        got = "none" if latest is None else f"that of step {step}"
        problem = (
            f"{folder}: process {self.group.rank} finds {got}, but process 0 finds another checkpoint. Expected a "
            "folder that all machines share, or a copy of process 0's folder on each machine."
        )
        self.group.check_alike(got, CheckpointError(problem))
        with self.group.together():
            if latest is not None:
                try:
                    if not np.array_equal(arrays.pop("run"), self.identity):
                        raise ValueError("it is of another run")
                    progress = {name: arrays.pop(f"progress/{name}").item() for name in vars(Progress())}
                except (KeyError, ValueError) as error:
                    what = f"{error} is missing" if isinstance(error, KeyError) else error
                    raise CheckpointError(CHECKPOINT_PARTS.format(path=folder, problems=what)) from error
                self.progress, self.owed = Progress(**progress), arrays.pop(_OWED, None) is not None
                self.trainer.restore(arrays, str(folder))
            if self.group.first:
                # A row of the owed evaluation is there if a later process was killed just after it had written it.
                cut_back(self.output / METRICS, step - 1 if self.owed else step)
        if latest is not None:
            self.reporter.resumed(step, self.trainer.tokens)

    def _step(self) -> None:
        trainer, progress = self.trainer, self.progress
        rate, start = trainer.rate, time.perf_counter()
        with enough_memory(trainer.settings):
            loss = trainer.step()
        seconds = time.perf_counter() - start
        if not math.isfinite(loss):  # so in all processes, since it is the sum of their losses
            with self.group.together():
                raise self._diverged("loss")
        progress.seconds += seconds
        progress.loss = _smoothed(progress.loss, loss, LOSS_SMOOTHING)
        self.speed = _smoothed(self.speed, trainer.tokens_per_update / seconds, SPEED_SMOOTHING)
        total = self.run.total_tokens
        self.reporter.step(trainer.step_number, trainer.tokens, total, progress.loss, rate, self.speed)

    def _evaluate(self) -> None:
        """Evaluate after a step and write a checkpoint. If a signal stops it, the resumed run evaluates this step."""
        self._score()
        self.owed = bool(self.stopped)
        if not self.stopped:
            self._write_checkpoint()

    def _score(self) -> None:
        progress, start = self.progress, time.perf_counter()
        perplexity = self._in_first(self._evaluation)
        progress.seconds += time.perf_counter() - start
        if not self.stopped:
            progress.stale = 0 if perplexity < progress.best else progress.stale + 1
            progress.best = min(progress.best, perplexity)

    def _evaluation(self) -> float:
        """Score the chosen sentences, write the models, the metrics and the plot, and return the mean perplexity."""
        trainer, progress, step = self.trainer, self.progress, self.trainer.step_number
        sentences = [self.run.heldout.sentence(number) for number in self.chosen]
        try:
            score = self._scored(trainer.model_to_keep, sentences, len(sentences))  # Stopped: nothing is written
        except WeightsError as error:  # a loss is not finite
            if not step:
                raise
            raise self._diverged("held-out perplexity") from error
        forward, backward, perplexity = score.perplexities
        if step and not math.isfinite(perplexity):
            raise self._diverged("held-out perplexity")
        row = EvaluationRow(
            step=step,
            tokens=trainer.tokens,
            epochs=trainer.tokens / trainer.tokens_per_epoch,
            seconds=progress.seconds,
            loss=progress.loss,
            rate=trainer.rate,
            perplexity_forward=forward,
            perplexity_backward=backward,
            perplexity=perplexity,
            predictions=score.predictions,
            tokens_per_second=self.speed,
        )
        for name in [LAST, BEST] if perplexity < progress.best else [LAST]:
            self._write_model(name, score)
        append_row(self.output / METRICS, row)
        draw_curve(self.output / CURVE, read_metrics(self.output / METRICS))
        self.reporter.evaluated(row)
        words = len(self.run.vocabulary)
        if step and perplexity > WORSE_THAN_CHANCE * words and not self.told_worse:
            self.told_worse = True
            self.reporter.message(
                f"the held-out perplexity after step {step} is {perplexity:,.0f}, worse than the {words:,} of equal "
                "probabilities for all words of the vocabulary. Probably training.optimizer.learning_rate is too "
                "high, or the text too short for so many epochs: start a new run with a lower one."
            )
        return perplexity

    def _score_all(self) -> None:
        """Score all held-out sentences for the cards. Raises Stopped; then it is called again."""
        heldout = self.run.heldout
        if len(self.chosen) == len(heldout):
            return
        self.reporter.message(f"scoring all {len(heldout):,} held-out sentences for the model cards")
        score = self._scored(self.trainer.model_to_keep, heldout, len(heldout), LAST)
        self._write_model(LAST, score)
        best = min(read_metrics(self.output / METRICS), key=lambda row: row.perplexity, default=None)
        if best is not None and (self.output / BEST).exists():
            if best.step != self.trainer.step_number:
                score = self._scored(LanguageModel.load(self.output / BEST), heldout, len(heldout), BEST)
            write_card(self.output / BEST, self.run, best.step, best.seconds, score)

    def _scored(self, model: LanguageModel, sentences: Iterable[list[str]], n: int, name: str | None = None) -> Score:
        scored = 0

        def tell(more: int) -> None:
            nonlocal scored
            scored += more
            self.reporter.evaluating(scored, n)

        self.reporter.evaluating(0, n)
        with self.stop.at_once():
            score = score_text(model, sentences, tell=tell)
        if name is not None:
            forward, backward, mean = score.perplexities
            self.reporter.message(
                f"{name} on all {n:,} held-out sentences: perplexity {mean:.2f} (forward {forward:.2f}, backward "
                f"{backward:.2f})"
            )
        return score

    def _write_model(self, name: str, score: Score) -> None:
        self.trainer.model_to_keep.save(self.output / name)
        write_card(self.output / name, self.run, self.trainer.step_number, self.progress.seconds, score)

    def _diverged(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"the {what} after step {self.trainer.step_number} is not finite: training has diverged. Start a new run "
            "in another output folder, with a lower training.optimizer.learning_rate. Checkpoints in "
            f"{self.checkpoints} are of earlier steps, but their weights may already be too large."
        )

    def _in_first(self, work: Callable[[], float | None]) -> float:
        """Work in the first process, and hand the result to all; if a signal stops it, stop all."""
        result = 0.0
        with self.group.together():
            if self.group.first:
                try:
                    result = work() or 0.0
                except Stopped:
                    result = math.nan
        result = self.group.from_first(result)
        if math.isnan(result):
            self.stopped = self.group.largest(self.stop.number or 0)
        return result

    def _ended(self) -> bool:
        out_of_patience = 0 < self.trainer.settings.patience <= self.progress.stale
        return out_of_patience or self.trainer.step_number >= self.trainer.total_steps

    def _write_checkpoint(self) -> None:
        arrays = self.trainer.state_arrays() | {"run": self.identity}
        arrays |= {f"progress/{name}": np.array(value) for name, value in vars(self.progress).items()}
        if self.owed:
            arrays[_OWED] = np.array(True)
        with self.group.together():
            if self.group.first:
                write_checkpoint(self.checkpoints, self.trainer.step_number, arrays)


def _smoothed(mean: float, value: float, weight: float) -> float:
    return value if math.isnan(mean) else weight * mean + (1 - weight) * value


LEAST_COVERAGE = 0.5  # share of the training text's tokens. A vocabulary of another language covers far less
MOST_CUT = 0.01  # share of words. Seven languages with blanks between words had 0.0005 at most, Thai 0.30
MOST_UNSEEN = 0.01  # share of held-out words. With 5 to 14 %, <UNK> made the perplexity rise while the biLM learned
MOST_REPEATED = 0.05  # share of the held-out sentences that the training text has too
LEAST_UPDATES = 200  # with fewer, tuning en_mini brought little (docs/pretraining.md)
SENTENCES = 10_000  # of a text that are looked at
WORSE_THAN_CHANCE = 2.0  # times the number of words: random weights may be a little above one


def start_warnings(run: Run) -> list[str]:
    paths, training, coverage = run.config.paths, run.config.training, run.vocabulary.coverage
    warnings = []
    updates, warmup = run.total_tokens // training.tokens_per_update, training.schedule.warmup_steps
    length = "training.epochs" if training.total_tokens is None else "training.total_tokens"
    if updates < LEAST_UPDATES:
        to_do = "Raise" if run.resumed else f"Lower training.streams, which is {training.streams:,}, or raise"
        warnings.append(
            f"the run has {updates:,} updates, fewer than {LEAST_UPDATES:,}: it will learn little. "
            f"{to_do} {length}, which is {training.total_tokens or training.epochs:,}."
        )
    if warmup and (warmup >= updates or (updates < LEAST_UPDATES and warmup > updates // 10)):
        warnings.append(
            f"training.schedule.warmup_steps is {warmup:,}, and the run has {updates:,} updates. Set it to "
            f"{updates // 10:,}, a tenth of them, or less: the learning rate rises during the warm-up."
        )
    if 0 < run.total_tokens <= training.frozen_tokens:
        warnings.append(
            f"training.frozen_tokens is {training.frozen_tokens:,}, and the run has {run.total_tokens:,} tokens: the "
            "biLM will not change, since the softmax alone is trained. To tune it, set half of the run's tokens or "
            "fewer."
        )
    if coverage is not None and coverage < LEAST_COVERAGE:
        warnings.append(
            f"the vocabulary has {coverage:.2%} of the training text's tokens. All others are predicted as <UNK>, so "
            "the perplexity says little: use a larger vocabulary, or one of this text (python -m spacy elmo vocab)."
        )
    new_softmax = paths.init is None or training.frozen_tokens > 0  # that of a trained one knows <UNK>
    if new_softmax and coverage == 1.0:
        unknown = float((run.vocabulary.ids(_words_of(run.heldout)) == UNKNOWN).mean())
        if unknown > MOST_UNSEEN:
            warnings.append(
                "the vocabulary has every word of the training text, so <UNK> is never learned, but "
                f"{unknown:.1%} of the held-out words are <UNK>, and spoil the perplexity by which model-best is "
                "chosen. Set vocabulary.min_count to 2, or leave rare words out of the file of paths.vocabulary."
            )
    max_characters, words = run.config.bilm.max_characters, _words_of(run.train)
    cut = len(too_long(words, max_characters)) / len(words)
    if cut > MOST_CUT:
        also = f", or raise bilm.char_cnn.max_characters_per_token, which is {max_characters} (AllenNLP reads 50 only)"
        warnings.append(
            f"{cut:.1%} of the training text's words have more than {max_characters - 2} bytes in UTF-8, of which the "
            f"biLM reads the first {max_characters - 2}: words that differ only after them get the same vector. If the "
            "text has no blanks between words, set corpus.language, or separate the words first"
            f"{also if paths.init is None else ''}."  # a run that tunes a biLM has its sizes
        )
    shared = set() if paths.heldout is None else _files(paths.train) & _files(paths.heldout)
    if shared:
        warnings.append(
            f"{min(shared)} is in both the training text and the held-out text, which makes the held-out perplexity "
            "too low. Set paths.heldout to another text, or to null: then a part of the training text is held out."
        )
    elif run.repeated is not None and run.repeated >= MOST_REPEATED * len(run.heldout):
        warnings.append(
            f"{run.repeated:,} of the {len(run.heldout):,} held-out sentences are in the training text too, word for "
            "word, which makes the held-out perplexity too low. Give a text without repeated sentences, or set "
            "paths.heldout to another text."
        )
    return warnings


def _words_of(corpus: PreparedCorpus) -> list[str]:
    distance = -(-len(corpus) // SENTENCES)
    return [word for number in range(0, len(corpus), distance) for word in corpus.sentence(number)]


def _files(source: str) -> set[Path]:
    try:
        return {file.resolve() for file in find_files(source)}
    except (ElmoError, OSError):  # it is gone, and a resumed run reads its copy
        return set()
