"""Registered architectures."""

from typing import Literal, get_args

from ..errors import Errors, SettingsError
from .bilm import bilm_layer
from .shim import BiLMShim
from .span_getters import build_sentences
from .types import BiLMModel, SpanGetter

Precision = Literal["float32", "bfloat16", "auto"]


def build_bilm(
    options_file: str | None = None,
    weight_file: str | None = None,
    get_spans: SpanGetter | None = None,
    precision: Precision = "auto",
    stateful: bool = False,
    trainable: bool = False,
) -> BiLMModel:
    """spacy-elmo.BiLM.v1: docs -> (layers, tokens, width) each, float32.

    options_file, weight_file: the official ELMo files; both null: the embedded biLM. Read when first needed.
    get_spans: what is read as one sentence; null: spacy-elmo.sentences.v1.
    precision: of the products; "auto" is float32. "bfloat16" is refused: this version has no bfloat16 products.
    stateful: the sentences of a doc are read one after the other, the LSTM's state carried on, from zero at each doc.
    trainable: whether training reaches the biLM's weights where this architecture is part of a trained model.
    """
    if precision not in get_args(Precision):
        raise SettingsError(Errors.PRECISION.format(got=precision, expected=", ".join(get_args(Precision))))
    if precision == "bfloat16":
        raise SettingsError(Errors.BFLOAT16)
    if stateful and trainable:
        raise SettingsError(Errors.STATEFUL_TRAINABLE)
    return bilm_layer(BiLMShim(options_file, weight_file), get_spans or build_sentences(), stateful, trainable)
