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
    """The settings of the layer.

    They are in one object, in place of separate attributes, because Thinc would save separate attributes: a loaded
    model follows its own config. `serve_component` sets those that have defaults.

    get_spans: span getter that returns what the biLM reads as one sentence.
    stateful: whether each sentence of a doc starts from the LSTM state after the previous one.
    trainable: whether the biLM is trained, by its own config.
    tuned: whether the biLM is trained, because the elmo pipe is not frozen. Copies that replace listeners do not
        inherit it.
    max_batch_tokens: number of words that run at once, at most.
    cache: cache of layers. It is used once it is open; None: none is used.
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
    """Build the biLM as a Thinc layer.

    shim: the holder of the biLM's weights.
    get_spans: span getter that returns what the biLM reads as one sentence.
    stateful: whether each sentence of a doc starts from the LSTM state after the previous one. The first sentence of
        each doc starts from the zero state.
    trainable: whether the biLM is trained. Then backprop adds gradients to those of the shim's weights.
    width: expected width of the layers; None: not known before the files are read.
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
    """Set what an elmo pipe decides about its biLM. A model that is not a biLM is left as it is.

    model: the pipe's model.
    name: name of the pipe, for warnings.
    max_batch_tokens: number of words that run at once, at most.
    tuned: whether the biLM is trained, because the pipe is not frozen.
    learn_rate_factor: factor of the optimizer's learning rate for the biLM.
    cache: cache of layers, for training components on a frozen biLM; None: none.
    """
    for shim in bilm_shims(model):
        shim.truncated.where = f"the pipe's n_truncated: nlp.get_pipe({name!r}).n_truncated"
        shim.learn_rate_factor = learn_rate_factor
    if "settings" in model.attrs:
        settings: Settings = model.attrs["settings"]
        settings.max_batch_tokens, settings.tuned, settings.cache = max_batch_tokens, tuned, cache


def leave_component(model: BiLMModel) -> None:
    """Undo `serve_component` for a copy that replaces a listener: it is trained only if its own config says so.

    model: the copy.
    """
    for shim in bilm_shims(model):
        shim.learn_rate_factor = 1.0
    if "settings" in model.attrs:
        settings: Settings = model.attrs["settings"]
        settings.tuned, settings.cache = False, None


def init(model: BiLMModel, X: Any = None, Y: Any = None) -> None:
    """Read the biLM's files, unless its weights are loaded, and set the width.

    X: ignored.
    Y: ignored.

    Raises ElmoError if the files cannot be used, and SettingsError if their width is not the expected one.
    """
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
    """Run the biLM over docs.

    X: the docs.
    is_train: whether backprop will be called. It matters only if the biLM is trained.

    Returns *Shape:* (layers, tokens, width) for each doc, with zeros for whitespace tokens, and backprop, which
    returns no gradients of docs. Raises ElmoError if the biLM or the spans cannot be used.
    """
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
    # at the end, so that the docs of a batch that fails and is run again are not counted twice
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
    """Run the first rows of all docs together, then the second rows from the states after the first, and so on."""
    results: RowLayers = [np.empty(0, np.float32)] * len(rows)
    queues: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        queues.setdefault(row.doc, []).append(i)
    states: dict[int, LstmState] = {}
    for turn in range(max((len(queue) for queue in queues.values()), default=0)):
        due = [queue[turn] for queue in queues.values() if turn < len(queue)]
        for batch in token_batches([len(rows[i].words) for i in due], max_batch_tokens):
            indices = [due[k] for k in batch]
            zero = shim.prepare_engine().zero_state(1)
            previous = [states.get(rows[i].doc, zero) for i in indices]
            state = LstmState(torch.cat([s.h for s in previous], 2), torch.cat([s.c for s in previous], 2))
            layers, state = shim.prepare_engine().run_from([rows[i].words for i in indices], state)
            for k, i in enumerate(indices):
                results[i] = layers[k]
                states[rows[i].doc] = LstmState(state.h[:, :, k : k + 1], state.c[:, :, k : k + 1])
    return results


def _train(shim: BiLMShim, rows: list[Row], max_batch_tokens: int) -> tuple[RowLayers, Callable[[RowLayers], None]]:
    """Run rows through autograd. The callback adds to the gradients of the weights; it can be called once."""
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
            if not layers.requires_grad:  # gradual unfreezing has not reached any part yet
                continue
            gradient = torch.zeros_like(layers)
            for k, i in enumerate(batch):
                gradient[:, k, 1 : 1 + len(rows[i].words)] = torch.from_numpy(d_rows[i])
            layers.backward(gradient)

    return results, backprop
