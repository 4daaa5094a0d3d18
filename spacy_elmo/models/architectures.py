"""The registered architectures BiLM, Tok2Vec and ElmoTok2Vec."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Linear, Model, chain, concatenate, with_array
from thinc.types import Floats2d

from ..errors import SettingsError, shown
from ..inference import CACHED_WORDS, Precision
from .bilm import NAME as BILM
from .bilm import bilm_layer
from .listener import NAME as LISTENER
from .scalar_mix import MixModel
from .shim import BiLMShim
from .span_getters import build_sentences
from .types import BiLMModel, SpanGetter, Tok2VecModel, is_whole


def with_writable_parameters(model: Model[Any, Any]) -> None:
    """Have a model copy its read-only parameters before it runs.

    Thinc's compiled functions refuse them, also those that only read (spaCy's issue 13506).

    model: is changed. Its layers stay the same, so that saved ones can be loaded.
    """
    model._func = partial(_forward, model._func)


def _forward(forward: Any, model: Model[Any, Any], X: Any, is_train: bool) -> Any:
    for node in model.walk():
        for name in node.param_names:
            array: Any = node.get_param(name) if node.has_param(name) else None
            if isinstance(array, np.ndarray) and not array.flags.writeable:
                own: Any = array.copy()
                node.set_param(name, own)
    return forward(model, X, is_train)


Floats2dList = list[Floats2d]


def fit_width(width: int) -> Model[Floats2dList, Floats2dList]:
    """Build a layer: *Shape:* (tokens, any width) for each doc -> *Shape:* (tokens, width) for each doc.

    If the input has the width already, the layer returns it unchanged, and its Linear layer has no parameters. This is
    decided at initialisation, because spaCy's embeddings do not know their width before.

    width: width of the output.
    """
    return Model("fit_width", forward, init=init, dims={"nO": width}, layers=[with_array(Linear(width))])


def init(model: Model[Floats2dList, Floats2dList], X: Floats2dList | None = None, Y: Any = None) -> None:
    """Initialise the Linear layer, if the input does not have the width of the output.

    X: sample inputs, *Shape:* (tokens, any width) each; None: the layer is not initialised.
    Y: ignored.
    """
    if X and X[0].shape[1] != model.get_dim("nO"):
        model.layers[0].initialize(X=X)


def forward(
    model: Model[Floats2dList, Floats2dList], X: Floats2dList, is_train: bool
) -> tuple[Floats2dList, Callable[[Floats2dList], Floats2dList]]:
    """Apply the Linear layer, if it was initialised or the width differs.

    X: *Shape:* (tokens, any width) for each doc.
    is_train: whether backprop will be called.

    Returns *Shape:* (tokens, width) for each doc, and backprop.
    """
    array_layer = model.layers[0]
    trained = array_layer.layers[0].has_param("W")
    if not trained and all(x.shape[1] == model.get_dim("nO") for x in X):
        return X, lambda dY: dY
    result: tuple[Floats2dList, Callable[[Floats2dList], Floats2dList]] = array_layer(X, is_train)
    return result


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
    bilm: str | None = None,
) -> BiLMModel:
    """Build spacy-elmo.BiLM.v1: docs -> all layers of the biLM.

    Output: for each doc a float32 array of *Shape:* (layers, tokens, width).

    options_file: path of the official options file; null: the embedded biLM.
    weight_file: path of the official weight file; null: the embedded biLM. Both files are read when they are first
        needed.
    get_spans: span getter that returns what the biLM reads as one sentence; null: spacy-elmo.sentences.v1.
    precision: type of the matrix multiplications: "float32"; "bfloat16", which is an error if the machine does not
        support it; "auto", which is bfloat16 if the machine supports it, else float32.
    stateful: whether each sentence of a doc starts from the LSTM state after the previous sentence. The first sentence
        of each doc starts from the zero state. A doc without sentence boundaries is one sentence, or windows if it is
        long.
    trainable: whether the biLM's weights are trained if this architecture is part of a trained model.
    cached_words: number of words whose character-encoder vectors are cached, the most recently used ones; 0: none.
    width: expected width of the layers; null: any. It is needed only in a model that must know its sizes before any
        file is read. `replace_listeners` sets it.
    bilm: in place of the two files, a folder with both, the folder of a pretraining run (for its model-best),
        "en_mini", or the name of a published biLM that was downloaded or of one in an installed package; null: the two
        files.

    Raises SettingsError if a setting cannot be used, and if stateful and trainable are both true.
    """
    if get_spans is not None and not callable(get_spans):
        raise SettingsError(
            f"model.get_spans is {shown(get_spans)}. Expected a function of docs, such as spacy-elmo.sentences.v1 "
            "makes."
        )
    if stateful and trainable:
        raise SettingsError("model.stateful and model.trainable are both true. Set one of them to false.")
    if width is not None and (not is_whole(width) or width < 1):
        raise SettingsError(
            f"width is {shown(width)} in spacy-elmo.BiLM.v1. Expected the width of the layers, a whole number, or "
            "null: that of its files."
        )
    shim = BiLMShim(options_file, weight_file, precision, cached_words, bilm)
    return bilm_layer(shim, get_spans or build_sentences(), stateful, trainable, width)


def build_tok2vec(source: BiLMModel, mix: MixModel) -> Tok2VecModel:
    """Build spacy-elmo.Tok2Vec.v1: docs -> the mix of the source's layers.

    Output: for each doc an array of *Shape:* (tokens, width).

    source: spacy-elmo.Listener.v1, or spacy-elmo.BiLM.v1 for a biLM that only this component uses.
    mix: spacy-elmo.ScalarMix.v1.
    """
    model: Tok2VecModel = chain(source, mix)
    width = source.maybe_get_dim("nO")
    if width is not None:
        for node in (mix, model):
            node.set_dim("nO", width)
    return model


def build_elmo_tok2vec(
    embed: Tok2VecModel, elmo: Tok2VecModel | None, encode: EncoderModel, output_elmo: Tok2VecModel | None = None
) -> Tok2VecModel:
    """Build spacy-elmo.ElmoTok2Vec.v1: docs -> h, the task encoder's output for [x; ELMo], or [h; ELMo].

    This is how Peters et al. 2018 (section 3.3) add ELMo to a task model.

    Output: for each doc an array of *Shape:* (tokens, width). The width is that of the encoder, plus that of
    output_elmo if there is one.

    embed: the task's own embedding x, for example spacy.MultiHashEmbed.v2.
    elmo: spacy-elmo.Tok2Vec.v1, whose output is concatenated to x; null: the encoder gets x alone.
    encode: the task encoder, for example spacy.MaxoutWindowEncoder.v2. If its width is not that of [x; ELMo], a
        trained Linear layer before it maps to its width. An encoder of depth 0 has no width; then h is [x; ELMo].
    output_elmo: spacy-elmo.Tok2Vec.v1 with another mix, whose output is concatenated to h; null: none.

    Raises SettingsError if elmo or output_elmo is a listener or a biLM without a mix, and if both are null.
    """
    if elmo is None and output_elmo is None:
        raise SettingsError(
            "elmo and output_elmo of spacy-elmo.ElmoTok2Vec.v1 are both null. Expected spacy-elmo.Tok2Vec.v1 in "
            "one of them or both. For x alone, take spacy.Tok2Vec.v2."
        )
    for name, part in (("elmo", elmo), ("output_elmo", output_elmo)):
        if part is not None and part.name in (LISTENER, BILM):
            raise SettingsError(
                f"{name} of spacy-elmo.ElmoTok2Vec.v1 is a source of layers. Expected spacy-elmo.Tok2Vec.v1, "
                "which has it as its source, and a mix."
            )
    inputs: Any = embed if elmo is None else concatenate(embed, elmo)
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
    for name, layer in (("embed", embed), ("elmo", elmo), ("encode", encode)):
        if layer is not None:
            model.set_ref(name, layer)
    model.init = partial(_init_without_labels, model.init)
    with_writable_parameters(model)
    return model


def _init_without_labels(init: Any, model: Tok2VecModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialise without Y, the component's labels.

    Thinc passes Y to each layer of unknown width, and spaCy's static vectors would treat it as their own output.
    """
    init(model, X=X)


def _width(*layers: Tok2VecModel) -> int | None:
    """Return the width of the concatenated outputs of layers; None if a layer does not know its width yet."""
    widths = [layer.maybe_get_dim("nO") for layer in layers]
    return None if None in widths else sum(width or 0 for width in widths)
