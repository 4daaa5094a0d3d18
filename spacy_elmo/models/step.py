"""A step of a biLM that is tuned: one batch, which it runs forward once and backward once for all its listeners.

The life of a step, in order:
1. It begins when `ElmoPipe.update` makes it: the biLM runs forward. The pipe holds the layers beside the docs.
2. While it is open, a listener that reads the layers announces a gradient (`expect_gradient`), which the backward pass
   of its component brings (`add_gradients`).
3. It ends once: `end` runs the biLM backward, and updates its weights if the optimizer has come. It can't know how many
   components will train on the batch, so it ends with whichever of these comes first:
   - the last gradient, if the optimizer came before: `nlp.update(sgd=...)` gives it before the components run;
   - the optimizer, if gradients came before: `spacy train` gives it after the components (`finish`);
   - the next use of the weights, if gradients came before: components were skipped (`_end_before_use`);
   - the next batch;
   - the loading of another biLM, which forgets the gradients (`drop`).
4. Gradients that are announced or brought after its end are refused. An optimizer that comes then updates the weights.
"""

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from spacy.attrs import IDX, ORTH
from spacy.tokens import Doc
from thinc.api import Optimizer
from thinc.types import Floats3d

from ..errors import NotEmbeddedError, SettingsError
from .shim import bilm_shims
from .types import BiLMModel


class Step:
    """One batch of a biLM that is tuned. What other threads predict while it is open is of the weights before it.

    A gradient is the last if the last listeners have read the layers and each reading has its gradient. It may be of an
    earlier component: a `tok2vec` pipe calls back after later components have, because it waits for its own listeners.

    last: the ids of the listeners that read the layers after all others: those of the last component that listens.
    """

    def __init__(self, model: BiLMModel, docs: Sequence[Doc], last: Iterable[Hashable]) -> None:
        self._model, self._thread, self._process = model, threading.current_thread(), os.getpid()
        self._backprop: Callable[[Any], Any] | None
        self.layers, self._backprop = model.begin_update(list(docs))
        # the step stays until the next batch, the docs need not
        self._places = WeakKeyDictionary({doc: (i, doc.to_array([ORTH, IDX])) for i, doc in enumerate(docs)})
        self._awaited_readers = set(last)  # those that have not read yet
        self._awaited_gradients = 0  # number of readings for which none has come yet
        self._gradients: list[Any] = []  # their sums for each doc; empty until the first has come
        self._optimizer: Optimizer | None = None
        self._ended = False
        for shim in bilm_shims(model):
            shim.end_step = self._end_before_use

    def expect_gradient(self, listener: Hashable, docs: Sequence[Doc], attr: str) -> bool:
        """Note that the listener with this id reads the layers of docs, so that its gradient will follow.

        Returns False if none of the docs is of the batch. Raises NotEmbeddedError if one of these was retokenised.
        """
        places = [(doc, self._places[doc]) for doc in docs if doc in self._places]
        if not places:
            return False
        self._refuse_ended()
        for doc, (_, tokens) in places:
            if not np.array_equal(tokens, doc.to_array([ORTH, IDX])):
                raise NotEmbeddedError(
                    f"the tokens here are not those that the ELMo vectors under {attr!r} belong to: the doc was "
                    "retokenised after the elmo pipe. While its biLM is tuned, retokenise before that pipe."
                )
        self._awaited_readers.discard(listener)
        self._awaited_gradients += 1
        return True

    def add_gradients(self, docs: Sequence[Doc], gradients: Sequence[Floats3d]) -> None:
        """Add the gradients of one reading to the sum. Those of docs not in the batch are dropped."""
        self._refuse_ended()
        if not self._gradients:
            self._gradients = [0.0 * layers for layers in self.layers]
        for doc, gradient in zip(docs, gradients):
            if doc in self._places:
                self._gradients[self._places[doc][0]] += gradient
        self._awaited_gradients -= 1
        # without an optimizer this is `spacy train`, in which components may still run their networks again
        if not self._awaited_gradients and not self._awaited_readers and self._optimizer is not None:
            self.end()

    def finish(self, optimizer: Optimizer) -> None:
        """Apply the gradients with this optimizer: at once, or if no listener has called back yet, at the end."""
        self._optimizer = optimizer
        if self._ended or self._gradients:  # ended: the gradients are in the biLM, and wait for their optimizer
            self.end()

    def _end_before_use(self) -> None:
        """End the step because the weights are used, if any gradient has come."""
        # the thread that trains ends its step, also in its forked process; another one if that thread has ended
        begun_here = self._thread is threading.current_thread()
        if self._gradients and (begun_here or (os.getpid() == self._process and not self._thread.is_alive())):
            self.end()

    def end(self) -> None:
        """Run the biLM's backward pass, if any listener has called back, and apply the optimizer, if it was given."""
        gradients, backprop, optimizer = self._gradients, self._backprop, self._optimizer
        self.drop()
        if gradients and backprop is not None:
            backprop(gradients)
        if optimizer is not None:
            self._model.finish_update(optimizer)

    def drop(self) -> None:
        """End the step without the backward pass: the biLM has got other weights."""
        for shim in bilm_shims(self._model):
            shim.end_step = None
        self._ended, self.layers, self._gradients, self._optimizer = True, [], [], None
        self._backprop = None  # it holds arrays

    def _refuse_ended(self) -> None:
        if self._ended:
            raise SettingsError(
                "a component used a biLM that is tuned after the step of its batch had ended, so its gradient would be "
                "lost. Run each component's network once in an update, and do not predict between its forward and its "
                "backward pass; or update with sgd=False and call finish_update of each pipe, as spacy train does."
            )
