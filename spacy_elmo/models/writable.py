"""Models whose parameters are read-only, as after a transfer through Ray's shared memory."""

from functools import partial
from typing import Any

import numpy as np
from thinc.api import Model


def with_writable_parameters(model: Model[Any, Any]) -> None:
    """Have a model copy its read-only parameters before it runs.

    Thinc's compiled functions refuse them, also those that only read (spaCy's issue 13506).

    model: is changed. Its layers stay the same, so that saved ones can be loaded.
    """
    model._func = partial(_forward, model._func)


def _forward(forward: Any, model: Model[Any, Any], X: Any, is_train: bool) -> Any:
    for node in model.walk():
        for name in node.param_names:
            array: Any = node.get_param(name) if node.has_param(name) else None
            if isinstance(array, np.ndarray) and not array.flags.writeable:
                own: Any = array.copy()
                node.set_param(name, own)
    return forward(model, X, is_train)
