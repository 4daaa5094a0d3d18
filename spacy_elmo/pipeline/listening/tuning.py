"""Training of a biLM through its listeners."""

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
    """Hands a batch's layers to the listeners, sums their gradients and runs the biLM's backward pass once.

    spaCy gives no sign at the end of an update. In `spacy train` it asks for this pipe's step when all components are
    done; then all is applied. With nlp.update(sgd=...) it asks before any listener has called back: the optimizer
    is kept until the last component's listeners have. Where that component skips its update, the step ends when the
    weights are next used, saved or trained.
    """

    def __init__(self, model: BiLMModel, source: Source) -> None:
        self._model, self._source = model, source
        self._backprop: Callable[[Any], Any] | None = None
        self._optimizer: Optimizer | None = None

    def __reduce__(self) -> tuple[type["Tuning"], tuple[BiLMModel, Source]]:
        return Tuning, (self._model, self._source)  # a step that is under way stays behind

    def begin(self, docs: list[Doc], last: Iterable[Hashable]) -> list[Floats3d]:
        """Run the biLM over a batch. Returns its layers, (layers, tokens, width) each.

        last: the ids of the last component's listeners.
        """
        self._end()
        layers, self._backprop = self._model.begin_update(docs)
        self._source.changes = True
        self._source.step = Step(docs, layers, last, self._complete)
        for shim in bilm_shims(self._model):
            shim.open_step(self.settle)
        return layers

    def finish(self, optimizer: Optimizer) -> None:
        """Apply the gradients: now, or if no listener has called back yet, when the last one has."""
        self._optimizer = optimizer
        step = self._source.step
        if step is None or step.closed or step.started:
            self._end()

    def settle(self) -> None:
        """Apply what should have been applied by now, before the weights are used."""
        step = self._source.step
        if step is not None and step.started:
            self._end()

    def _complete(self) -> None:
        # without an optimizer this is `spacy train`, whose components may yet run their networks again
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
