"""Embeds whole corpora: any text in, files of vectors out.

`embed` (embedding.py) reads items of the text stream (spacy_elmo/text), cuts them into shards, and has each shard made
here, in processes or on a Ray cluster (workers.py): shards.py makes documents of its items, embeds their sentences and
writes a file with one of the formats (writing.py, where `find_sentence` finds a sentence again). manifest.py lists the
finished shards. `EmbedColumns` embeds the columns of a table.
"""

from .bilm import BiLMChoice
from .columns import EmbedColumns
from .embedding import embed
from .manifest import Summary
from .writing import FoundSentence, find_sentence

__all__ = ["BiLMChoice", "EmbedColumns", "FoundSentence", "Summary", "embed", "find_sentence"]
