"""The registered architecture Answers: docs -> scores of each token of a context as start and end of the answer."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from spacy.attrs import IS_PUNCT, IS_SPACE, LOWER
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn import functional as F

from ...errors import SettingsError, shown
from ...models.types import Tok2VecModel, is_whole
from ..shared import BiLSTM, TorchShim, check_sizes, shim_of, width_of
from .questions import Parts, question_of

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.float32]


class Row(NamedTuple):
    """A question and a window of its context.

    doc: index of the doc in its batch.
    question: *Shape:* (question tokens,), indices in the doc.
    window: *Shape:* (window tokens,), indices in the doc.
    used: the part of the window whose scores are used, as a slice of `window`.
    place: the same part, as a slice of the context.
    """

    doc: int
    question: Indices
    window: Indices
    used: slice
    place: slice


def rows_of(parts: Iterable[Parts | None], longest: int, overlap: int) -> list[Row]:
    """Return the rows of docs, in the order of the docs and of their windows. Each token of a context is used once.

    parts: question and context of each doc; None: the doc has no rows.
    longest: number of tokens in a window; the last may have fewer.
    overlap: number of tokens that neighbouring windows share. Of these, each window uses the half that is nearer to it.
    """
    rows = []
    for doc, found in enumerate(parts):
        if found is None:
            continue
        question = np.arange(found.question.start, found.question.end)
        start, end = found.context.start, found.context.end
        used = start
        while True:
            stop = min(start + longest, end)
            last = stop if stop == end else stop - overlap // 2
            place = slice(used - found.context.start, last - found.context.start)
            rows.append(Row(doc, question, np.arange(start, stop), slice(used - start, last - start), place))
            if stop == end:
                break
            start, used = stop - overlap, last
    return rows


def shared_words(doc: Doc, row: Row) -> Flags:
    """Return for each token of a row, first the question's, whether the other part has its word, in lower case.

    Punctuation and whitespace never count.

    *Shape:* (question tokens + window tokens,)
    """
    attributes = doc.to_array([LOWER, IS_PUNCT, IS_SPACE])
    words = np.where(attributes[:, 1:].any(axis=1), 0, attributes[:, 0])
    question, window = words[row.question], words[row.window]
    shared = np.concatenate([np.isin(question, window[window > 0]), np.isin(window, question[question > 0])])
    result: Flags = shared.astype(np.float32)
    return result


def batches_of(rows: Sequence[Row], cells: int) -> list[list[Row]]:
    """Divide rows into batches of similar lengths, so that the memory of predictions has a bound.

    rows: the rows.
    cells: number of pairs of tokens, padding included, that a batch compares, unless it is a single row.
    """
    batches: list[list[Row]] = []
    longest_question = 0
    for row in sorted(rows, key=lambda row: (len(row.window), len(row.question))):
        window, question = len(row.window), len(row.question)
        longest_question = max(longest_question, question)
        if not batches or (len(batches[-1]) + 1) * window * (window + longest_question) > cells:
            batches.append([])
            longest_question = question
        batches[-1].append(row)
    return batches


_FAR_BELOW = -1e9  # a score that softmax turns into 0


class Similarity(nn.Module):
    """How similar the vectors of two sequences are: w_a a + w_b b + w_ab (a * b) (Seo et al. 2017).

    width: width of both.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_first = nn.Linear(width, 1, bias=False)
        self.of_second = nn.Linear(width, 1, bias=False)
        self.of_both = nn.Parameter(torch.randn(width) / width**0.5)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return *Shape:* (rows, m, n) for first (rows, m, width) and second (rows, n, width)."""
        both = (first * self.of_both) @ second.transpose(1, 2)
        result: Tensor = both + self.of_first(first) + self.of_second(second).transpose(1, 2)
        return result


class AnswersNetwork(nn.Module):
    """Scores of each token of a context as the start and as the end of the answer.

    width: width of the tokens' vectors.
    lstm_width: width of each direction of the BiLSTMs.
    self_attention: whether the tokens of a context attend to one another.
    """

    def __init__(self, width: int, lstm_width: int, self_attention: bool) -> None:
        super().__init__()
        both = 2 * lstm_width
        self.project = nn.Linear(width, both)
        self.read = BiLSTM(both + 1, lstm_width)
        self.compare = Similarity(both)
        self.merge = nn.Linear(4 * both, both)
        self.model = BiLSTM(both, lstm_width)
        self.compare_self = Similarity(both) if self_attention else None
        self.merge_self = nn.Linear(3 * both, both) if self_attention else None
        self.start = nn.Linear(both, 1)
        self.read_end = BiLSTM(both, lstm_width)
        self.end = nn.Linear(both, 1)

    def forward(
        self,
        vectors: Tensor,
        question: Tensor,
        window: Tensor,
        question_shared: Tensor,
        window_shared: Tensor,
        question_lengths: Tensor,
        window_lengths: Tensor,
        dropout: float,
    ) -> Tensor:
        """Return *Shape:* (rows, window tokens, 2), the scores of start and end. Those of padding mean nothing.

        vectors: *Shape:* (tokens, width), of all tokens of the batch.
        question, window: *Shape:* (rows, question tokens), (rows, window tokens), indices of tokens in `vectors`.
        question_shared, window_shared: of the same shapes, 1.0 if the other part of the row has this word.
        question_lengths, window_lengths: *Shape:* (rows,), number of tokens without padding.
        dropout: rate of dropout; 0.0 for predictions.
        """
        projected = self.project(F.dropout(vectors, dropout))
        q = self._read(projected[question], question_shared, question_lengths, dropout)
        c = self._read(projected[window], window_shared, window_lengths, dropout)
        is_question, is_window = _mask(question, question_lengths), _mask(window, window_lengths)

        similar = self.compare(c, q).masked_fill(~is_question[:, None], _FAR_BELOW)  # (rows, window, question)
        of_question = similar.softmax(dim=2) @ q
        weights = similar.amax(dim=2).masked_fill(~is_window, _FAR_BELOW).softmax(dim=1)
        of_window = weights[:, None] @ c  # (rows, 1, width)
        x = F.relu(self.merge(torch.cat([c, of_question, c * of_question, of_question * of_window], dim=-1)))
        x = F.dropout(x, dropout)

        x = self.model(x, window_lengths)
        if self.compare_self is not None and self.merge_self is not None:
            modelled = F.dropout(x, dropout)
            itself = torch.eye(window.shape[1], dtype=torch.bool, device=window.device)
            similar = self.compare_self(modelled, modelled)
            similar = similar.masked_fill(~is_window[:, None] | itself, _FAR_BELOW)
            others = similar.softmax(dim=2) @ modelled
            x = x + F.relu(self.merge_self(torch.cat([modelled, others, modelled * others], dim=-1)))
        x = F.dropout(x, dropout)
        ends = F.dropout(self.read_end(x, window_lengths), dropout)
        return torch.cat([self.start(x), self.end(ends)], dim=-1)

    def _read(self, projected: Tensor, shared: Tensor, lengths: Tensor, dropout: float) -> Tensor:
        x = torch.cat([projected, shared[:, :, None]], dim=-1)
        return F.dropout(self.read(x, lengths), dropout)


def _mask(indices: Tensor, lengths: Tensor) -> Tensor:
    """Return *Shape:* (rows, tokens), true at tokens and false at padding."""
    return torch.arange(indices.shape[1], device=indices.device)[None] < lengths[:, None]


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
        raise SettingsError(
            f"longest_window is {longest_window} and window_overlap is {shown(window_overlap)}. Expected whole "
            "numbers with longest_window >= 1 and 0 <= window_overlap < longest_window."
        )
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
