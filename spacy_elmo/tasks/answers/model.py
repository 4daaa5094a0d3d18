"""The registered architecture Answers: docs -> scores of each token of a context as start and end of the answer."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from spacy.attrs import IS_PUNCT, IS_SPACE, LOWER
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from ...errors import SettingsError, check_whole, shown
from ...models.types import Tok2VecModel, is_whole
from ..shared import BiLSTM, TorchShim, batches_of, init_network, is_inside, run_network, texts_of
from . import KEYS

AnswersModel = Model[list[Doc], list[Floats2d]]
_CELLS = 4_000_000  # pairs of tokens that a prediction compares at once: 16 MB for each of some matrices
_FAR_BELOW = -1e9  # a score that softmax turns into 0


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

    lstm_width: width of each direction of the three BiLSTM layers.
    self_attention: whether the tokens of a context also attend to one another.
    longest_window: number of tokens up to which a context is read at once. A longer one is read in windows.
    window_overlap: number of tokens that neighbouring windows share, from 0 to longest_window - 1.
    """
    check_whole(lstm_width=lstm_width, longest_window=longest_window)
    if not (is_whole(window_overlap) and 0 <= window_overlap < longest_window):
        raise SettingsError(
            f"longest_window is {longest_window} and window_overlap is {shown(window_overlap)}. Expected whole "
            "numbers with longest_window >= 1 and 0 <= window_overlap < longest_window."
        )
    return Model(
        "answers",
        _forward,
        init=init_network,
        layers=[tok2vec],
        shims=[TorchShim(partial(AnswersNetwork, lstm_width=lstm_width, self_attention=self_attention))],
        refs={"tok2vec": tok2vec},
        attrs={"dropout_rate": 0.0, "longest_window": longest_window, "window_overlap": window_overlap},
    )


def _forward(
    model: AnswersModel, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)
    texts = [texts_of(doc, KEYS) for doc in docs]
    windows = windows_of(texts, model.attrs["longest_window"], model.attrs["window_overlap"])
    batches = batches_of([window.sizes for window in windows], _CELLS, _cells)
    if is_train and windows:
        batches = [list(range(len(windows)))]

    def given(numbers: list[int]) -> tuple[Any, ...]:
        batch = [windows[number] for number in numbers]
        places = [(window.doc, part) for window in batch for part in (window.question, window.window)]
        shared = np.concatenate([shared_words(docs[window.doc], window) for window in batch])
        return places, torch.from_numpy(shared), [window.sizes for window in batch]

    outputs, backprop_network = run_network(model, vectors, batches, given, is_train)
    scores = [model.ops.alloc2f(0 if found is None else len(found[1]), 2) for found in texts]
    for window, values in zip(windows, outputs):
        scores[window.doc][window.place] = values[window.used]

    def backprop(d_scores: list[Floats2d]) -> list[Doc]:
        gradients = [model.ops.alloc2f(window.sizes[0], 2) for window in windows]
        for window, gradient in zip(windows, gradients):
            gradient[window.used] = d_scores[window.doc][window.place]
        result: list[Doc] = backprop_vectors(backprop_network(gradients))
        return result

    return scores, backprop


class Window(NamedTuple):
    """A question and a window of its context."""

    doc: int  # index in the batch
    question: slice  # of the doc's tokens
    window: slice
    used: slice  # the part of the window whose scores are used
    place: slice  # the same part, in the context

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of tokens of the window, and of the question."""
        return self.window.stop - self.window.start, self.question.stop - self.question.start


def windows_of(texts: Iterable[Sequence[Span] | None], longest: int, overlap: int) -> list[Window]:
    """Return the windows of docs' contexts. Of tokens that two windows share, each uses the half nearer to it."""
    windows = []
    for doc, found in enumerate(texts):
        if found is None:
            continue
        question, context = (slice(part.start, part.end) for part in found)
        start = used = context.start
        while True:
            stop = min(start + longest, context.stop)
            last = stop if stop == context.stop else stop - overlap // 2
            place = slice(used - context.start, last - context.start)
            windows.append(Window(doc, question, slice(start, stop), slice(used - start, last - start), place))
            if stop == context.stop:
                break
            start, used = stop - overlap, last
    return windows


def shared_words(doc: Doc, where: Window) -> Any:
    """Return for each token, first the question's, 1 if the other part has this word, in lower case, no punctuation."""
    attributes = doc.to_array([LOWER, IS_PUNCT, IS_SPACE])
    words = np.where(attributes[:, 1:].any(axis=1), 0, attributes[:, 0])
    question, window = words[where.question], words[where.window]
    shared = [np.isin(question, window[window > 0]), np.isin(window, question[question > 0])]
    return np.concatenate(shared).astype(np.float32)


def _cells(window: int, question: int) -> int:
    return window * (window + question)


class AnswersNetwork(nn.Module):
    """Scores of each token of a context as the start and as the end of the answer."""

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

    def forward(self, vectors: Tensor, shared: Tensor, sizes: Sequence[tuple[int, int]], dropout: float) -> Tensor:
        """Return *Shape:* (rows, window tokens, 2), the scores of start and end. Those of padding mean nothing.

        vectors: (tokens, width), of each row's question and its window. shared: (tokens,), from `shared_words`.
        sizes: number of tokens of each row's window, and of its question.
        """
        x = torch.cat([self.project(F.dropout(vectors, dropout)), shared.to(vectors.device)[:, None]], dim=-1)
        windows, questions = torch.tensor(sizes, device=x.device).T
        parts = x.split([size for window, question in sizes for size in (question, window)])
        q = F.dropout(self.read(pad_sequence(parts[::2], batch_first=True), questions), dropout)
        c = F.dropout(self.read(pad_sequence(parts[1::2], batch_first=True), windows), dropout)
        is_question, is_window = is_inside(questions, q.shape[1]), is_inside(windows, c.shape[1])

        similar = self.compare(c, q).masked_fill(~is_question[:, None], _FAR_BELOW)  # (rows, window, question)
        of_question = similar.softmax(dim=2) @ q
        weights = similar.amax(dim=2).masked_fill(~is_window, _FAR_BELOW).softmax(dim=1)
        of_window = weights[:, None] @ c  # (rows, 1, width)
        x = F.relu(self.merge(torch.cat([c, of_question, c * of_question, of_question * of_window], dim=-1)))
        x = F.dropout(x, dropout)

        x = self.model(x, windows)
        if self.compare_self is not None and self.merge_self is not None:
            modelled = F.dropout(x, dropout)
            itself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
            itself = itself & (windows > 1)[:, None, None]  # a single token attends to itself, not to padding
            similar = self.compare_self(modelled, modelled)
            similar = similar.masked_fill(~is_window[:, None] | itself, _FAR_BELOW)
            others = similar.softmax(dim=2) @ modelled
            x = x + F.relu(self.merge_self(torch.cat([modelled, others, modelled * others], dim=-1)))
        x = F.dropout(x, dropout)
        ends = F.dropout(self.read_end(x, windows), dropout)
        return torch.cat([self.start(x), self.end(ends)], dim=-1)


class Similarity(nn.Module):
    """How similar the vectors of two sequences are: w_a a + w_b b + w_ab (a * b) (Seo et al. 2017)."""

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
