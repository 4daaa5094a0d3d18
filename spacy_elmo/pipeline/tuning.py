"""Training of a biLM through its listeners."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Optimizer
from thinc.types import Floats3d

from ..models.step import Step
from ..models.types import BiLMModel
from ..models.upstream import Source


class Tuning:
    """Hands a batch's layers to the listeners, sums their gradients and runs the biLM's backward pass once.

    spaCy gives no sign at the end of an update, and with nlp.update(sgd=...) it asks this pipe for its step before any
    listener has called back. So the optimizer is kept until all have; where a component skips its update, until the
    weights are used or the next batch comes.
    """

    def __init__(self, model: BiLMModel, source: Source) -> None:
        self._model, self._source = model, source
        self._backprop: Callable[[Any], Any] | None = None
        self._optimizer: Optimizer | None = None

    def begin(self, docs: list[Doc], listeners: Iterable[Hashable]) -> list[Floats3d]:
        """Run the biLM over a batch for those listeners. Returns its layers, (layers, tokens, width) each."""
        self._end()
        layers, self._backprop = self._model.begin_update(docs)
        self._source.step = Step(docs, layers, listeners, self._end)
        return layers

    def finish(self, optimizer: Optimizer) -> None:
        """Apply the gradients: now, or if no listener has called back yet, when they have."""
        self._optimizer = optimizer
        step = self._source.step
        if step is None or step.started:
            self._end()

    def settle(self) -> None:
        """Apply what should have been applied by now, before the weights are used."""
        step = self._source.step
        if step is not None and step.started:
            self._end()

    def _end(self) -> None:
        step, self._source.step = self._source.step, None
        gradients = [] if step is None else step.close()
        if gradients and self._backprop is not None:
            self._backprop(gradients)
        self._backprop = None
        optimizer, self._optimizer = self._optimizer, None
        if optimizer is not None:
            self._model.finish_update(optimizer)
