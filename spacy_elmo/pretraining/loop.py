"""Run, resume, evaluate and export a pretraining run."""

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import numpy as np

from ..errors import CheckpointError, Errors
from ..formats.hdf5_weights import write_weights
from ..formats.options import BiLMOptions
from .checkpoint import read_checkpoint, write_checkpoint
from .config import PretrainConfig
from .corpus import Sentences
from .perplexity import perplexity
from .run_folder import begin
from .trainer import Trainer

SMOOTHING = 0.98  # of the running mean of the sampled loss


def heldout_sample(sentences: Sentences, n: int) -> Sentences:
    """A fixed random selection of n sentences, for evaluation on the way."""
    chosen = np.sort(np.random.default_rng(1).permutation(sentences.n_sentences)[:n])
    parts = [sentences.sentence(int(k)) for k in chosen]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Sentences(np.concatenate(parts), offsets)


def pretrain(
    options: BiLMOptions,
    config: PretrainConfig,
    train: Path,
    heldout: Path,
    output: Path,
    report: Callable[[str], None] = print,
) -> None:
    """Train a biLM; go on from `output/checkpoint.h5` where there is one.

    Writes to `output`: options.json and weights.hdf5 (the official format), vocabulary.txt, metrics.jsonl and the
    checkpoint, which holds the softmax too. SIGINT and SIGTERM write a checkpoint and leave. Raises ElmoError.
    """
    corpus = begin(options, config, train, heldout, output)
    trainer = Trainer(options, config, corpus)
    checkpoint = output / "checkpoint.h5"
    seconds = 0.0
    if checkpoint.exists():
        arrays = read_checkpoint(checkpoint)
        seconds = float(arrays.pop("seconds"))
        trainer.restore(arrays)
        report(f"resumed at step {trainer.step_number}, {trainer.tokens:,} tokens")
    sample = heldout_sample(corpus.heldout, config.evaluation_sentences)
    began, first, smoothed = time.perf_counter(), trainer.step_number, 0.0

    def keep() -> float:
        elapsed = seconds + time.perf_counter() - began
        write_checkpoint(checkpoint, trainer.state_arrays() | {"seconds": np.array(elapsed)})
        return elapsed

    with _asked_to_stop() as stop, trainer:
        while trainer.step_number < trainer.total_steps and not stop:
            loss = trainer.step()
            number = trainer.step_number
            if not math.isfinite(loss):
                raise CheckpointError(Errors.DIVERGED.format(step=number, path=checkpoint))
            smoothed = loss if not smoothed else SMOOTHING * smoothed + (1 - SMOOTHING) * loss
            last = number == trainer.total_steps
            if number % 50 == 0:
                speed = (number - first) * config.streams * config.steps / (time.perf_counter() - began)
                report(
                    f"step {number}/{trainer.total_steps}  {trainer.tokens / 1e6:.2f}M tokens  {speed:,.0f} tokens/s  "
                    f"sampled loss {smoothed:.3f}  rate {config.learning_rate_at(number - 1):.5f}"
                )
            if number % config.checkpoint_every == 0 or number % config.evaluate_every == 0 or last:
                elapsed = keep()
                if number % config.evaluate_every == 0 or last:
                    _evaluate(trainer, sample, elapsed, output, report)
        if stop:
            keep()
            report(f"stopped at step {trainer.step_number}; run the same command again to go on")
    write_weights(output / "weights.hdf5", options, trainer.bilm.to_arrays())


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """A list that is no longer empty once SIGINT or SIGTERM came; a second one interrupts as usual."""
    stop: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals reach the main thread alone
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: FrameType | None) -> None:
        stop.append(number)
        signal.signal(number, handlers[signal.Signals(number)])

    for number in handlers:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _evaluate(trainer: Trainer, sample: Sentences, seconds: float, output: Path, report: Callable[[str], None]) -> None:
    result = perplexity(trainer.bilm, trainer.softmax, sample, trainer.character_ids)
    row = {
        "step": trainer.step_number,
        "tokens": trainer.tokens,
        "seconds": round(seconds, 1),
        "perplexity_forward": result.forward,
        "perplexity_backward": result.backward,
        "perplexity": result.mean,
        "predictions": result.predictions,
        "config": asdict(trainer.config),
    }
    with open(output / "metrics.jsonl", "a", encoding="utf8") as metrics:
        metrics.write(json.dumps(row) + "\n")
    report(
        f"held-out perplexity {result.mean:.1f} (forward {result.forward:.1f}, backward {result.backward:.1f}; "
        f"full softmax, zero state, {result.predictions:,} predictions a direction)"
    )
