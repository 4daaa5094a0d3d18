"""The loss of a batch, and its gradients."""

from typing import Any

import numpy as np
from thinc.api import Ops

from .model import RoleScores
from .targets import Targets


def loss_of(scores: RoleScores, targets: Targets, ops: Ops) -> tuple[float, RoleScores]:
    """Return the loss, and its gradients.

    The loss is the cross entropy of the tags, summed over a row's tokens and averaged over rows, and that of the
    predicates, summed over a doc's tokens and averaged over the docs that are annotated.

    scores: of the rows in targets.
    targets: of the same docs.
    ops: of the model.
    """
    xp: Any = ops.xp
    as_array: Any = ops.asarray
    loss = 0.0
    gradients = RoleScores([], scores.rows, [])
    annotated = sum(flags is not None for flags in targets.predicates)
    for logits, flags in zip(scores.predicates, targets.predicates):
        gradient = xp.zeros_like(logits)
        if flags is not None:
            truth = as_array(flags)[:, None]
            loss += float((xp.logaddexp(0, logits) - truth * logits).sum()) / annotated
            gradient = (probabilities(logits) - truth) / annotated
        gradients.predicates.append(gradient)
    for row_scores, tags in zip(scores.roles, targets.tags):
        right = xp.arange(len(tags)), as_array(tags)
        shifted = row_scores - xp.max(row_scores, axis=1, keepdims=True)
        logs = shifted - xp.log(xp.exp(shifted).sum(axis=1, keepdims=True))
        loss -= float(logs[right].sum()) / len(targets.tags)
        gradient = xp.exp(logs)
        gradient[right] -= 1
        gradients.roles.append(gradient / len(targets.tags))
    return loss, gradients


def probabilities(logits: Any) -> Any:
    """Return the probabilities that tokens are predicates. logits: of any shape."""
    return (np.tanh(logits / 2) + 1) / 2  # does not overflow
