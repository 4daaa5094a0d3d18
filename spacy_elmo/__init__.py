"""ELMo for spaCy."""

from .inference.embedder import ElmoEmbedder
from .pipeline.tfhub import tfhub_outputs
from .pipeline.vectors import restore_vectors

__version__ = "0.1.0"

__all__ = ["ElmoEmbedder", "restore_vectors", "tfhub_outputs"]
