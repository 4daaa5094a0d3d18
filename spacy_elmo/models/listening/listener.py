"""The listener: a Thinc layer that returns the layers which an elmo pipe has stored on the docs."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ...errors import ChangedBiLMWarning, Errors, NotEmbeddedError, SettingsError
from ..numbers import is_whole
from ..types import BiLMModel
from .upstream import Source, Upstream

NAME = "elmo_listener"


def build_listener(width: int, upstream: str = "*") -> BiLMModel:
    """Build spacy-elmo.Listener.v1: docs -> the layers that an earlier elmo pipe has stored on them.

    Output: for each doc an array of *Shape:* (layers, tokens, width).

    width: width of the biLM's layers, which is twice its projection_dim; 256 for the embedded biLM.
    upstream: name of the elmo pipe; "*": the only elmo pipe of the pipeline.

    Backprop hands the gradient to the elmo pipe, if its biLM is not frozen. A doc without layers raises
    NotEmbeddedError, which names the pipe and the attribute. The docs with which the model is initialised give zeros:
    no pipe has seen them yet.

    Raises SettingsError if width or upstream cannot be used.
    """
    if not is_whole(width) or width < 1:
        raise SettingsError(Errors.LISTENER_WIDTH_KIND.format(got=width))
    if not isinstance(upstream, str) or not upstream:
        raise SettingsError(Errors.LISTENER_UPSTREAM.format(got=upstream))
    attrs = {"upstream": Upstream(upstream), "bilm": ""}
    return Model(NAME, forward, init=init, dims={"nO": width}, attrs=attrs)


def init(model: BiLMModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Remember the sample docs, for which the listener returns zeros during initialisation.

    X: the docs that initialisation runs through the model.
    Y: ignored.
    """
    _upstream(model).remember_samples(X or [])


def forward(
    model: BiLMModel, X: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    """Return the layers of each doc.

    X: docs that the elmo pipe has annotated.
    is_train: whether backprop will be called. If the biLM is being tuned, the layers come from the open step, and
        backprop adds their gradient to it.

    Returns *Shape:* (layers, tokens, width) for each doc, and backprop, which returns no gradients of docs.
    Raises NotEmbeddedError if a doc has no layers, and SettingsError if their width is not that of the listener.
    """
    upstream, docs = _upstream(model), list(X)
    source = upstream.source
    if is_train:
        upstream.forget_samples()
    step = source.step if source is not None and is_train else None
    if step is not None and not any(doc in step for doc in docs):
        step = None
    if step is not None:
        step.expect_gradient(upstream.id)
    layers: list[Any] = []
    for doc in docs:
        if step is not None and doc in step:
            _read(upstream, source, doc, is_train)  # raises if the doc's layers were removed
            if source is not None and not step.has_tokens_of(doc):
                raise NotEmbeddedError(Errors.LISTENER_TOKENS.format(attr=source.attr))
            layers.append(step.layers[step.positions[id(doc)]])
        else:
            layers.append(_read(upstream, source, doc, is_train))
        if layers[-1] is not None and layers[-1].shape[2] != model.get_dim("nO"):
            raise SettingsError(
                Errors.LISTENER_WIDTH.format(
                    width=model.get_dim("nO"), got=layers[-1].shape[2], pipe=source.name if source else upstream.name
                )
            )
    if source is not None and source.fingerprint is not None:
        _check_fingerprint(model, source, source.fingerprint, is_train)

    if source is not None and not is_train:  # in training a component may predict after its update
        for doc in docs:
            source.docs.release(doc, upstream.id)

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if step is not None:
            step.add_gradients(upstream.id, docs, dY)
        return []

    n_layers = max((len(y) for y in layers if y is not None), default=source.layers or 0 if source else 0)
    for i, doc in enumerate(docs):
        if layers[i] is None:
            layers[i] = np.zeros((n_layers, len(doc), model.get_dim("nO")), "f")
    return [model.ops.asarray3f(y) for y in layers], backprop


def _upstream(model: BiLMModel) -> Upstream:
    upstream = model.attrs["upstream"]
    assert isinstance(upstream, Upstream)
    return upstream


def _read(upstream: Upstream, source: Source | None, doc: Doc, is_train: bool) -> Floats3d | None:
    """Return the doc's layers, *Shape:* (layers, tokens, width); None for a sample doc that has none.

    Raises NotEmbeddedError if any other doc has no layers.
    """
    if source is None:
        if upstream.is_sample(doc):
            return None
        name = "" if upstream.name == "*" else f" named {upstream.name!r}"
        if upstream.renamed:
            raise NotEmbeddedError(Errors.LISTENER_RENAMED.format(upstream=upstream.name, pipe=upstream.renamed))
        raise NotEmbeddedError(Errors.LISTENER_ALONE.format(named=name, upstream=upstream.name))
    if source.docs.has(doc):
        return source.docs.read(doc)
    if upstream.is_sample(doc):
        return None
    if source.docs.were_dropped(doc):
        raise NotEmbeddedError(Errors.LISTENER_DROPPED.format(pipe=source.name))
    message = Errors.LISTENER_UNTRAINED if is_train else Errors.LISTENER_NOTHING
    raise NotEmbeddedError(message.format(pipe=source.name, attr=source.attr))


def _check_fingerprint(model: BiLMModel, source: Source, fingerprint: Callable[[], str], is_train: bool) -> None:
    """Store in training which biLM the layers came from; in prediction warn once if they come from another biLM.

    The fingerprint is stored in model.attrs["bilm"], which is saved with the model.
    """
    upstream = _upstream(model)
    if source.changes:
        if is_train:
            # the weights still change: the pipe stores their fingerprint when it is saved
            model.attrs["bilm"], upstream.learned = "", True
    elif is_train:
        model.attrs["bilm"] = fingerprint()
        source.warned.discard(upstream)
    elif upstream not in source.warned and model.attrs["bilm"] and fingerprint() not in ("", model.attrs["bilm"]):
        source.warned.add(upstream)
        warnings.warn(Errors.LISTENER_CHANGED.format(pipe=source.name), ChangedBiLMWarning, stacklevel=2)
