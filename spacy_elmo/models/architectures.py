"""Registered architectures."""

from functools import partial
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model, chain, concatenate
from thinc.types import Floats2d

from ..errors import Errors, SettingsError, shown
from ..inference import CACHED_WORDS, Precision
from .bilm import NAME as BILM
from .bilm import bilm_layer
from .fit_width import fit_width
from .listening.listener import NAME as LISTENER
from .scalar_mix import MixModel
from .shim import BiLMShim
from .span_getters import build_sentences
from .types import BiLMModel, SpanGetter

Tok2VecModel = Model[list[Doc], list[Floats2d]]
EncoderModel = Model[list[Floats2d], list[Floats2d]]


def build_bilm(
    options_file: str | None = None,
    weight_file: str | None = None,
    get_spans: SpanGetter | None = None,
    precision: Precision = "float32",
    stateful: bool = False,
    trainable: bool = False,
    cached_words: int = CACHED_WORDS,
    width: int | None = None,
) -> BiLMModel:
    """spacy-elmo.BiLM.v1: docs -> (layers, tokens, width) each, float32.

    options_file, weight_file: the official ELMo files; both null: the embedded biLM. Read when first needed.
    get_spans: what is read as one sentence; null: spacy-elmo.sentences.v1.
    precision: of the products. "bfloat16": an error where the machine has none; "auto": bfloat16 where it has.
    stateful: the sentences of a doc are read one after the other, the LSTM's state carried on, from zero at each doc.
    trainable: whether training reaches the biLM's weights where this architecture is part of a trained model.
    cached_words: how many words the character encoder keeps the vectors of, the latest; 0: none.
    width: what the files are expected to give; null: whatever they give. Needed only where this is a part of a model
        that must know its sizes before any file is read; replace_listeners sets it.
    """
    if get_spans is not None and not callable(get_spans):
        raise SettingsError(Errors.SPANS_GETTER.format(got=shown(get_spans)))
    if stateful and trainable:
        raise SettingsError(Errors.STATEFUL_TRAINABLE)
    shim = BiLMShim(options_file, weight_file, precision, cached_words)
    return bilm_layer(shim, get_spans or build_sentences(), stateful, trainable, width)


def build_tok2vec(source: BiLMModel, mix: MixModel) -> Tok2VecModel:
    """spacy-elmo.Tok2Vec.v1: docs -> (tokens, width) each, the mix of the source's layers.

    source: spacy-elmo.Listener.v1, or spacy-elmo.BiLM.v1 for a component with a biLM of its own.
    mix: spacy-elmo.ScalarMix.v1.
    """
    model: Tok2VecModel = chain(source, mix)
    width = source.maybe_get_dim("nO")
    if width is not None:
        for node in (mix, model):
            node.set_dim("nO", width)
    return model


def build_elmo_tok2vec(
    embed: Tok2VecModel, elmo: Tok2VecModel, encode: EncoderModel, output_elmo: Tok2VecModel | None = None
) -> Tok2VecModel:
    """spacy-elmo.ElmoTok2Vec.v1: docs -> (tokens, width) each: [x; ELMo] -> encoder, then [h; ELMo] with output_elmo.

    embed: the task's own x, such as spacy.MultiHashEmbed.v2.
    elmo, output_elmo: spacy-elmo.Tok2Vec.v1, each with a mix of its own.
    encode: such as spacy.MaxoutWindowEncoder.v2. Where its width is not that of [x; ELMo], a trained Linear layer
        stands between. One that does nothing (depth 0) has no width: then h is [x; ELMo].
    The width is the encoder's, plus ELMo's with output_elmo.
    """
    for name, given in (("elmo", elmo), ("output_elmo", output_elmo)):
        if given is not None and given.name in (LISTENER, BILM):
            raise SettingsError(Errors.SOURCE_ALONE.format(name=name))
    inputs: Any = concatenate(embed, elmo)
    width = encode.maybe_get_dim("nO")
    model: Tok2VecModel = chain(inputs, encode) if width is None else chain(inputs, fit_width(width), encode)
    if width is not None:
        model.set_dim("nO", width)
    if output_elmo is not None:
        both = _width(model, output_elmo)
        model = concatenate(model, output_elmo)
        if both is not None:
            model.set_dim("nO", both)
        model.set_ref("output_elmo", output_elmo)
    for name, part in (("embed", embed), ("elmo", elmo), ("encode", encode)):
        model.set_ref(name, part)
    model.init = partial(_init_without_labels, model.init)
    return model


def _init_without_labels(init: Any, model: Tok2VecModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """thinc shows a layer of unknown width the component's labels, which spaCy's static vectors take for their own."""
    init(model, X=X)


def _width(*layers: Tok2VecModel) -> int | None:
    """Of the layers side by side; None where one does not know its own yet."""
    widths = [layer.maybe_get_dim("nO") for layer in layers]
    return None if None in widths else sum(width or 0 for width in widths)
