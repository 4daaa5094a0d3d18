"""Embeds whole corpora: any text in, files of vectors out.

`embed` (embedding.py) reads items (reading.py), cuts them into shards, and has each shard made here, in processes or on
a Ray cluster (workers.py): shards.py makes documents of its items, embeds their sentences and writes a file with one of
the formats (writing.py). manifest.py lists the finished shards.

`EmbedColumns` embeds the columns of a table in memory.
"""

from .bilm import BiLMChoice
from .columns import EmbedColumns
from .embedding import embed
from .manifest import Summary

__all__ = ["BiLMChoice", "EmbedColumns", "Summary", "embed"]
