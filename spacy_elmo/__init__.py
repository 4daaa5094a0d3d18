"""ELMo for spaCy."""

from .allennlp.elmo import Elmo, batch_to_ids
from .allennlp.embedder import ElmoEmbedder
from .pipeline.encoding import encode
from .pipeline.mixes import learned_mixes
from .pipeline.tfhub import tfhub_outputs
from .pipeline.vectors import restore_vectors

__version__ = "0.1.0"

__all__ = ["Elmo", "ElmoEmbedder", "batch_to_ids", "encode", "learned_mixes", "restore_vectors", "tfhub_outputs"]
