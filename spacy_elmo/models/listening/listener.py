"""The layers that an elmo pipe has put on the docs, as a Thinc layer."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ...errors import ChangedBiLMWarning, Errors, NotEmbeddedError, SettingsError
from ..types import BiLMModel
from .upstream import Source, Upstream

NAME = "elmo_listener"


def build_listener(width: int, upstream: str = "*") -> BiLMModel:
    """spacy-elmo.Listener.v1: docs -> (layers, tokens, width) each, as an elmo pipe before the component gives them.

    width: of the biLM, twice its projection_dim; 256 for the embedded one.
    upstream: the pipe's name; "*": the only elmo pipe.

    Where the docs have no layers, an error names pipe and attribute; only docs that the model is initialised with,
    which no pipe has seen by then, get zeros. A biLM that is not frozen gets the gradient.
    """
    if not isinstance(width, int) or width < 1:
        raise SettingsError(Errors.LISTENER_WIDTH_KIND.format(got=width))
    if not isinstance(upstream, str) or not upstream:
        raise SettingsError(Errors.LISTENER_UPSTREAM.format(got=upstream))
    attrs = {"upstream": Upstream(upstream), "bilm": ""}
    return Model(NAME, forward, init=init, dims={"nO": width}, attrs=attrs)


def init(model: BiLMModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """X: docs that initialisation runs through the model."""
    _upstream(model).show_samples(X or [])


def forward(
    model: BiLMModel, X: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    """X: docs. Returns (layers, tokens, width) each."""
    upstream, docs = _upstream(model), list(X)
    source = upstream.source
    if is_train:
        upstream.forget_samples()
    step = source.step if source is not None and is_train else None
    if step is not None and not any(doc in step for doc in docs):
        step = None
    if step is not None:
        step.lend(model.id)
    layers: list[Any] = []
    for doc in docs:
        if step is not None and doc in step:
            _read(upstream, source, doc, is_train)  # raises where the doc has been changed since
            layers.append(step.layers[step.numbers[id(doc)]])
        else:
            layers.append(_read(upstream, source, doc, is_train))
        if layers[-1] is not None and layers[-1].shape[2] != model.get_dim("nO"):
            raise SettingsError(
                Errors.LISTENER_WIDTH.format(
                    width=model.get_dim("nO"), got=layers[-1].shape[2], pipe=source.name if source else upstream.name
                )
            )
    if source is not None and source.fingerprint is not None:
        _compare(model, source, source.fingerprint, is_train)

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if step is not None:
            step.add(model.id, docs, dY)
        return []

    number = max((len(y) for y in layers if y is not None), default=source.layers or 0 if source else 0)
    for i, doc in enumerate(docs):
        if layers[i] is None:
            layers[i] = np.zeros((number, len(doc), model.get_dim("nO")), "f")
    return [model.ops.asarray3f(y) for y in layers], backprop


def _upstream(model: BiLMModel) -> Upstream:
    upstream = model.attrs["upstream"]
    assert isinstance(upstream, Upstream)
    return upstream


def _read(upstream: Upstream, source: Source | None, doc: Doc, is_train: bool) -> Floats3d | None:
    """The doc's layers; None for a sample of initialisation that has none."""
    if source is None:
        if upstream.is_sample(doc):
            return None
        name = "" if upstream.name == "*" else f" named {upstream.name!r}"
        raise NotEmbeddedError(Errors.LISTENER_ALONE.format(named=name, upstream=upstream.name))
    if source.has_values(doc):
        return source.read(doc)
    if upstream.is_sample(doc):
        return None
    message = Errors.LISTENER_UNTRAINED if is_train else Errors.LISTENER_NOTHING
    raise NotEmbeddedError(message.format(pipe=source.name, attr=source.attr))


def _compare(model: BiLMModel, source: Source, fingerprint: Callable[[], str], is_train: bool) -> None:
    """Keep in training what the biLM was, and say once where it is another one later."""
    if source.changes:
        if is_train:
            model.attrs["bilm"] = ""  # known when it is saved
    elif is_train:
        model.attrs["bilm"] = fingerprint()
    elif model.attrs["bilm"] and fingerprint() not in ("", model.attrs["bilm"]):
        model.attrs["bilm"] = ""
        warnings.warn(Errors.LISTENER_CHANGED.format(pipe=source.name), ChangedBiLMWarning, stacklevel=2)
