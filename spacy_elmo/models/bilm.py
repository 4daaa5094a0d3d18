"""The biLM as a Thinc layer: docs -> all layers of every token."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import srsly
import torch
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats3d

from ..errors import SettingsError, check_whole, shown
from ..formats.characters import batch_to_ids_array
from ..inference import CACHED_WORDS, Precision, token_batches
from .shim import BiLMShim, read_saved
from .span_getters import build_sentences
from .types import BiLMModel, SpanGetter

NAME = "elmo_bilm"
RowLayers = list[npt.NDArray[np.float32]]  # *Shape:* (layers, words, width) for each row


@dataclass
class Settings:
    """The settings of the layer (see `build_bilm`), without those of its shim.

    They are in one object because Thinc would save separate attributes: a loaded model follows its own config.
    """

    get_spans: SpanGetter
    stateful: bool
    trainable: bool


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
    weight_file: path of the official weight file; null: the embedded biLM. The weights are read when they are first
        needed.
    get_spans: span getter that returns what the biLM reads as one sentence; null: spacy-elmo.sentences.v1.
    precision: type in which weights are read: "float32"; "bfloat16"; "auto": bfloat16 if that is faster.
    stateful: whether each sentence of a doc starts from the LSTM state after the previous sentence. The first sentence
        of each doc starts from the zero state. A doc without sentence boundaries is one sentence, or windows if it is
        long.
    trainable: whether the biLM's weights are trained if this architecture is part of a trained model.
    cached_words: number of words whose character-encoder vectors are cached, the most recently used ones; 0: none.
    width: expected width of the layers; null: any. It is needed only in a model that must know its sizes before any
        file is read. `replace_listeners` takes it from the listener.
    bilm: in place of the two files, a folder with both, the folder of a pretraining run (for its model-best),
        "en_core", or the name of a published biLM that was downloaded or of one in an installed package; null: the two
        files.

    Raises SettingsError if a setting cannot be used, and if stateful and trainable are both true. The biLM is looked
    for when it is first needed: a config may be that of a saved pipeline, which has its own weights.
    """
    if stateful and trainable:
        raise SettingsError("model.stateful and model.trainable are both true. Set one of them to false.")
    if width is not None:
        check_whole(width=width)
    shim = BiLMShim(options_file, weight_file, precision, cached_words, bilm)
    return Model(
        NAME,
        forward,
        init=init,
        dims={"nO": width},
        attrs={"settings": Settings(get_spans or build_sentences(), stateful, trainable)},
        shims=[shim],
    )


def init(model: BiLMModel, X: Any = None, Y: Any = None) -> None:
    """Read the biLM's files, unless its weights are loaded, and set the width. Raises ElmoError if they don't fit."""
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


def _shim(model: BiLMModel) -> BiLMShim:
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    return shim


def forward(
    model: BiLMModel, X: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    """Run the biLM over docs. Backprop returns no gradients of docs.

    Returns *Shape:* (layers, tokens, width) for each doc, with zeros for whitespace tokens.
    """
    init(model)
    shim, docs = _shim(model), list(X)
    settings: Settings = model.attrs["settings"]
    rows = rows_of(docs, settings.get_spans, once=settings.stateful)
    backprop_rows: Callable[[RowLayers], None] | None = None
    if is_train and (settings.trainable or shim.pipe_settings.tuned):
        row_layers, backprop_rows = _train(shim, rows)
    else:
        cache = shim.pipe_settings.cache
        cache = cache if cache is not None and cache.is_open else None
        chains = [row.doc for row in rows] if settings.stateful else None
        row_layers = shim.load().run([row.words for row in rows], shim.pipe_settings.max_batch_tokens, chains, cache)
    options = shim.options
    Y = to_docs(docs, rows, row_layers, options.layers, options.width)
    # at the end, so that the docs of a batch that fails and is run again are not counted twice
    shim.truncated.count([row.words[place] for row in rows for place in row.places], options.max_characters)

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if backprop_rows is not None:
            backprop_rows(to_rows(rows, [model.ops.to_numpy(dy) for dy in dY]))
        return []

    return [model.ops.asarray3f(y) for y in Y], backprop


class Row(NamedTuple):
    """A span as the biLM reads it, and which of its vectors are used.

    doc: index of the doc in its batch.
    words: the span's words, without whitespace tokens.
    tokens, places: *Shape:* (n,), indices in the doc and in `words` of the tokens whose vectors come from this row.
    """

    doc: int
    words: list[str]
    tokens: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]


def rows_of(docs: Sequence[Doc], get_spans: SpanGetter, *, once: bool = False) -> list[Row]:
    """Return the rows of all docs, in order. Of overlapping spans, a word is used where it is farther from an edge.

    once: whether each token is read only once, in the order of the doc: spans are cut where the one before ended.
    """
    spans_of_docs = get_spans(docs)
    if not isinstance(spans_of_docs, Iterable) or len(spans_of_docs := list(spans_of_docs)) != len(docs):
        got = len(spans_of_docs) if isinstance(spans_of_docs, list) else shown(spans_of_docs)
        raise SettingsError(
            f"model.get_spans returned {got} lists of spans. Expected a list for each of the {len(docs)} docs."
        )
    rows = []
    for doc_index, (doc, spans) in enumerate(zip(docs, spans_of_docs)):
        if not isinstance(spans, (list, tuple)) or not all(isinstance(s, Span) and s.doc is doc for s in spans):
            raise SettingsError(f"model.get_spans returned {shown(spans)} for a doc. Expected a list of its spans.")
        if once:
            cut, read = [], 0
            for span in sorted(spans, key=lambda span: (span.start, span.end)):
                cut.append(doc[max(span.start, read) : max(span.end, read)])
                read = max(span.end, read)
            spans = cut
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


def _best_spans(doc: Doc, spans: Sequence[Span], is_word: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return for each token the first span in which it is farthest from an edge; -1 at whitespace."""
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


def to_docs(docs: Sequence[Doc], rows: Sequence[Row], row_layers: RowLayers, layers: int, width: int) -> list[Floats3d]:
    """Return the layers of each doc, *Shape:* (layers, tokens, width), with zeros for whitespace tokens."""
    results: list[Any] = [None] * len(docs)
    for row, values in zip(rows, row_layers):
        if len(row.tokens) == len(docs[row.doc]):  # the doc consists of this row
            shared = not values.flags.writeable or values.base is not None  # with a cache, or with a batch
            results[row.doc] = values.copy() if shared else values
            continue
        if results[row.doc] is None:
            results[row.doc] = np.zeros((layers, len(docs[row.doc]), width), np.float32)
        results[row.doc][:, row.tokens] = values[:, row.places]
    for number, doc in enumerate(docs):
        if results[number] is None:
            results[number] = np.zeros((layers, len(doc), width), np.float32)
    return results


def to_rows(rows: Sequence[Row], doc_layers: Sequence[Floats3d]) -> RowLayers:
    """Return the gradients of the rows' layers from those of the docs' layers: the transpose of `to_docs`."""
    results = []
    for row in rows:
        values = np.asarray(doc_layers[row.doc])
        result = np.zeros((values.shape[0], len(row.words), values.shape[2]), np.float32)
        result[:, row.places] = values[:, row.tokens]
        results.append(result)
    return results


def _train(shim: BiLMShim, rows: list[Row]) -> tuple[RowLayers, Callable[[RowLayers], None]]:
    """Run rows through autograd. The callback adds to the gradients of the weights; it can be called once."""
    results: RowLayers = [np.empty(0, np.float32)] * len(rows)
    outputs = []
    bilm = shim.unfreeze()
    for batch in token_batches([len(row.words) for row in rows], shim.pipe_settings.max_batch_tokens):
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


def load_model(model: BiLMModel, data: object) -> None:
    """Load what model.to_bytes() returned: a biLM of any width, or a user's own model of the same layers.

    Call it in `refusing_damage`: damaged data raise errors of any class. A biLM then stays as it was.
    """
    content = srsly.msgpack_loads(data)
    if model.name != NAME:
        if not model.can_from_dict(content, strict=False):
            raise ValueError("it is of a model with other layers")
        model.from_dict(content)
        return
    message = content["shims"][0][0]
    options, arrays = read_saved(message)
    node = {"index": 0, "name": NAME, "dims": {"nO": options.width}, "refs": {}}
    if content != {"nodes": [node], "attrs": [{}], "params": [{}], "shims": [[message]]}:
        raise ValueError("it is no model of a biLM")
    _shim(model).set_weights(options, arrays)
    model.set_dim("nO", options.width, force=True)
