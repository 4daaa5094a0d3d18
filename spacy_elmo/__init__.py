"""ELMo for spaCy."""

from .allennlp.elmo import Elmo, batch_to_ids
from .allennlp.elmo_bilm import _ElmoBiLm, _ElmoCharacterEncoder
from .allennlp.embedder import ElmoEmbedder
from .analysis.neighbours import SentenceIndex, WordIndex, build_index
from .analysis.prediction import predict_words
from .pipeline.attributes import restore_vectors, tfhub_outputs
from .pipeline.encoding import encode
from .pipeline.mixes import learned_mixes

__version__ = "0.1.0"

__all__ = [
    "Elmo",
    "ElmoEmbedder",
    "SentenceIndex",
    "WordIndex",
    "_ElmoBiLm",
    "_ElmoCharacterEncoder",
    "batch_to_ids",
    "build_index",
    "encode",
    "learned_mixes",
    "predict_words",
    "restore_vectors",
    "tfhub_outputs",
]
