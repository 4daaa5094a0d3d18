"""Embeds whole corpora: any text in, files of vectors out.

`embed` (embedding.py) reads items (reading.py), cuts them into shards, and has each shard made here, in processes or on
a Ray cluster (workers.py): shards.py makes documents of its items, embeds their sentences and writes a file with one of
the formats (writing.py). manifest.py lists the finished shards.

`find_sentence` (finding.py) finds a sentence in what was written. `EmbedColumns` embeds the columns of a table.
"""

from .bilm import BiLMChoice
from .columns import EmbedColumns
from .embedding import embed
from .finding import FoundSentence, find_sentence
from .manifest import Summary

__all__ = ["BiLMChoice", "EmbedColumns", "FoundSentence", "Summary", "embed", "find_sentence"]
