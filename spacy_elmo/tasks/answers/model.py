"""The registered architecture Answers: docs -> scores of each token of a context as start and end of the answer."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d

from ...errors import Errors, SettingsError, shown
from ...models.numbers import is_whole
from ...models.types import Tok2VecModel
from ..shared.sizes import check_sizes
from ..shared.tok2vec import width_of
from ..shared.torch_shim import TorchShim, shim_of
from .network import AnswersNetwork
from .questions import question_of
from .rows import Row, batches_of, rows_of, shared_words

AnswersModel = Model[list[Doc], list[Floats2d]]
_CELLS = 4_000_000  # pairs of tokens that a prediction compares at once: 16 MB for each of some matrices


def build_answers(
    tok2vec: Tok2VecModel,
    lstm_width: int = 64,
    self_attention: bool = True,
    longest_window: int = 400,
    window_overlap: int = 100,
) -> AnswersModel:
    """Build spacy-elmo.Answers.v1: bidirectional attention, self-attention, and pointers (Clark and Gardner 2018).

    Output: for each doc an array of *Shape:* (context tokens, 2), the scores of each token as the first and as the last
    token of the answer; (0, 2) for a doc without a question or a context.

    tok2vec: vectors of the tokens: x, or [x; ELMo].
    lstm_width: width of each direction of the three BiLSTM layers.
    self_attention: whether the tokens of a context also attend to one another.
    longest_window: number of tokens up to which a context is read at once. A longer one is read in windows.
    window_overlap: number of tokens that neighbouring windows share.

    Raises SettingsError if lstm_width or longest_window is no whole number of 1 or more, or window_overlap is not
    between 0 and longest_window - 1.
    """
    check_sizes(lstm_width=lstm_width, longest_window=longest_window)
    if not (is_whole(window_overlap) and 0 <= window_overlap < longest_window):
        raise SettingsError(Errors.ANSWERS_WINDOW.format(longest=longest_window, overlap=shown(window_overlap)))
    build = partial(AnswersNetwork, lstm_width=lstm_width, self_attention=self_attention)
    model: AnswersModel = Model(
        "answers",
        forward,
        init=init,
        layers=[tok2vec],
        shims=[TorchShim(build)],
        refs={"tok2vec": tok2vec},
        attrs={"dropout_rate": 0.0, "longest_window": longest_window, "window_overlap": window_overlap},
    )
    return model


def init(model: AnswersModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialise tok2vec, and the network for its width.

    X: sample docs; None: the network is not built.
    Y: ignored.
    """
    tok2vec = model.get_ref("tok2vec")
    tok2vec.initialize(X=X)
    if X:
        shim_of(model).prepare(width=width_of(tok2vec, X))


def forward(
    model: AnswersModel, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Score the tokens of the contexts.

    docs: the docs.
    is_train: whether backprop will be called. If not, the rows are divided into batches.

    Returns *Shape:* (context tokens, 2) for each doc, and backprop.
    """
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)
    parts = [question_of(doc) for doc in docs]
    rows = rows_of(parts, model.attrs["longest_window"], model.attrs["window_overlap"])
    batches = [rows] if is_train and rows else batches_of(rows, _CELLS)
    scores = [model.ops.alloc2f(0 if found is None else len(found.context), 2) for found in parts]
    steps = []
    for batch in batches:
        output, backprop_torch = shim_of(model)(_inputs(model, docs, vectors, batch, is_train), is_train)
        scored: Any = torch2xp(output, ops=model.ops)
        for row, values in zip(batch, scored):
            scores[row.doc][row.place] = values[row.used]
        steps.append((batch, output, backprop_torch))

    def backprop(d_scores: list[Floats2d]) -> list[Doc]:
        d_vectors = [model.ops.alloc2f(*x.shape) for x in vectors]
        for batch, output, backprop_torch in steps:
            d_output = model.ops.alloc(tuple(output.shape))
            for values, row in zip(d_output, batch):
                values[row.used] = d_scores[row.doc][row.place]
            d_inputs = backprop_torch(ArgsKwargs(((output,),), {"grad_tensors": xp2torch(d_output)}))
            d_flat: Any = torch2xp(d_inputs.args[0], ops=model.ops)
            end = 0
            for row in batch:
                for tokens in (row.question, row.window):
                    d_vectors[row.doc][tokens[0] : tokens[-1] + 1] += d_flat[end : end + len(tokens)]
                    end += len(tokens)
        result: list[Doc] = backprop_vectors(d_vectors)
        return result

    return scores, backprop


def _inputs(
    model: AnswersModel, docs: list[Doc], vectors: list[Floats2d], rows: list[Row], is_train: bool
) -> ArgsKwargs:
    """Return the network's arguments for these rows: the vectors of each row's question, its window, the next row's."""
    shared = [shared_words(docs[row.doc], row) for row in rows]
    questions = np.array([len(row.question) for row in rows])
    windows = np.array([len(row.window) for row in rows])
    starts = np.cumsum(questions + windows) - questions - windows
    arrays = (
        _padded([start + np.arange(count) for start, count in zip(starts, questions)]),
        _padded([start + np.arange(count) for start, count in zip(starts + questions, windows)]),
        _padded([values[:count] for values, count in zip(shared, questions)]),
        _padded([values[count:] for values, count in zip(shared, questions)]),
        questions,
        windows,
    )
    tokens = [vectors[row.doc][part[0] : part[-1] + 1] for row in rows for part in (row.question, row.window)]
    flat = xp2torch(model.ops.xp.concatenate(tokens), requires_grad=is_train)
    tensors = [xp2torch(model.ops.xp.asarray(array)) for array in arrays]
    return ArgsKwargs((flat, *tensors, model.attrs["dropout_rate"] if is_train else 0.0), {})


def _padded(values: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return *Shape:* (rows, longest), zeros at the end of the others."""
    result = np.zeros((len(values), max(map(len, values))), values[0].dtype)
    for row, array in zip(result, values):
        row[: len(array)] = array
    return result
