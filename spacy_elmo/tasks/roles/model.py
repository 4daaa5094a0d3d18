"""The architecture spacy-elmo.SemanticRoles.v1."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Linear, Model, with_array
from thinc.types import Floats2d
from thinc.util import torch2xp, xp2torch

from ...models.types import Tok2VecModel
from ..shared.sizes import check_sizes
from ..shared.tok2vec import width_of
from ..shared.torch_shim import TorchShim, shim_of
from .network import RoleNetwork
from .rows import Row, batches_of

MAX_BATCH_TOKENS = 16384


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
    model: RoleModel = Model(
        "semantic_roles",
        _forward,
        init=_init,
        layers=[tok2vec, finder, labeller],
        refs={"tok2vec": tok2vec, "finder": finder, "labeller": labeller},
        dims={"nO": None},  # number of labels
    )
    return model


def _init(model: RoleModel, X: RoleInput | None = None, Y: Any = None) -> None:
    tok2vec = model.get_ref("tok2vec")
    docs = None if X is None else list(X[0])
    tok2vec.initialize(X=docs)
    if not docs:
        return
    width = width_of(tok2vec, docs)
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
    shim.network.set_dropout(model.attrs["dropout_rate"])
    sizes = [len(part) for part in vectors]
    firsts = np.cumsum([0, *sizes])
    flat = xp2torch(ops.xp.concatenate(vectors) if vectors else ops.alloc2f(0, 0), requires_grad=is_train)
    scores: list[Any] = [None] * len(rows)
    backprops = []
    for numbers in batches_of(rows, MAX_BATCH_TOKENS):
        lengths = np.asarray([rows[number].end - rows[number].start for number in numbers])
        starts = np.asarray([firsts[rows[number].doc] + rows[number].start for number in numbers])
        marked = np.asarray([rows[number].predicate - rows[number].start for number in numbers])
        steps = np.minimum(np.arange(lengths[0]), lengths[:, None] - 1)
        places, flags = (torch.from_numpy(array).to(flat.device) for array in (starts[:, None] + steps, marked))
        inputs = ArgsKwargs((flat, places, torch.from_numpy(lengths), flags), {})
        output, backprop_batch = shim(inputs, is_train)
        array: Any = torch2xp(output.detach(), ops=ops)
        for row, number in enumerate(numbers):
            scores[number] = array[row, : lengths[row]]
        backprops.append((numbers, output, backprop_batch))

    def backprop(gradients: list[Floats2d]) -> tuple[list[Floats2d], list[Row]]:
        for numbers, output, backprop_batch in backprops:
            padded = ops.xp.zeros(output.shape, dtype="f")
            for row, number in enumerate(numbers):
                padded[row, : len(gradients[number])] = gradients[number]
            backprop_batch(ArgsKwargs(((output,),), {"grad_tensors": (xp2torch(padded),)}))
        if flat.grad is None:
            return [ops.xp.zeros_like(part) for part in vectors], rows
        d_flat: Any = torch2xp(flat.grad, ops=ops)
        return [d_flat[first : first + size] for first, size in zip(firsts, sizes)], rows

    return scores, backprop
