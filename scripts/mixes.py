"""The mixes that a saved pipeline has learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
from thinc.api import Model


class Mix(NamedTuple):
    """component: the pipe; place: number of the mix in it, from 0 on. weights: softmax of w, (layers,)."""

    component: str
    place: int
    weights: list[float]
    gamma: float


def learned_mixes(pipeline: Path) -> Iterator[Mix]:
    """All mixes of a saved pipeline, component by component in the order of their places in the network."""
    nlp = spacy.load(pipeline)
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        if isinstance(model, Model):
            mixes = [node for node in model.walk() if node.name == "scalar_mix"]
            for place, node in enumerate(mixes):
                w = node.ops.to_numpy(node.get_param("w")).astype(np.float64)
                exponents = np.exp(w - w.max())
                gamma = float(node.ops.to_numpy(node.get_param("gamma"))[0])
                yield Mix(name, place, (exponents / exponents.sum()).tolist(), gamma)
