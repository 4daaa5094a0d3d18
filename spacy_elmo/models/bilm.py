"""The biLM as a Thinc layer: docs -> all layers of every token."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..errors import Errors, SettingsError
from ..formats.characters import batch_to_ids_array
from ..inference import LayerCache, token_batches
from ..modules import LstmState
from .cached import with_cache
from .shim import BiLMShim, bilm_shims
from .types import BiLMModel, SpanGetter
from .with_spans import Row, RowLayers, rows_of, to_docs, to_rows

NAME = "elmo_bilm"


@dataclass
class Settings:
    """See bilm_layer; the rest comes from serve_component.

    tuned: as trainable, but not for copies that replace listeners.
    max_batch_tokens: how many tokens run at once.
    cache: what is looked into before sentences are read, once it is open; None: nothing is.
    """

    get_spans: SpanGetter
    stateful: bool
    trainable: bool
    tuned: bool = False
    max_batch_tokens: int = 8192
    cache: LayerCache | None = None


def bilm_layer(
    shim: BiLMShim, get_spans: SpanGetter, stateful: bool, trainable: bool, width: int | None = None
) -> BiLMModel:
    """Build the layer.

    The settings are an object and no plain attributes, which thinc would save: a loaded model obeys its own config.

    stateful: the spans of one doc are read in order, each from the state in which the one before left the biLM;
        every doc begins from the zero state.
    trainable: backprop gathers gradients in the shim. The docs get none.
    width: what the files are expected to give; None: not known before they are read.
    """
    return Model(
        NAME,
        forward,
        init=init,
        dims={"nO": width},
        attrs={"settings": Settings(get_spans, stateful, trainable)},
        shims=[shim],
    )


def serve_component(
    model: BiLMModel,
    name: str,
    *,
    max_batch_tokens: int,
    tuned: bool,
    learn_rate_factor: float,
    cache: LayerCache | None,
) -> None:
    """Tell a biLM which component it works for. A model of somebody else's stays as it is.

    name: the component's.
    max_batch_tokens, tuned, cache: see Settings.
    learn_rate_factor: see BiLMShim.
    """
    for shim in bilm_shims(model):
        shim.truncated.where = f"the pipe's n_truncated: nlp.get_pipe({name!r}).n_truncated"
        shim.learn_rate_factor = learn_rate_factor
    if "settings" in model.attrs:
        settings: Settings = model.attrs["settings"]
        settings.max_batch_tokens, settings.tuned, settings.cache = max_batch_tokens, tuned, cache


def leave_component(model: BiLMModel) -> None:
    """Work on alone, as a copy that replaces a listener does: trained only if its own config says so."""
    for shim in bilm_shims(model):
        shim.learn_rate_factor = 1.0
    if "settings" in model.attrs:
        settings: Settings = model.attrs["settings"]
        settings.tuned, settings.cache = False, None


def init(model: BiLMModel, X: Any = None, Y: Any = None) -> None:
    """Read the biLM's files and set the width. Raises ElmoError where they can't be used."""
    shim = _shim(model)
    shim.load()
    width = shim.options.width
    if model.has_dim("nO") is None:
        model.set_dim("nO", width)
    elif model.get_dim("nO") != width:
        raise SettingsError(Errors.BILM_WIDTH.format(width=model.get_dim("nO"), got=width))


def forward(
    model: BiLMModel, X: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    """X: docs. Returns (layers, tokens, width) each; whitespace tokens get zeros."""
    init(model)
    shim, docs = _shim(model), list(X)
    settings: Settings = model.attrs["settings"]
    rows = rows_of(docs, settings.get_spans, once=settings.stateful)
    if is_train and (settings.trainable or settings.tuned):
        row_layers, backprop_rows = _train(shim, rows, settings.max_batch_tokens)
    else:
        run = partial(_predict_stateful if settings.stateful else _predict, shim, settings.max_batch_tokens)
        row_layers, backprop_rows = with_cache(settings.cache, shim, rows, run, settings.stateful), None
    options = shim.options
    Y = to_docs(docs, rows, row_layers, options.layers, options.width)
    # at the end, so that docs which fail and are tried again do not count twice
    shim.truncated.count([row.words[place] for row in rows for place in row.places], options.max_characters)

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if backprop_rows is not None:
            backprop_rows(to_rows(rows, [model.ops.to_numpy(dy) for dy in dY]))
        return []

    return [model.ops.asarray3f(y) for y in Y], backprop


def _shim(model: BiLMModel) -> BiLMShim:
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def _predict(shim: BiLMShim, max_batch_tokens: int, rows: list[Row]) -> RowLayers:
    results: RowLayers = [np.empty(0, np.float32)] * len(rows)
    for batch in token_batches([len(row.words) for row in rows], max_batch_tokens):
        layers = shim.prepare_engine().run([rows[i].words for i in batch])
        for i, values in zip(batch, layers):
            results[i] = values
    return results


def _predict_stateful(shim: BiLMShim, max_batch_tokens: int, rows: list[Row]) -> RowLayers:
    """The first spans of all docs, then the second ones, and so on; docs run side by side."""
    results: RowLayers = [np.empty(0, np.float32)] * len(rows)
    queues: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        queues.setdefault(row.doc, []).append(i)
    states: dict[int, LstmState] = {}
    for turn in range(max((len(queue) for queue in queues.values()), default=0)):
        due = [queue[turn] for queue in queues.values() if turn < len(queue)]
        for batch in token_batches([len(rows[i].words) for i in due], max_batch_tokens):
            numbers = [due[k] for k in batch]
            zero = shim.prepare_engine().zero_state(1)
            begin = [states.get(rows[i].doc, zero) for i in numbers]
            state = LstmState(torch.cat([s.h for s in begin], 2), torch.cat([s.c for s in begin], 2))
            layers, state = shim.prepare_engine().run_from([rows[i].words for i in numbers], state)
            for k, i in enumerate(numbers):
                results[i] = layers[k]
                states[rows[i].doc] = LstmState(state.h[:, :, k : k + 1], state.c[:, :, k : k + 1])
    return results


def _train(shim: BiLMShim, rows: list[Row], max_batch_tokens: int) -> tuple[RowLayers, Callable[[RowLayers], None]]:
    """Through autograd; the callback adds to the parameters' gradients, once."""
    results: RowLayers = [np.empty(0, np.float32)] * len(rows)
    outputs = []
    bilm = shim.unfreeze()
    for batch in token_batches([len(row.words) for row in rows], max_batch_tokens):
        ids = batch_to_ids_array([rows[i].words for i in batch], bilm.options.max_characters)
        with torch.enable_grad():
            layers = bilm(torch.from_numpy(ids).to(bilm.boundary.device)).layers
        outputs.append((batch, layers))
        values = layers.detach().cpu().numpy()
        for k, i in enumerate(batch):
            results[i] = values[:, k, 1 : 1 + len(rows[i].words)]

    def backprop(d_rows: RowLayers) -> None:
        for batch, layers in outputs:
            if not layers.requires_grad:  # all parameters are still to be unfrozen
                continue
            gradient = torch.zeros_like(layers)
            for k, i in enumerate(batch):
                gradient[:, k, 1 : 1 + len(rows[i].words)] = torch.from_numpy(d_rows[i])
            layers.backward(gradient)

    return results, backprop
