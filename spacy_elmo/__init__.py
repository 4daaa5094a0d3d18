"""ELMo for spaCy."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

# torch and spaCy are imported with the first of these names that is used
_MODULES = {
    "allennlp.elmo": ("Elmo", "batch_to_ids"),
    "allennlp.elmo_bilm": ("_ElmoBiLm", "_ElmoCharacterEncoder"),
    "allennlp.embedder": ("ElmoEmbedder",),
    "analysis.neighbours": ("SentenceIndex", "WordIndex", "build_index"),
    "analysis.prediction": ("predict_words",),
    "pipeline.attributes": ("restore_vectors", "tfhub_outputs"),
    "pipeline.encoding": ("encode",),
    "pipeline.mixes": ("learned_mixes",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
