"""ELMo for spaCy."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .allennlp.elmo import Elmo as Elmo
    from .allennlp.elmo import batch_to_ids as batch_to_ids
    from .allennlp.elmo_bilm import _ElmoBiLm as _ElmoBiLm
    from .allennlp.elmo_bilm import _ElmoCharacterEncoder as _ElmoCharacterEncoder
    from .allennlp.embedder import ElmoEmbedder as ElmoEmbedder
    from .analysis.neighbours import SentenceIndex as SentenceIndex
    from .analysis.neighbours import WordIndex as WordIndex
    from .analysis.neighbours import build_index as build_index
    from .analysis.prediction import predict_words as predict_words
    from .pipeline.attributes import restore_vectors as restore_vectors
    from .pipeline.attributes import tfhub_outputs as tfhub_outputs
    from .pipeline.encoding import encode as encode
    from .pipeline.mixes import learned_mixes as learned_mixes

__version__ = "1.0.0"

# torch and spaCy are imported with the first of these names that is used
_MODULES = {
    "Elmo": "allennlp.elmo",
    "ElmoEmbedder": "allennlp.embedder",
    "SentenceIndex": "analysis.neighbours",
    "WordIndex": "analysis.neighbours",
    "_ElmoBiLm": "allennlp.elmo_bilm",
    "_ElmoCharacterEncoder": "allennlp.elmo_bilm",
    "batch_to_ids": "allennlp.elmo",
    "build_index": "analysis.neighbours",
    "encode": "pipeline.encoding",
    "learned_mixes": "pipeline.mixes",
    "predict_words": "analysis.prediction",
    "restore_vectors": "pipeline.attributes",
    "tfhub_outputs": "pipeline.attributes",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f".{name}", __name__)  # a part of the package, such as spacy_elmo.corpus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
