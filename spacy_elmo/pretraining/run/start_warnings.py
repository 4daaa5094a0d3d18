"""What is odd about a run that begins, though it can be meant."""

from pathlib import Path

from ...errors import ElmoError, Errors
from ..settings.sections import PathSettings
from ..text.sources import find_files
from .facts import RunFacts

LEAST_COVERAGE = 0.5  # share of the training text's tokens; a vocabulary of another language has far less


def start_warnings(paths: PathSettings, facts: RunFacts) -> list[str]:
    """A text for each: a vocabulary of other texts, and held-out text that is trained on."""
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
    """Those of a source; none where it is gone: a run that goes on has a copy."""
    try:
        return {file.resolve() for file in find_files(source)}
    except (ElmoError, OSError):
        return set()
