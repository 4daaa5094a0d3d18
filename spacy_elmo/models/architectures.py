"""The architectures that go wherever spaCy takes a tok2vec: Tok2Vec and ElmoTok2Vec."""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Linear, Model, chain, concatenate, with_array
from thinc.types import Floats2d

from ..errors import SettingsError
from .bilm import NAME as BILM
from .listener import NAME as LISTENER
from .scalar_mix import MixModel
from .types import BiLMModel, Tok2VecModel

EncoderModel = Model[list[Floats2d], list[Floats2d]]


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
    model: Tok2VecModel = chain(inputs, encode) if width is None else chain(inputs, _fit_width(width), encode)
    if width is not None:
        model.set_dim("nO", width)
    if output_elmo is not None:
        widths = [layer.maybe_get_dim("nO") for layer in (model, output_elmo)]
        model = concatenate(model, output_elmo)
        if None not in widths:
            model.set_dim("nO", sum(each or 0 for each in widths))
        model.set_ref("output_elmo", output_elmo)
    for name, layer in (("embed", embed), ("elmo", elmo), ("encode", encode)):
        if layer is not None:
            model.set_ref(name, layer)
    model.init = partial(_init_without_labels, model.init)
    # Thinc's compiled functions refuse read-only parameters, also those that only read (spaCy's issue 13506). It is no
    # layer of its own, so that saved models can be loaded. Thinc's data_validation reads the types of what it wraps.
    model._func = update_wrapper(partial(_with_writable_parameters, model._func), model._func)
    return model


def _init_without_labels(init: Any, model: Tok2VecModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialise without Y, the labels: Thinc passes them to layers of unknown width, as if they were their output."""
    init(model, X=X)


def _with_writable_parameters(forward: Any, model: Tok2VecModel, X: list[Doc], is_train: bool) -> Any:
    for node in model.walk():
        for name in node.param_names:
            array: Any = node.get_param(name) if node.has_param(name) else None
            if isinstance(array, np.ndarray) and not array.flags.writeable:
                own: Any = array.copy()
                node.set_param(name, own)
    return forward(model, X, is_train)


def _fit_width(width: int) -> EncoderModel:
    """Build a layer: *Shape:* (tokens, any width) for each doc -> *Shape:* (tokens, width), the same if it fits."""
    # the Linear layer then has no parameters. spaCy's embeddings do not know their width before they are initialised
    return Model("fit_width", _fit_forward, init=_fit_init, dims={"nO": width}, layers=[with_array(Linear(width))])


def _fit_init(model: EncoderModel, X: list[Floats2d] | None = None, Y: Any = None) -> None:
    if X and X[0].shape[1] != model.get_dim("nO"):
        model.layers[0].initialize(X=X)


def _fit_forward(
    model: EncoderModel, X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]]:
    array_layer = model.layers[0]
    trained = array_layer.layers[0].has_param("W")
    if not trained and all(x.shape[1] == model.get_dim("nO") for x in X):
        return X, lambda dY: dY
    result: tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats2d]]] = array_layer(X, is_train)
    return result
