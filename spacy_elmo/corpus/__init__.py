"""Embeds whole corpora: any text in, files of vectors out.

`embed` reads items (reading.py), cuts them into shards, and has each shard made by local.py or, on a Ray cluster, by
cluster.py: shards.py parses its items, embeds their sentences and writes a file with one of the writers. manifest.py
lists the finished shards.

`EmbedColumns` embeds the columns of a table in memory.
"""

from .bilm import BiLMChoice
from .columns import EmbedColumns
from .embedding import embed
from .manifest import Summary

__all__ = ["BiLMChoice", "EmbedColumns", "Summary", "embed"]
