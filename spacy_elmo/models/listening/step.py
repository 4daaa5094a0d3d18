"""One batch on its way through the listeners of a biLM that is tuned."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from spacy.tokens import Doc
from thinc.types import Floats3d

from ...errors import Errors, SettingsError


class Step:
    """Holds a batch's layers for the listeners, and sums their gradients.

    docs, layers: the batch; (layers, tokens, width) each.
    last: the ids of the listeners that call back after all others.
    complete: called when those have, for all that they took.
    """

    def __init__(
        self,
        docs: Sequence[Doc],
        layers: Sequence[Floats3d],
        last: Iterable[Hashable],
        complete: Callable[[], None],
    ) -> None:
        self.docs, self.layers, self.complete = docs, layers, complete
        self.numbers = {id(doc): number for number, doc in enumerate(docs)}
        self.gradients: list[Any] = []
        self.closed = False
        self._last, self._lent, self._back = set(last), Counter[Hashable](), Counter[Hashable]()

    @property
    def started(self) -> bool:
        """Whether a listener has called back."""
        return bool(self.gradients)

    def __contains__(self, doc: Doc) -> bool:
        return id(doc) in self.numbers

    def lend(self, listener: Hashable) -> None:
        """A listener takes layers, and owes their gradient. Raises SettingsError after close."""
        if self.closed:
            raise SettingsError(Errors.TUNED_LATE)
        self._lent[listener] += 1

    def add(self, listener: Hashable, docs: Sequence[Doc], gradients: Sequence[Floats3d]) -> None:
        """Add a listener's gradients; those of docs that are not in the batch are dropped.

        Raises SettingsError after close: the biLM's gradient has been computed without it.
        """
        if self.closed:
            raise SettingsError(Errors.TUNED_LATE)
        if not self.started:
            self.gradients = [0.0 * layers for layers in self.layers]
        for doc, gradient in zip(docs, gradients):
            number = self.numbers.get(id(doc))
            if number is not None:
                self.gradients[number] += gradient
        self._back[listener] += 1
        if all(0 < self._lent[key] == self._back[key] for key in self._last):
            self.complete()

    def close(self) -> list[Any]:
        """End the step. Returns the sum of the gradients, (layers, tokens, width) each; none where there were none."""
        self.closed = True
        gradients, self.gradients = self.gradients, []
        self.layers = []
        return gradients
