"""Warnings at the start of a run about what is unusual, though it may be intended."""

from pathlib import Path

from ...errors import ElmoError, Errors
from ...formats.text.sources import find_files
from ..settings.sections import PathSettings, TrainingSettings
from .facts import RunFacts

LEAST_COVERAGE = 0.5  # share of the training text's tokens. A vocabulary of another language covers far less
MOST_CUT = 0.01  # share of words. Seven languages with blanks between words had 0.0005 at most, Thai 0.30
MOST_UNSEEN = 0.01  # share of held-out words. With 5 to 14 %, <UNK> made the perplexity rise while the biLM learned
LEAST_UPDATES = 200  # with fewer, tuning en_mini brought little (docs/pretraining.md)


def start_warnings(paths: PathSettings, training: TrainingSettings, facts: RunFacts) -> list[str]:
    """Return a message for each thing that is unusual about a run.

    These are too few updates, a warm-up that is not shorter than the run, a biLM that stays frozen, a vocabulary of
    other texts or of all words, words that are too long for the biLM, and held-out text that is trained on.

    paths: files of the run.
    training: batches and schedule of the run.
    facts: what is known about the run.
    """
    warnings = _short(training, facts.total_tokens // training.tokens_per_update)
    if 0 < facts.total_tokens <= training.frozen_tokens:
        warnings.append(Errors.FROZEN_LONG.format(got=training.frozen_tokens, tokens=facts.total_tokens))
    if facts.coverage is not None and facts.coverage < LEAST_COVERAGE:
        warnings.append(Errors.COVERAGE_LOW.format(coverage=facts.coverage))
    new_softmax = paths.init is None or training.frozen_tokens > 0  # that of a trained one knows <UNK>
    if new_softmax and facts.coverage == 1.0 and facts.heldout_unknown > MOST_UNSEEN:
        warnings.append(Errors.UNKNOWN_UNSEEN.format(share=facts.heldout_unknown))
    if facts.cut_share > MOST_CUT:
        cut = Errors.CUT_SHARE.format(share=facts.cut_share, bytes=facts.max_characters - 2)
        # A run that tunes a biLM has its sizes.
        warnings.append(cut if paths.init is not None else cut + Errors.CUT_SETTING.format(got=facts.max_characters))
    if paths.heldout is not None:
        shared = _files(paths.train) & _files(paths.heldout)
        if shared:
            warnings.append(Errors.HELDOUT_SAME.format(got=min(shared)))
        elif facts.train.sha256 is not None and facts.train.sha256 == facts.heldout.sha256:
            warnings.append(Errors.HELDOUT_SAME.format(got=f"the text of {facts.train.source}"))
    return warnings


def _short(training: TrainingSettings, updates: int) -> list[str]:
    """Return messages for a run of few updates, and for one that ends within the warm-up."""
    warmup = training.schedule.warmup_steps
    length = "training.epochs" if training.total_tokens is None else "training.total_tokens"
    warnings = []
    if updates < LEAST_UPDATES:
        few = Errors.FEW_UPDATES.format(
            got=updates,
            expected=LEAST_UPDATES,
            streams=training.streams,
            length=length,
            value=training.total_tokens or training.epochs,
        )
        warnings.append(few + Errors.FEW_UPDATES_WARMUP.format(warmup=warmup) if 0 < warmup < updates else few)
    if warmup and warmup >= updates:
        warnings.append(Errors.WARMUP_LONG.format(got=warmup, updates=updates, expected=updates // 10, length=length))
    return warnings


def _files(source: str) -> set[Path]:
    """Return the files of a source; none if it is gone, since a resumed run reads its copy."""
    try:
        return {file.resolve() for file in find_files(source)}
    except (ElmoError, OSError):
        return set()
