"""Run, resume, evaluate and export a pretraining run."""

import json
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from ..errors import Errors, SettingsError
from ..formats.hdf5_weights import write_weights
from ..formats.options import BiLMOptions, read_options, write_options
from ..modules import BiLM
from ..modules.softmax import Softmax
from .checkpoint import read_checkpoint, write_checkpoint
from .config import PretrainConfig
from .corpus import Corpus, Sentences, encode_corpus, load_corpus, save_corpus
from .perplexity import perplexity
from .trainer import Trainer

SMOOTHING = 0.98  # of the running mean of the sampled loss


def heldout_sample(sentences: Sentences, n: int) -> Sentences:
    """A fixed random selection of n sentences, for evaluation on the way."""
    chosen = np.sort(np.random.default_rng(1).permutation(sentences.n_sentences)[:n])
    parts = [sentences.sentence(int(k)) for k in chosen]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Sentences(np.concatenate(parts), offsets)


def prepare_corpus(train: Path, heldout: Path, output: Path) -> Corpus:
    """Encode the text, or take what an earlier start of the same run encoded."""
    corpus = load_corpus(output / "corpus")
    if corpus is None:
        corpus = encode_corpus(train, heldout)
        save_corpus(output / "corpus", corpus)
    return corpus


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
    checkpoint, which holds the softmax too. SIGINT and SIGTERM write a checkpoint and leave.
    """
    output.mkdir(parents=True, exist_ok=True)
    write_options(output / "options.json", options)
    corpus = prepare_corpus(train, heldout, output)
    (output / "vocabulary.txt").write_text("\n".join(corpus.words[: config.n_words]) + "\n", encoding="utf8")
    torch.set_num_threads(config.workers)
    trainer = Trainer(options, config, corpus)
    checkpoint = output / "checkpoint.h5"
    seconds = 0.0
    if checkpoint.exists():
        arrays = read_checkpoint(checkpoint)
        seconds = float(arrays.pop("seconds"))
        trainer.restore(arrays)
        report(f"resumed at step {trainer.step_number}, {trainer.tokens:,} tokens")
    sample = heldout_sample(corpus.heldout, config.evaluation_sentences)
    stop: list[int] = []

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.append(number)

    handlers = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    began, first, smoothed = time.perf_counter(), trainer.step_number, 0.0
    try:
        while trainer.step_number < trainer.total_steps and not stop:
            loss = trainer.step()
            number = trainer.step_number
            smoothed = loss if not smoothed else SMOOTHING * smoothed + (1 - SMOOTHING) * loss
            last = number == trainer.total_steps
            elapsed = seconds + time.perf_counter() - began
            if number % 50 == 0:
                speed = (number - first) * config.streams * config.steps / (time.perf_counter() - began)
                report(
                    f"step {number}/{trainer.total_steps}  {trainer.tokens / 1e6:.2f}M tokens  {speed:,.0f} tokens/s  "
                    f"sampled loss {smoothed:.3f}  rate {config.learning_rate_at(number - 1):.5f}"
                )
            if number % config.checkpoint_every == 0 or last:
                write_checkpoint(checkpoint, trainer.state_arrays() | {"seconds": np.array(elapsed)})
            if number % config.evaluate_every == 0 or last:
                _evaluate(trainer, sample, elapsed, output, report)
        if stop:
            elapsed = seconds + time.perf_counter() - began
            write_checkpoint(checkpoint, trainer.state_arrays() | {"seconds": np.array(elapsed)})
            report(f"stopped at step {trainer.step_number}; run the same command again to go on")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    write_weights(output / "weights.hdf5", options, trainer.bilm.to_arrays())


def load_run(folder: Path) -> tuple[BiLM, Softmax, Corpus]:
    """The network, its softmax and the corpus of a run, as of its last checkpoint. Raises SettingsError."""
    corpus = load_corpus(folder / "corpus")
    for path in (folder / "options.json", folder / "checkpoint.h5"):
        if not path.exists():
            raise SettingsError(Errors.RUN_MISSING.format(path=path))
    if corpus is None:
        raise SettingsError(Errors.RUN_MISSING.format(path=folder / "corpus"))
    arrays = read_checkpoint(folder / "checkpoint.h5")
    weights = {name.removeprefix("bilm/"): array for name, array in arrays.items() if name.startswith("bilm/")}
    softmax = Softmax(*arrays["softmax/weight"].shape)
    softmax.load_state_dict({name: torch.from_numpy(arrays[f"softmax/{name}"]) for name in ("weight", "bias")})
    return BiLM.from_arrays(read_options(folder / "options.json"), weights), softmax, corpus


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
