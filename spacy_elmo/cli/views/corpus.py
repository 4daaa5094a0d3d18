"""What `elmo embed` shows of a corpus: a bar while it runs, and a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from ...corpus.manifest import SKIPPED
from ...corpus.shards import OnProgress, no_progress
from ...corpus.summary import Summary
from ..shared.console import escaped
from ..shared.printer import msg
from ..shared.progress import shown_bar


@contextmanager
def corpus_bar(total: int | None, quiet: bool) -> Iterator[OnProgress]:
    """Show the bytes of text that are done, the time left, and the tokens a second.

    total: bytes of text, perhaps an estimate; None: they are not known, so the time left isn't either.
    quiet: whether nothing is shown.

    Yields the function that moves the bar.
    """
    if quiet or not sys.stderr:
        yield no_progress
        return
    bar: tqdm[None] | None = None
    begun, done = time.monotonic(), 0

    def update(tokens: int, size: int) -> None:
        nonlocal bar, done
        if bar is None:  # not before, since the settings may be wrong
            bar = shown_bar(total=total, unit="B", unit_scale=True)
        done += tokens
        rate = done / max(1e-9, time.monotonic() - begun)
        bar.set_postfix_str(f"{done:,} tokens, {rate:,.0f} tokens/s", refresh=False)
        if bar.total is not None:
            bar.total = max(bar.total, bar.n + size)  # the total may be an estimate
        bar.update(size)

    try:
        yield update
        if bar is not None and bar.total is not None:
            bar.total = bar.n  # closing the bar shows it
    finally:
        if bar is not None:
            bar.close()


def show_summary(summary: Summary, quiet: bool) -> None:
    """Print what was embedded.

    summary: of the command.
    quiet: whether only warnings are shown.
    """
    if summary.skipped:
        listed = summary.output / SKIPPED
        msg.warn(escaped(f"lines that can't be used, left out and listed in {listed}: {summary.skipped:,}"))
    if summary.cut_words:
        msg.warn(f"tokens with more bytes than the biLM reads, of which it did not see the rest: {summary.cut_words:,}")
    if quiet:
        return
    counts: list[Any] = [(summary.documents, "documents"), (summary.sentences, "sentences"), (summary.tokens, "tokens")]
    parts = [_counted(n, name) for n, name in counts]
    if summary.shards:
        before = f", {summary.resumed:,} of them made before" if summary.resumed else ""
        parts.append(f"{_counted(summary.shards, 'shards')} of {summary.format}{before}")
    msg.good(escaped(f"{summary.output}: {', '.join(parts)}, in {summary.seconds:,.1f} seconds"))


def _counted(n: int, name: str) -> str:
    return f"{n:,} {name if n != 1 else name[:-1]}"
