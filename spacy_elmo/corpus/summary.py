"""What was embedded, counted."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import CorpusError, Errors
from ..formats.text.lines import BadLine
from .manifest import ShardFacts
from .reading import EXPECTED


@dataclass
class Summary:
    """What was embedded, shards of earlier commands included.

    output: the file or folder.
    format: of the file or of the shards.
    shards: number of shards, 0 for one file; resumed: those that an earlier command had made.
    documents, sentences, tokens: what was written.
    cut_words: tokens with more bytes than the biLM reads.
    blank: lines without a word.
    skipped: lines that can't be used; they are listed in skipped.jsonl.
    first_skipped: the first of them, and the reason; None if there is none.
    seconds: that this command took.
    """

    output: Path
    format: str
    shards: int = 0
    resumed: int = 0
    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    cut_words: int = 0
    blank: int = 0
    skipped: int = 0
    first_skipped: BadLine | None = None
    seconds: float = 0.0

    def add(self, facts: ShardFacts) -> None:
        """Add the counts of a shard."""
        for name in ("documents", "sentences", "tokens", "cut_words", "blank"):
            setattr(self, name, getattr(self, name) + getattr(facts, name))
        self.skipped += len(facts.skipped)
        if facts.skipped and self.first_skipped is None:
            self.first_skipped = BadLine(*facts.skipped[0])

    def no_sentences(self, sources: Sequence[str | os.PathLike[str]]) -> CorpusError:
        """Return the error of a corpus without sentences. sources: the names of its files and folders."""
        message = Errors.SOURCE_NO_SENTENCES.format(
            source=", ".join(map(str, sources)),
            lines=self.blank + self.skipped,
            blank=self.blank,
            bad=self.skipped,
            examples=f" ({self.first_skipped})" if self.first_skipped else "",
            expected=EXPECTED,
        )
        return CorpusError(message)
