"""Progress on standard error: a bar on a terminal, plain lines in a log file."""

import sys
from typing import Any

from tqdm import tqdm

from ...allennlp.progress import SECONDS, Lines

# what tqdm fills in; n_fmt, total_fmt and rate_fmt are short forms of the numbers
LINE = "{desc}{n_fmt} of {total_fmt}{unit} ({percentage:.0f}%), {rate_fmt}, {remaining} left{postfix}"
LINE_WITHOUT_TOTAL = "{desc}{n_fmt}{unit}, {rate_fmt}{postfix}"


def shown_bar(**options: Any) -> "tqdm[None]":
    """Return a bar on a terminal, what writes a line in ten seconds in a file, or nothing if standard error is closed.

    options: of tqdm.
    """
    if not sys.stderr:
        return tqdm(disable=True, **options)
    if sys.stderr.isatty():
        return tqdm(file=sys.stderr, **options)
    if "desc" in options:
        options["desc"] += ": "  # tqdm adds it to its own lines only
    line = LINE_WITHOUT_TOTAL if options.get("total") is None else LINE
    return tqdm(file=Lines(sys.stderr), mininterval=SECONDS, maxinterval=SECONDS, bar_format=line, **options)
