"""The architecture spacy-elmo.SemanticRoles.v1."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from spacy.tokens import Doc
from thinc.api import Linear, Model, with_array
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from ...errors import check_whole
from ...models.types import Tok2VecModel
from ..shared import BiLSTM, TorchShim, batches_of, init_tok2vec, run_network, shim_of


class Row(NamedTuple):
    """The tokens around a predicate: doc[start:end]."""

    doc: int  # index in the batch
    predicate: int  # index of its token in the doc
    start: int
    end: int


class RoleScores(NamedTuple):
    """Scores, or their gradients."""

    predicates: list[Floats2d]  # for each doc, the logits that its tokens are predicates. *Shape:* (tokens, 1)
    roles: list[Floats2d]  # for each row, the scores of its tokens' tags. *Shape:* (length, 1 + 2 * labels)


RoleInput = tuple[Sequence[Doc], list[Row]]
RoleModel = Model[RoleInput, RoleScores]
_RowModel = Model[tuple[list[Floats2d], list[Row]], list[Floats2d]]
MAX_BATCH_TOKENS = 16384


def build_semantic_roles(tok2vec: Tok2VecModel, lstm_width: int = 100, depth: int = 2) -> RoleModel:
    """Build spacy-elmo.SemanticRoles.v1: docs and rows -> scores of predicates, and of the roles in the rows.

    The tok2vec runs once for each doc, and a linear layer on it scores predicates. A BiLSTM runs for each predicate.

    lstm_width: of each direction of the BiLSTM.
    depth: number of its layers.
    """
    check_whole(lstm_width=lstm_width, depth=depth)
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
    docs, rows = X
    vectors, backprop_tok2vec = model.get_ref("tok2vec")(list(docs), is_train)
    predicates, backprop_finder = model.get_ref("finder")(vectors, is_train)
    roles, backprop_labeller = model.get_ref("labeller")((vectors, rows), is_train)

    def backprop(gradients: RoleScores) -> list[Doc]:
        d_vectors = backprop_finder(gradients.predicates)
        for total, part in zip(d_vectors, backprop_labeller(gradients.roles)[0]):
            total += part
        docs: list[Doc] = backprop_tok2vec(d_vectors)
        return docs

    return RoleScores(predicates, roles), backprop


def _label(
    model: _RowModel, X: tuple[list[Floats2d], list[Row]], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], tuple[list[Floats2d], list[Row]]]]:
    """Score the tags of all rows, in batches of rows with similar lengths."""
    vectors, rows = X

    def given(numbers: list[int]) -> tuple[Any, ...]:
        batch = [rows[number] for number in numbers]
        places = [(row.doc, slice(row.start, row.end)) for row in batch]
        return places, [row.end - row.start for row in batch], [row.predicate - row.start for row in batch]

    outputs, backprop = run_network(model, vectors, row_batches(rows), given, is_train)
    scores = [values[: row.end - row.start] for row, values in zip(rows, outputs)]
    return scores, lambda gradients: (backprop(gradients), rows)


def rows_around(docs: Sequence[Doc], predicates: Sequence[Sequence[int]], reach: int) -> list[Row]:
    """Return a row for each predicate: its sentence or, without boundaries, the doc, to `reach` tokens on each side."""
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
    return batches_of([(row.end - row.start,) for row in rows], MAX_BATCH_TOKENS)


class RoleNetwork(nn.Module):
    """A BiLSTM over a sentence in which a vector marks the token of the predicate (He et al. 2017, made small)."""

    def __init__(self, width: int, tags: int, lstm_width: int, depth: int) -> None:
        super().__init__()
        self.mark = nn.Embedding(2, width)
        self.lstm = BiLSTM(width, lstm_width, depth)
        self.output = nn.Linear(4 * lstm_width, tags)

    def forward(self, vectors: Tensor, lengths: list[int], predicates: list[int], dropout: float) -> Tensor:
        """Return the scores of all tags. *Shape:* (rows, longest, tags); what is beyond a row's end means nothing.

        vectors: of the rows' tokens, one row after the other. predicates: the place of each row's.
        """
        rows = pad_sequence(vectors.split(lengths), batch_first=True)
        places = torch.tensor(predicates, device=rows.device)
        inputs = F.dropout(rows, dropout) + self.mark(F.one_hot(places, rows.shape[1]))
        states = F.dropout(self.lstm(inputs, torch.tensor(lengths), dropout), dropout)
        own = states[torch.arange(len(states)), places]
        # the output layer in two parts: the predicate's is computed once for each row
        first, second = self.output.weight.split(states.shape[-1], dim=1)
        scores = states @ first.T + (own @ second.T + self.output.bias)[:, None]
        return cast(Tensor, scores)
