"""ELMo for spaCy."""

from .allennlp.elmo import Elmo, batch_to_ids
from .allennlp.embedder import ElmoEmbedder
from .allennlp.raw_layers import _ElmoBiLm
from .neighbours.building import build_index
from .neighbours.word_index import WordIndex
from .pipeline.encoding import encode
from .pipeline.mixes import learned_mixes
from .pipeline.tfhub import tfhub_outputs
from .pipeline.vectors import restore_vectors

__version__ = "0.1.0"

__all__ = [
    "Elmo",
    "ElmoEmbedder",
    "WordIndex",
    "_ElmoBiLm",
    "batch_to_ids",
    "build_index",
    "encode",
    "learned_mixes",
    "restore_vectors",
    "tfhub_outputs",
]
