"""Training of a biLM with the gradients of its listeners."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Optimizer
from thinc.types import Floats3d

from ...models.listening.step import Step
from ...models.listening.upstream import Source
from ...models.shim import bilm_shims
from ...models.types import BiLMModel


class Tuning:
    """Opens a Step for each batch, and at its end runs the biLM's backward pass once and applies the optimizer.

    The protocol is told in this folder's __init__.py.

    model: the pipe's model.
    source: the pipe as its listeners see it.
    """

    def __init__(self, model: BiLMModel, source: Source) -> None:
        self._model, self._source = model, source
        self._backprop: Callable[[Any], Any] | None = None
        self._optimizer: Optimizer | None = None

    def __reduce__(self) -> tuple[type["Tuning"], tuple[BiLMModel, Source]]:
        return Tuning, (self._model, self._source)  # a copy has no part in the open step

    def begin(self, docs: list[Doc], last: Iterable[Hashable]) -> list[Floats3d]:
        """End the previous step, run the biLM over a batch, and open a step for it.

        docs: the batch.
        last: the ids of the listeners that read the layers after all others.

        Returns *Shape:* (layers, tokens, width) for each doc.
        """
        self._end()
        layers, self._backprop = self._model.begin_update(docs)
        self._source.changes = True
        self._source.step = Step(docs, layers, last, self._complete)
        for shim in bilm_shims(self._model):
            shim.open_step(self.settle)
        return layers

    def finish(self, optimizer: Optimizer) -> None:
        """Apply the gradients: at once, or if no listener has called back yet, after the last one has.

        optimizer: the optimizer of this update.
        """
        self._optimizer = optimizer
        step = self._source.step
        if step is None or step.closed or step.started:
            self._end()

    def settle(self) -> None:
        """End the step before the weights are used, if a listener has called back."""
        step = self._source.step
        if step is not None and step.started:
            self._end()

    def _complete(self) -> None:
        # without an optimizer this is `spacy train`, in which components may still run their networks again
        if self._optimizer is not None:
            self._end()

    def _end(self) -> None:
        for shim in bilm_shims(self._model):
            shim.open_step(None)
        step = self._source.step
        gradients = step.close() if step is not None and not step.closed else []
        backprop, self._backprop = self._backprop, None
        if gradients and backprop is not None:
            backprop(gradients)
        optimizer, self._optimizer = self._optimizer, None
        if optimizer is not None:
            self._model.finish_update(optimizer)
