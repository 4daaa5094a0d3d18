"""Bars on standard error, which are clean in a log file."""

import sys
from typing import Any

from tqdm import tqdm

from ...allennlp.progress import SECONDS, Lines


def shown_bar(**options: Any) -> "tqdm[None]":
    """Return a bar on a terminal, lines without carriage returns in a file, or nothing if standard error is closed.

    options: of tqdm.
    """
    if not sys.stderr:
        return tqdm(disable=True, **options)
    if sys.stderr.isatty():
        return tqdm(file=sys.stderr, **options)
    return tqdm(file=Lines(sys.stderr), mininterval=SECONDS, maxinterval=SECONDS, **options)
