"""The network of semantic roles: a row's scores depend on that row alone; gradients against finite differences."""

from typing import Any

import numpy as np
import pytest
from role_cases import SMALL
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import fix_random_seed

from spacy_elmo.tasks.roles import model as module
from spacy_elmo.tasks.roles.model import RoleModel, RoleScores, Row, rows_around

ROWS = [Row(0, 1, 0, 5), Row(0, 3, 2, 5), Row(2, 0, 0, 2), Row(0, 2, 0, 5)]


def docs() -> list[Doc]:
    vocab = Vocab()
    return [Doc(vocab, words=list(words)) for words in ("abcde", "", "fg")]


def small(**settings: Any) -> RoleModel:
    fix_random_seed(0)
    model: RoleModel = registry.resolve({"model": SMALL | settings})["model"]
    model.set_dim("nO", 2)
    model.initialize(X=(docs(), []))
    return model


def scores(model: RoleModel, rows: list[Row]) -> list[np.ndarray]:
    output: RoleScores = model.predict((docs(), rows))
    return [np.asarray(array) for array in output.roles]


@pytest.mark.parametrize("depth", [1, 2])
def test_rows_do_not_depend_on_one_another(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(depth=depth)
    together = scores(model, ROWS)
    assert [array.shape for array in together] == [(5, 5), (3, 5), (2, 5), (5, 5)]
    for row, array in zip(ROWS, together):
        np.testing.assert_allclose(scores(model, [row])[0], array, atol=1e-6)
    monkeypatch.setattr(module, "MAX_BATCH_TOKENS", 6)  # in several batches
    for one, array in zip(scores(model, ROWS), together):
        np.testing.assert_allclose(one, array, atol=1e-6)
    assert not np.allclose(together[0], together[3], atol=1e-3)  # the same tokens, another predicate


def test_gradients() -> None:
    """The sum of all scores with fixed weights, against finite differences of single parameters."""
    model = small()
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((row.end - row.start, 5)).astype("f") for row in ROWS]
    flags = [rng.standard_normal((len(doc), 1)).astype("f") for doc in docs()]

    def value() -> float:
        output: RoleScores = model.predict((docs(), ROWS))
        parts = [*zip(output.roles, weights), *zip(output.predicates, flags)]
        return float(sum((np.asarray(array, dtype=float) * weight).sum() for array, weight in parts))

    _, backprop = model.begin_update((docs(), ROWS))
    backprop(RoleScores(flags, weights))
    network: Any = model.get_ref("labeller").shims[0]
    network = network.network
    tok2vec = next(node for node in model.get_ref("tok2vec").walk() if node.name == "maxout")
    places: list[tuple[Any, Any]] = [
        (parameter.detach().numpy(), parameter.grad.numpy()) for parameter in network.parameters()
    ]
    places.append((tok2vec.get_param("W"), tok2vec.get_grad("W")))
    finder = next(node for node in model.get_ref("finder").walk() if node.has_param("W"))
    places.append((finder.get_param("W"), finder.get_grad("W")))
    for array, gradient in places:
        index = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        before = array[index].copy()
        values = []
        for step in (0.01, -0.01):
            array[index] = before + step
            values.append(value())
        array[index] = before
        np.testing.assert_allclose((values[0] - values[1]) / 0.02, gradient[index], rtol=0.02)


def test_no_rows() -> None:
    model = small()
    output, backprop = model.begin_update((docs(), []))
    assert output.roles == []
    backprop(RoleScores([np.zeros((len(doc), 1), dtype="f") for doc in docs()], []))


def doc_of(*sentences: int, bounds: bool = True) -> Doc:
    starts: list[bool | int | None] = [place == 0 for length in sentences for place in range(length)]
    return Doc(Vocab(), words=["w"] * sum(sentences), sent_starts=starts if bounds else None)


def test_sentences_bound_rows() -> None:
    docs = [doc_of(3, 4), doc_of(), doc_of(2, 2, bounds=False)]
    assert rows_around(docs, [[0, 6], [], [1]], 100) == [Row(0, 0, 0, 3), Row(0, 6, 3, 7), Row(2, 1, 0, 4)]


def test_reach() -> None:
    assert rows_around([doc_of(50)], [[0, 20, 49]], 5) == [Row(0, 0, 0, 6), Row(0, 20, 15, 26), Row(0, 49, 44, 50)]
