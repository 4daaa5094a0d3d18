"""The architecture spacy-elmo.SemanticRoles.v1."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Linear, Model, torch2xp, with_array, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn import functional as F

from ...models.types import Tok2VecModel
from ..shared import BiLSTM, TorchShim, batches_of, check_sizes, init_tok2vec, shim_of


class Row(NamedTuple):
    """The tokens around a predicate.

    doc: index of the doc in its batch.
    predicate: index of the predicate's token in its doc.
    start, end: the row is doc[start:end].
    """

    doc: int
    predicate: int
    start: int
    end: int


class RoleScores(NamedTuple):
    """Scores, or their gradients.

    predicates: for each doc, the logits that its tokens are predicates. *Shape:* (tokens, 1).
    rows: that the roles were scored for.
    roles: for each row, the scores of its tokens' tags. *Shape:* (length, 1 + 2 * labels).
    """

    predicates: list[Floats2d]
    rows: list[Row]
    roles: list[Floats2d]


# docs, and a function that chooses rows by the scores of predicates
RoleInput = tuple[Sequence[Doc], Callable[[list[Floats2d]], list[Row]]]
RoleModel = Model[RoleInput, RoleScores]
_RowModel = Model[tuple[list[Floats2d], list[Row]], list[Floats2d]]
MAX_BATCH_TOKENS = 16384


def build_semantic_roles(tok2vec: Tok2VecModel, lstm_width: int = 100, depth: int = 2) -> RoleModel:
    """Build spacy-elmo.SemanticRoles.v1: docs -> scores of predicates, and of the roles of those that are chosen.

    The tok2vec runs once for each doc. A linear layer on its output scores each token as a predicate. A BiLSTM runs
    for each predicate, over the tokens of its sentence.

    tok2vec: any of spaCy's, or spacy-elmo.ElmoTok2Vec.v1.
    lstm_width: of each direction of the BiLSTM.
    depth: number of its layers.

    Raises SettingsError if a size is no whole number of 1 or more.
    """
    check_sizes(lstm_width=lstm_width, depth=depth)
    finder: Model[list[Floats2d], list[Floats2d]] = with_array(Linear(nO=1))
    shim = TorchShim(partial(RoleNetwork, lstm_width=lstm_width, depth=depth))
    labeller: _RowModel = Model("role_rows", _label, attrs={"dropout_rate": 0.0}, shims=[shim])
    return Model(
        "semantic_roles",
        _forward,
        init=_init,
        layers=[tok2vec, finder, labeller],
        refs={"tok2vec": tok2vec, "finder": finder, "labeller": labeller},
        dims={"nO": None},  # number of labels
    )


def _init(model: RoleModel, X: RoleInput | None = None, Y: Any = None) -> None:
    if width := init_tok2vec(model, None if X is None else list(X[0])):
        model.get_ref("finder").initialize(X=[model.ops.alloc2f(1, width)])
        shim_of(model.get_ref("labeller")).prepare(width=width, tags=1 + 2 * model.get_dim("nO"))


def _forward(model: RoleModel, X: RoleInput, is_train: bool) -> tuple[RoleScores, Callable[[RoleScores], list[Doc]]]:
    docs, choose = X
    vectors, backprop_tok2vec = model.get_ref("tok2vec")(list(docs), is_train)
    predicates, backprop_finder = model.get_ref("finder")(vectors, is_train)
    rows = choose(predicates)
    roles, backprop_labeller = model.get_ref("labeller")((vectors, rows), is_train)

    def backprop(gradients: RoleScores) -> list[Doc]:
        d_vectors = backprop_finder(gradients.predicates)
        for total, part in zip(d_vectors, backprop_labeller(gradients.roles)[0]):
            total += part
        docs: list[Doc] = backprop_tok2vec(d_vectors)
        return docs

    return RoleScores(predicates, rows, roles), backprop


def _label(
    model: _RowModel, X: tuple[list[Floats2d], list[Row]], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], tuple[list[Floats2d], list[Row]]]]:
    """Score the tags of all rows, in batches of rows with similar lengths."""
    vectors, rows = X
    ops, shim = model.ops, shim_of(model)
    rate = model.attrs["dropout_rate"] if is_train else 0.0
    sizes = [len(part) for part in vectors]
    firsts = np.cumsum([0, *sizes])
    flat = xp2torch(ops.xp.concatenate(vectors) if vectors else ops.alloc2f(0, 0), requires_grad=is_train)
    scores: list[Any] = [None] * len(rows)
    steps = []
    for numbers in row_batches(rows):
        batch = [rows[number] for number in numbers]
        lengths = np.asarray([row.end - row.start for row in batch])
        starts = np.asarray([firsts[row.doc] + row.start for row in batch])
        marked = np.asarray([row.predicate - row.start for row in batch])
        places = starts[:, None] + np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
        arrays = (torch.from_numpy(array).to(flat.device) for array in (places, lengths, marked))
        output, backprop_batch = shim(ArgsKwargs((flat, *arrays, rate), {}), is_train)
        array: Any = torch2xp(output.detach(), ops=ops)
        for row, number in enumerate(numbers):
            scores[number] = array[row, : lengths[row]]
        steps.append((numbers, output, backprop_batch))

    def backprop(gradients: list[Floats2d]) -> tuple[list[Floats2d], list[Row]]:
        for numbers, output, backprop_batch in steps:
            padded = ops.xp.zeros(output.shape, dtype="f")
            for row, number in enumerate(numbers):
                padded[row, : len(gradients[number])] = gradients[number]
            backprop_batch(ArgsKwargs(((output,),), {"grad_tensors": (xp2torch(padded),)}))
        if flat.grad is None:
            return [ops.xp.zeros_like(part) for part in vectors], rows
        d_flat: Any = torch2xp(flat.grad, ops=ops)
        return [d_flat[first : first + size] for first, size in zip(firsts, sizes)], rows

    return scores, backprop


def rows_of(docs: Sequence[Doc], predicates: Sequence[Sequence[int]], reach: int) -> list[Row]:
    """Return a row for each predicate: its sentence, or the doc if it has no sentence boundaries.

    predicates: for each doc, tokens.
    reach: number of tokens on each side of the predicate, at most.
    """
    rows = []
    for number, (doc, tokens) in enumerate(zip(docs, predicates)):
        bounds = [(0, len(doc))] * len(doc)
        if tokens and doc.has_annotation("SENT_START"):
            bounds = [(sentence.start, sentence.end) for sentence in doc.sents for _ in sentence]
        for token in tokens:
            start, end = bounds[token]
            rows.append(Row(number, token, max(start, token - reach), min(end, token + reach + 1)))
    return rows


def row_batches(rows: Sequence[Row]) -> list[list[int]]:
    """Divide rows into batches, the longest first: return their numbers."""
    return batches_of([(row.end - row.start,) for row in rows], MAX_BATCH_TOKENS, longest_first=True)


class RoleNetwork(nn.Module):
    """A BiLSTM over a sentence in which one token is marked as the predicate (He et al. 2017, made small).

    The mark is a vector that is added to the predicate's own, and another one that is added to all others. Each
    token's scores come from its state and that of the predicate.

    width: of the tokens' vectors.
    tags: number of tags.
    lstm_width: of each direction of the LSTM.
    depth: number of LSTM layers.
    """

    def __init__(self, width: int, tags: int, lstm_width: int, depth: int) -> None:
        super().__init__()
        self.mark = nn.Embedding(2, width)
        self.lstm = BiLSTM(width, lstm_width, depth)
        self.output = nn.Linear(4 * lstm_width, tags)

    def forward(self, vectors: Tensor, places: Tensor, lengths: Tensor, predicates: Tensor, dropout: float) -> Tensor:
        """Return the scores of all tags. *Shape:* (rows, longest, tags); what is beyond a row's end means nothing.

        vectors: of all tokens, each one once. *Shape:* (tokens, width).
        places: for each token of each row, its number in `vectors`; anything beyond a row's end. *Shape:* (rows,
            longest).
        lengths: of the rows. *Shape:* (rows,).
        predicates: for each row, the place of its predicate. *Shape:* (rows,).
        dropout: of the input, between the LSTM layers, and of the output; 0.0 for predictions.
        """
        marks = F.one_hot(predicates, places.shape[1])
        inputs = F.dropout(F.embedding(places, vectors), dropout) + self.mark(marks)
        states = F.dropout(self.lstm(inputs, lengths, dropout), dropout)
        own = states[torch.arange(len(states)), predicates]
        # the output layer in two parts: the predicate's is computed once for each row
        first, second = self.output.weight.split(states.shape[-1], dim=1)
        scores = states @ first.T + (own @ second.T + self.output.bias)[:, None]
        return cast(Tensor, scores)
