"""Embeds whole corpora: any text in, files of vectors out.

`embed` (embedding.py) reads items of the text stream (spacy_elmo/text), cuts them into shards, and has each shard made
here, in processes or on a Ray cluster (workers.py): shards.py makes documents of its items, embeds their sentences,
writes a file with one of the formats (writing.py), and lists it. `find_sentence` finds a sentence again. `EmbedColumns`
embeds the columns of a table.
"""

from .bilm import BiLMChoice
from .columns import EmbedColumns
from .embedding import embed, find_sentence
from .shards import Summary
from .writing import FoundSentence

__all__ = ["BiLMChoice", "EmbedColumns", "FoundSentence", "Summary", "embed", "find_sentence"]
