"""The loss and its gradient, against torch's."""

import numpy as np
import torch
from thinc.api import NumpyOps

from spacy_elmo.tasks.answers.component import pointer_loss


def test_as_torch_does_it() -> None:
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(n, 2)).astype("f") for n in (4, 1, 6, 0)]
    targets = [np.zeros(values.shape, "f") for values in scores]
    targets[0][1, 0] = targets[0][3, 1] = 1  # one answer
    targets[1][0] = 1
    targets[2][[0, 4], 0] = targets[2][[2, 4], 1] = 1  # two answers
    loss, gradients = pointer_loss(NumpyOps(), scores, [*targets[:3], None])
    tensors = [torch.tensor(values, requires_grad=True) for values in scores[:3]]
    expected = torch.stack(
        [-(x.softmax(dim=0) * torch.tensor(y)).sum(dim=0).log().sum() for x, y in zip(tensors, targets)]
    ).mean()
    expected.backward()
    assert abs(loss - expected.item()) < 1e-5
    for gradient, tensor in zip(gradients, tensors):
        np.testing.assert_allclose(gradient, tensor.grad, atol=1e-6)
    assert gradients[3].shape == (0, 2)


def test_nothing_to_learn_and_hopeless_scores() -> None:
    loss, (gradient,) = pointer_loss(NumpyOps(), [np.ones((3, 2), "f")], [None])
    assert loss == 0
    assert not gradient.any()
    scores, target = np.array([[1e4, 1e4], [-1e4, -1e4]], "f"), np.array([[0, 0], [1, 1]], "f")
    loss, (gradient,) = pointer_loss(NumpyOps(), [scores], [target])
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()
