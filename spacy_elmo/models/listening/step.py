"""One training step of a tuned biLM: the batch that its listeners read, and the sum of their gradients."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from spacy.attrs import IDX, ORTH
from spacy.tokens import Doc
from thinc.types import Floats3d

from ...errors import Errors, SettingsError


class Step:
    """Holds a batch's layers for the listeners, and sums the gradients that they call back with.

    Each forward pass of a listener in training calls `expect_gradient`, and each backward pass calls `add_gradients`.
    The step cannot know how many components will train on the batch. It counts as complete when the last listeners have
    read the layers, and each listener has called `add_gradients` as often as `expect_gradient`. A `tok2vec` pipe that
    reads the layers calls back after later components have, because it waits for listeners of its own.

    docs: the batch.
    layers: the biLM's layers, *Shape:* (layers, tokens, width) for each doc.
    last: the ids of the listeners that read the layers after all others: those of the last component that listens.
    complete: called when all listeners have called back for all layers that they have read.
    """

    def __init__(
        self,
        docs: Sequence[Doc],
        layers: Sequence[Floats3d],
        last: Iterable[Hashable],
        complete: Callable[[], None],
    ) -> None:
        self.docs, self.layers, self.complete = docs, layers, complete
        self._tokens: list[Any] = [doc.to_array([ORTH, IDX]) for doc in docs]
        self.positions = {id(doc): position for position, doc in enumerate(docs)}
        self.gradients: list[Any] = []
        self.closed = False
        self._last, self._expected, self._received = set(last), Counter[Hashable](), Counter[Hashable]()

    @property
    def started(self) -> bool:
        """Whether any listener has called back."""
        return bool(self.gradients)

    def __contains__(self, doc: Doc) -> bool:
        return id(doc) in self.positions

    def has_tokens_of(self, doc: Doc) -> bool:
        """Whether the doc has the tokens that the biLM has read, so that the layers are theirs.

        doc: a doc of the batch.
        """
        return np.array_equal(self._tokens[self.positions[id(doc)]], doc.to_array([ORTH, IDX]))

    def expect_gradient(self, listener: Hashable) -> None:
        """Note that a listener reads the layers in training, so that its gradient will follow.

        listener: its id.

        Raises SettingsError after `close`.
        """
        if self.closed:
            raise SettingsError(Errors.TUNED_LATE)
        self._expected[listener] += 1

    def add_gradients(self, listener: Hashable, docs: Sequence[Doc], gradients: Sequence[Floats3d]) -> None:
        """Add a listener's gradients to the sum. Those of docs that are not in the batch are dropped.

        listener: its id.
        docs: the docs that it has read.
        gradients: *Shape:* (layers, tokens, width) for each doc.

        Raises SettingsError after `close`, because the biLM's gradient has been computed without these.
        """
        if self.closed:
            raise SettingsError(Errors.TUNED_LATE)
        if not self.started:
            self.gradients = [0.0 * layers for layers in self.layers]
        for doc, gradient in zip(docs, gradients):
            position = self.positions.get(id(doc))
            if position is not None:
                self.gradients[position] += gradient
        self._received[listener] += 1
        if self._expected == self._received and all(self._expected[key] for key in self._last):
            self.complete()

    def close(self) -> list[Any]:
        """End the step, and free the layers.

        Returns the sum of the gradients, *Shape:* (layers, tokens, width) for each doc; an empty list if no listener
        has called back.
        """
        self.closed = True
        gradients, self.gradients = self.gradients, []
        self.layers = []
        return gradients
