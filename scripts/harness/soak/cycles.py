"""Loads and drops a pipeline again and again: memory stays flat."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import spacy

from .measures import resident


def load_and_drop(cycles: int) -> str:
    """Load a saved pipeline, embed a doc, and drop both. Returns the figures.

    Raises AssertionError if memory grows by more than 5 % after the first tenth.
    """
    with tempfile.TemporaryDirectory() as folder:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo")
        nlp.to_disk(Path(folder, "saved"))
        early = late = 0.0
        for cycle in range(cycles):
            nlp = spacy.load(Path(folder, "saved"))
            assert nlp("Stick to the river bank .")._.elmo.any()
            del nlp
            if cycle % 10 == 9:
                gc.collect()  # a pipeline and its pipes refer to one another
                late = resident()
                early = max(early, late) if cycle < max(10, cycles // 10) else early
    assert late <= 1.05 * early, f"{early:.0f} MB after a tenth of the cycles, {late:.0f} MB at the end"
    return f"{cycles:,} cycles: {early:.0f} MB after a tenth, {late:.0f} MB at the end"
