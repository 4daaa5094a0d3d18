"""The loss and its gradients, against torch."""

import numpy as np
import torch
from thinc.api import NumpyOps

from spacy_elmo.tasks.roles.component import Targets, loss_of, probabilities
from spacy_elmo.tasks.roles.model import RoleScores, Row


def test_loss_is_that_of_torch() -> None:
    rng = np.random.default_rng(0)
    logits = [rng.standard_normal((length, 1)).astype("f") for length in (3, 2, 4)]
    roles = [5 * rng.standard_normal((length, 5)).astype("f") for length in (3, 4)]
    rows = [Row(0, 1, 0, 3), Row(2, 0, 0, 4)]
    flags = [np.asarray([0, 1, 0], dtype="f"), None, np.asarray([1, 0, 0, 0], dtype="f")]
    tags = [np.asarray([1, 0, 4]), np.asarray([0, 2, 3, 3])]
    loss, gradients = loss_of(RoleScores(logits, rows, roles), Targets(flags, rows, tags), NumpyOps())

    tensors = [torch.tensor(array, requires_grad=True) for array in (*logits, *roles)]
    functional = torch.nn.functional
    predicates = sum(
        functional.binary_cross_entropy_with_logits(tensor[:, 0], torch.tensor(flag), reduction="sum")
        for tensor, flag in zip(tensors, flags)
        if flag is not None
    )
    labels = sum(functional.cross_entropy(t, torch.tensor(tag), reduction="sum") for t, tag in zip(tensors[3:], tags))
    expected = predicates / 2 + labels / 2
    assert isinstance(expected, torch.Tensor)
    expected.backward()
    np.testing.assert_allclose(loss, expected.item(), rtol=1e-5)
    for array, tensor in zip([*gradients.predicates, *gradients.roles], tensors):
        np.testing.assert_allclose(array, 0 if tensor.grad is None else tensor.grad, atol=1e-6)


def test_probabilities_do_not_overflow() -> None:
    np.testing.assert_allclose(probabilities(np.asarray([-1e4, 0, 1e4], dtype="f")), [0, 0.5, 1])


def test_nothing_annotated() -> None:
    logits = [np.ones((2, 1), dtype="f")]
    loss, gradients = loss_of(RoleScores(logits, [], []), Targets([None], [], []), NumpyOps())
    assert loss == 0
    assert not gradients.predicates[0].any()


def test_large_scores_do_not_overflow() -> None:
    scores = np.asarray([[1000, 0, -1000], [0, 1000, 998]], dtype="f")
    given = RoleScores([np.zeros((2, 1), "f")], [Row(0, 1, 0, 2)], [scores])
    loss, gradients = loss_of(given, Targets([None], given.rows, [np.asarray([0, 2])]), NumpyOps())
    last = np.exp([-2.0, 0.0]) / (1 + np.exp(-2.0))
    np.testing.assert_allclose(loss, -np.log(last[0]), rtol=1e-5)
    np.testing.assert_allclose(gradients.roles[0], [[0, 0, 0], [0, last[1], last[0] - 1]], atol=1e-6)
