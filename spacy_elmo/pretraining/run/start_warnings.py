"""Warnings at the start of a run about what is unusual, though it may be intended."""

from pathlib import Path

from ...errors import ElmoError, Errors
from ..settings.sections import PathSettings
from ..text.sources import find_files
from .facts import RunFacts

LEAST_COVERAGE = 0.5  # share of the training text's tokens. A vocabulary of another language covers far less


def start_warnings(paths: PathSettings, facts: RunFacts) -> list[str]:
    """Return a message for a vocabulary of other texts, and for held-out text that is trained on.

    paths: files of the run.
    facts: what is known about the run.
    """
    warnings = []
    if facts.coverage is not None and facts.coverage < LEAST_COVERAGE:
        warnings.append(Errors.COVERAGE_LOW.format(coverage=facts.coverage))
    if paths.heldout is not None:
        shared = _files(paths.train) & _files(paths.heldout)
        if shared:
            warnings.append(Errors.HELDOUT_SAME.format(got=min(shared)))
        elif facts.train.sha256 is not None and facts.train.sha256 == facts.heldout.sha256:
            warnings.append(Errors.HELDOUT_SAME.format(got=f"the text of {facts.train.source}"))
    return warnings


def _files(source: str) -> set[Path]:
    """Return the files of a source; none if it is gone, since a resumed run reads its copy."""
    try:
        return {file.resolve() for file in find_files(source)}
    except (ElmoError, OSError):
        return set()
