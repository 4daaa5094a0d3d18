"""The architecture `spacy-elmo.Coreference.v1`: docs -> scores of mentions and of their antecedents."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import torch2xp

from ...errors import Errors, SettingsError, shown
from ...models.numbers import is_number
from ...models.types import Tok2VecModel
from ..shared.sizes import check_sizes
from ..shared.tok2vec import width_of
from ..shared.torch_shim import TorchShim, shim_of
from .network import CoreferenceNetwork
from .parts import split_into_parts
from .scoring import Scorer, Scores

CoreferenceModel = Model[list[Doc], list[Scores]]


def build_coreference(
    tok2vec: Tok2VecModel,
    lstm_width: int = 100,
    hidden_width: int = 100,
    max_width: int = 15,
    mentions_per_token: float = 0.2,
    antecedents: int = 100,
    part_tokens: int = 2000,
    train_tokens: int = 1000,
) -> CoreferenceModel:
    """Build spacy-elmo.Coreference.v1: docs -> the scores of mentions and of their antecedents.

    tok2vec: what the BiLSTM reads, for example spacy.Tok2Vec.v2 or spacy-elmo.ElmoTok2Vec.v1.
    lstm_width: of each direction of the BiLSTM.
    hidden_width: of a span's vector, and of the hidden layers.
    max_width: number of tokens of a mention, at most.
    mentions_per_token: share of the tokens: of a part, at most that many spans are kept, those with the highest scores;
        of a part with few tokens 10.
    antecedents: number of mentions before a mention that it is compared with, at most.
    part_tokens: number of tokens that are processed at once in prediction, at most, but at least one sentence. Memory
        grows with it, and not with the doc.
    train_tokens: the same in training. Of a longer doc, a step reads a part that is drawn at random.

    Raises SettingsError if a setting can't be used.
    """
    check_sizes(lstm_width=lstm_width, hidden_width=hidden_width, max_width=max_width, antecedents=antecedents)
    check_sizes(part_tokens=part_tokens, train_tokens=train_tokens)
    if not (is_number(mentions_per_token) and 0 < mentions_per_token <= 1):
        raise SettingsError(Errors.COREF_SHARE.format(got=shown(mentions_per_token)))
    build = partial(_network, lstm_width=lstm_width, hidden_width=hidden_width, max_width=max_width)
    return Model(
        "coreference",
        _forward,
        init=_init,
        layers=[tok2vec],
        shims=[TorchShim(build)],
        refs={"tok2vec": tok2vec},
        attrs={
            "dropout_rate": 0.0,
            "mentions_per_token": mentions_per_token,
            "antecedents": antecedents,
            "part_tokens": part_tokens,
            "train_tokens": train_tokens,
        },
    )


def _network(**sizes: int) -> CoreferenceNetwork:
    return CoreferenceNetwork(**sizes)


def _init(model: CoreferenceModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    tok2vec = model.get_ref("tok2vec")
    tok2vec.initialize(X=X)
    if X:
        shim_of(model).prepare(width=width_of(tok2vec, X))


def _forward(
    model: CoreferenceModel, docs: list[Doc], is_train: bool
) -> tuple[list[Scores], Callable[[list[Scores]], list[Doc]]]:
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)
    shim = shim_of(model)
    scorer = Scorer(shim.network, model.attrs["mentions_per_token"], model.attrs["antecedents"])
    if not is_train:
        size = model.attrs["part_tokens"]
        outputs = [scorer.predict(split_into_parts(doc, size), array) for doc, array in zip(docs, vectors)]
        return outputs, lambda gradients: docs
    shim.network.dropout = model.attrs["dropout_rate"]
    parts = [list(split_into_parts(doc, model.attrs["train_tokens"])) for doc in docs]
    steps = [scorer.train(random.choice(own), array) if own else None for own, array in zip(parts, vectors)]

    def backprop(gradients: list[Scores]) -> list[Doc]:
        d_vectors = []
        for step, gradient, array in zip(steps, gradients, vectors):
            gradient_of_doc: Any = model.ops.alloc2f(*array.shape)
            if step is not None:
                start, end = step.bounds
                gradient_of_doc[start:end] = torch2xp(step.backprop(gradient))
            d_vectors.append(gradient_of_doc)
        result: list[Doc] = backprop_vectors(d_vectors)
        return result

    return [Scores.empty() if step is None else step.scores for step in steps], backprop
