"""The biLM as a Thinc layer: docs -> all layers of every token."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats3d

from ..errors import SettingsError
from ..errors import shown as short
from ..formats.characters import batch_to_ids_array
from ..inference import LayerCache, row_key, token_batches
from ..modules import LstmState
from .shim import BiLMShim, bilm_shims
from .types import BiLMModel, SpanGetter

RowLayers = list[npt.NDArray[np.float32]]


class Row(NamedTuple):
    """A span as the biLM reads it, and which of its vectors are used.

    doc: index of the doc in its batch.
    words: the span's words, without whitespace tokens.
    tokens: *Shape:* (n,), indices in the doc of the tokens whose vectors come from this row.
    places: *Shape:* (n,), indices of the same tokens in `words`.
    """

    doc: int
    words: list[str]
    tokens: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]


def rows_of(docs: Sequence[Doc], get_spans: SpanGetter, *, once: bool = False) -> list[Row]:
    """Return the rows of all docs, in the order of the docs.

    If spans overlap, a token's vectors come from the span in which it is farthest from an edge.

    docs: the docs.
    get_spans: span getter that splits them.
    once: whether each token is read only once, in the order of the doc. Then overlapping spans are cut: a span starts
        where the previous one ended.

    Raises SettingsError if the spans do not belong to the docs, or do not cover all their words.
    """
    spans_of_docs = get_spans(docs)
    if not isinstance(spans_of_docs, Iterable) or len(spans_of_docs := list(spans_of_docs)) != len(docs):
        got = len(spans_of_docs) if isinstance(spans_of_docs, list) else short(spans_of_docs)
        raise SettingsError(
            f"model.get_spans returned {got} lists of spans. Expected a list for each of the {len(docs)} docs."
        )
    rows = []
    for doc_index, (doc, spans) in enumerate(zip(docs, spans_of_docs)):
        if not isinstance(spans, (list, tuple)) or not all(isinstance(span, Span) for span in spans):
            raise SettingsError(f"model.get_spans returned {short(spans)} for a doc. Expected a list of spans.")
        for span in spans:
            if span.doc is not doc:
                raise SettingsError(
                    f"model.get_spans returned the span {span.text[:50]!r} of another doc. Expected spans of the "
                    "doc itself."
                )
        if once:
            spans = _without_overlap(doc, spans)
        is_word = doc.to_array(IS_SPACE) == 0
        if len(spans) == 1 and len(spans[0]) == len(doc):
            indices = np.flatnonzero(is_word)
            if len(indices):
                words = [token.text for token in doc if not token.is_space]
                rows.append(Row(doc_index, words, indices, np.arange(len(indices))))
            continue
        best_spans = _best_spans(doc, spans, is_word)
        for k, span in enumerate(spans):
            indices = np.arange(span.start, span.end)[is_word[span.start : span.end]]
            places = np.flatnonzero(best_spans[indices] == k)
            if len(places):
                rows.append(Row(doc_index, [doc[int(i)].text for i in indices], indices[places], places))
    return rows


def _without_overlap(doc: Doc, spans: Sequence[Span]) -> list[Span]:
    cut, read = [], 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        cut.append(doc[max(span.start, read) : max(span.end, read)])
        read = max(span.end, read)
    return cut


def _best_spans(doc: Doc, spans: Sequence[Span], is_word: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return for each word the index of the span in which it is farthest from an edge, *Shape:* (tokens,).

    If two spans are equal, it is the first. At whitespace it is -1.

    is_word: *Shape:* (tokens,), false at whitespace tokens.

    Raises SettingsError if a word is in no span.
    """
    best_spans = np.full(len(doc), -1, np.int64)
    distances = np.full(len(doc), -1, np.int64)
    for k, span in enumerate(spans):
        words = np.arange(span.start, span.end)[is_word[span.start : span.end]]
        from_start = np.arange(len(words))
        from_edge = np.minimum(from_start, from_start[::-1])
        better = from_edge > distances[words]
        best_spans[words[better]] = k
        distances[words[better]] = from_edge[better]
    left_out = np.flatnonzero(is_word & (best_spans < 0))
    if len(left_out):
        raise SettingsError(
            f"model.get_spans returned no span for token {int(left_out[0])} ({doc[int(left_out[0])].text[:50]!r}). "
            "Expected spans that cover every token."
        )
    return best_spans


def to_docs(
    docs: Sequence[Doc], rows: Sequence[Row], row_layers: Sequence[npt.NDArray[np.float32]], layers: int, width: int
) -> list[Floats3d]:
    """Return the layers of each doc, *Shape:* (layers, tokens, width), with zeros for whitespace tokens.

    docs: the docs.
    rows: what `rows_of` returned for them.
    row_layers: *Shape:* (layers, words, width) for each row.
    layers: number of layers.
    width: width of the layers.
    """
    partial: list[npt.NDArray[np.float32] | None] = [None] * len(docs)
    for row, values in zip(rows, row_layers):
        result = partial[row.doc]
        if result is None and len(row.tokens) == len(docs[row.doc]):  # the doc consists of this row
            shared = not values.flags.writeable or values.base is not None  # with a cache, or with a batch
            partial[row.doc] = values.copy() if shared else values
            continue
        if result is None:
            result = partial[row.doc] = np.zeros((layers, len(docs[row.doc]), width), np.float32)
        result[:, row.tokens] = values[:, row.places]
    complete = [
        np.zeros((layers, len(doc), width), np.float32) if result is None else result
        for doc, result in zip(docs, partial)
    ]
    return complete  # type: ignore[return-value]  # thinc's Floats3d is a protocol of numpy and cupy arrays


def to_rows(rows: Sequence[Row], doc_layers: Sequence[Floats3d]) -> list[npt.NDArray[np.float32]]:
    """Return the gradients of the rows' layers: the transpose of `to_docs`.

    rows: what `rows_of` returned for the docs.
    doc_layers: gradients of the docs' layers, *Shape:* (layers, tokens, width) for each doc.

    Returns *Shape:* (layers, words, width) for each row.
    """
    results = []
    for row in rows:
        values = np.asarray(doc_layers[row.doc])
        result = np.zeros((values.shape[0], len(row.words), values.shape[2]), np.float32)
        result[:, row.places] = values[:, row.tokens]
        results.append(result)
    return results


__all__ = ["LayerCache", "with_cache"]


def with_cache(
    cache: LayerCache | None, shim: BiLMShim, rows: list[Row], run: Callable[[list[Row]], RowLayers], stateful: bool
) -> RowLayers:
    """Return the layers of rows, from the cache if it has them, else from `run`. Equal rows are run once.

    cache: the cache; None: all rows are run.
    shim: the biLM. Its fingerprint and matmul type are part of the keys.
    rows: the rows, in the order of the docs.
    run: returns the layers of rows, *Shape:* (layers, words, width) each.
    stateful: whether a row depends on the previous rows of its doc. Then its key depends on theirs, and if any row of
        a doc is missing, all rows of the doc are run.

    Returns *Shape:* (layers, words, width) for each row. Arrays that a cache may share are read-only.
    """
    if cache is None or not cache.is_open:
        return run(rows)
    keys = _keys(rows, f"{shim.compute_fingerprint()} {shim.dtype}".encode(), stateful)
    # A file of a stranger may have arrays of any shape.
    shapes = [(shim.options.layers, len(row.words), shim.options.width) for row in rows]
    cached = [
        layers if layers is not None and layers.shape == shape else None
        for layers, shape in zip(cache.get(keys), shapes)
    ]
    if stateful:
        incomplete = {row.doc for row, layers in zip(rows, cached) if layers is None}
        missing = [i for i, row in enumerate(rows) if row.doc in incomplete]
    else:
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        missing = [i for i, layers in enumerate(cached) if layers is None and first[keys[i]] == i]
    computed = dict(zip((keys[i] for i in missing), run([rows[i] for i in missing]))) if missing else {}
    for values in computed.values():  # equal rows share one array
        values.setflags(write=False)
    cache.put(list(computed), list(computed.values()))
    return [computed[key] if layers is None else layers for key, layers in zip(keys, cached)]


def _keys(rows: list[Row], fingerprint: bytes, stateful: bool) -> list[bytes]:
    keys: list[bytes] = []
    for i, row in enumerate(rows):
        follows = stateful and i > 0 and rows[i - 1].doc == row.doc
        keys.append(row_key(fingerprint, row.words, keys[-1] if follows else b""))
    return keys


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
        raise SettingsError(
            f"width is {model.get_dim('nO')} in spacy-elmo.BiLM.v1, but its files give {width}. Set width to "
            f"{width}, or to null."
        )


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
