"""Registered architectures."""

from ..errors import Errors, SettingsError, shown
from ..inference import CACHED_WORDS, Precision
from .bilm import bilm_layer
from .shim import BiLMShim
from .span_getters import build_sentences
from .types import BiLMModel, SpanGetter


def build_bilm(
    options_file: str | None = None,
    weight_file: str | None = None,
    get_spans: SpanGetter | None = None,
    precision: Precision = "float32",
    stateful: bool = False,
    trainable: bool = False,
    cached_words: int = CACHED_WORDS,
) -> BiLMModel:
    """spacy-elmo.BiLM.v1: docs -> (layers, tokens, width) each, float32.

    options_file, weight_file: the official ELMo files; both null: the embedded biLM. Read when first needed.
    get_spans: what is read as one sentence; null: spacy-elmo.sentences.v1.
    precision: of the LSTMs' products. "bfloat16": an error where the machine has none; "auto": bfloat16 where it has.
    stateful: the sentences of a doc are read one after the other, the LSTM's state carried on, from zero at each doc.
    trainable: whether training reaches the biLM's weights where this architecture is part of a trained model.
    cached_words: how many words the character encoder keeps the vectors of, the latest; 0: none.
    """
    if get_spans is not None and not callable(get_spans):
        raise SettingsError(Errors.SPANS_GETTER.format(got=shown(get_spans)))
    if stateful and trainable:
        raise SettingsError(Errors.STATEFUL_TRAINABLE)
    shim = BiLMShim(options_file, weight_file, precision, cached_words)
    return bilm_layer(shim, get_spans or build_sentences(), stateful, trainable)
