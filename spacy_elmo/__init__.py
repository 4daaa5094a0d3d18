"""ELMo for spaCy."""

from .inference.embedder import ElmoEmbedder
from .modules.elmo import Elmo, batch_to_ids
from .pipeline.tfhub import tfhub_outputs
from .pipeline.vectors import restore_vectors

__version__ = "0.1.0"

__all__ = ["Elmo", "ElmoEmbedder", "batch_to_ids", "restore_vectors", "tfhub_outputs"]
