"""The loss of the pointers to start and end."""

from collections.abc import Sequence

from thinc.api import Ops
from thinc.types import Floats2d

from .examples import Targets


def pointer_loss(
    ops: Ops, scores: Sequence[Floats2d], targets: Sequence[Targets | None]
) -> tuple[float, list[Floats2d]]:
    """Return the mean over the docs of -log p(start) - log p(end), and its gradient.

    ops: of the scores.
    scores: *Shape:* (tokens, 2) for each doc.
    targets: *Shape:* (tokens, 2) for each doc, 1.0 at each right start and end, whose probabilities are added; None:
        the doc does not count.
    """
    xp = ops.xp
    gradients = [ops.alloc2f(*values.shape) for values in scores]
    counted = [(i, target) for i, target in enumerate(targets) if target is not None]
    loss = 0.0
    for i, target in counted:
        right = ops.asarray(target)  # type: ignore[arg-type]  # Thinc's types are protocols
        exponentials = xp.exp(scores[i] - scores[i].max(axis=0))
        p = exponentials / exponentials.sum(axis=0)
        of_right = xp.maximum((p * right).sum(axis=0), 1e-30)
        loss -= float(xp.log(of_right).sum()) / len(counted)
        gradients[i][:] = (p - p * right / of_right) / len(counted)
    return loss, gradients
