"""The listener, a Thinc layer that returns the layers which an elmo pipe has computed, and how it meets this pipe.

spaCy shows each component to the pipe, which binds the listeners in it: `Upstream.bind`. From then on a listener reads
what its `Source` has of a doc. While the biLM is tuned, it reads the open `Step` instead, and hands its gradient to it.
`nlp.replace_listeners` puts a copy of the biLM in the listener's place: `Replacement`.
"""

import copy
import os
import threading
import warnings
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from spacy.attrs import IDX, ORTH
from spacy.tokens import Doc
from thinc.api import Model, Optimizer
from thinc.types import Floats3d

from ..errors import ChangedBiLMWarning, ElmoError, NotEmbeddedError, SettingsError
from .shim import bilm_shims
from .types import BiLMModel, is_whole

NAME = "elmo_listener"


def build_listener(width: int | None = None, upstream: str = "*") -> BiLMModel:
    """Build spacy-elmo.Listener.v1: docs -> the layers that an earlier elmo pipe has stored on them.

    Output: for each doc an array of *Shape:* (layers, tokens, width).

    width: width of the biLM's layers; null: that of the pipe's biLM, from initialisation on.
    upstream: name of the elmo pipe; "*": the only elmo pipe of the pipeline.

    Backprop hands the gradient to the elmo pipe, if its biLM is not frozen. A doc without layers raises
    NotEmbeddedError, which names the pipe and the attribute. The docs with which the model is initialised give zeros:
    no pipe has seen them yet.
    """
    if width is not None and (not is_whole(width) or width < 1):
        raise SettingsError(
            f"width is {width!r} in spacy-elmo.Listener.v1. Expected null, or the width of the biLM, a whole number."
        )
    if not isinstance(upstream, str) or not upstream:
        raise SettingsError(
            f'upstream is {upstream!r} in spacy-elmo.Listener.v1. Expected the name of an elmo pipe, or "*".'
        )
    attrs = {"upstream": Upstream(upstream), "bilm": ""}
    return Model(NAME, forward, init=init, dims={"nO": width}, attrs=attrs)


def init(model: BiLMModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Remember the sample docs, for which the listener returns zeros, and take the pipe's width. Y is ignored."""
    upstream = _upstream(model)
    upstream.samples.update({id(doc): doc for doc in X or []})
    if model.has_dim("nO") is None:
        source = upstream.only_source()
        if source is None:
            raise _no_pipe(upstream)
        if (width := source.width) is None:
            raise SettingsError(
                f"width is null in spacy-elmo.Listener.v1, but the model of the pipe {source.name!r} does not tell its "
                "width. Set width to that of its layers."
            )
        model.set_dim("nO", width)


def forward(
    model: BiLMModel, X: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    """Return the layers of each doc, *Shape:* (layers, tokens, width). Backprop returns no gradients of docs.

    If the biLM is being tuned and is_train is true, they come from the open step, and backprop adds their gradient to
    it.
    """
    upstream, width, docs = _upstream(model), model.maybe_get_dim("nO"), list(X)
    source = upstream.only_source()
    if is_train:
        upstream.samples.clear()
    step = source.step if source is not None and is_train else None
    if step is not None and not any(doc in step for doc in docs):
        step = None
    if step is not None:
        step.expect_gradient(upstream.id)
    layers: list[Any] = []
    for doc in docs:
        found = _read(upstream, source, doc, is_train)  # also in a step: it raises if the doc's layers were removed
        if step is not None and source is not None and doc in step:
            found = step.layers_of(doc, source.attr)
        if found is not None and found.shape[2] != (width or found.shape[2]):
            raise SettingsError(
                f"width is {width} in a component's spacy-elmo.Listener.v1, but the biLM of the "
                f"pipe {source.name if source else upstream.name!r} gives {found.shape[2]}. Use the biLM that the "
                "component was trained with; before training set width to null."
            )
        layers.append(found)
    if source is not None and source.model is not None:
        _check_fingerprint(model, source, is_train)
    if source is not None and not is_train:  # in training a component may predict after its update
        for doc in docs:
            source.release(doc, upstream.id)

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if step is not None:
            step.add_gradients(upstream.id, docs, dY)
        return []

    known = source.layers or 0 if source else 0
    n_layers = max((len(y) for y in layers if y is not None), default=known)
    for i, doc in enumerate(docs):
        if layers[i] is None:
            layers[i] = np.zeros((n_layers, len(doc), width or 0), "f")
    return [model.ops.asarray3f(y) for y in layers], backprop


def _upstream(model: BiLMModel) -> "Upstream":
    upstream = model.attrs["upstream"]
    assert isinstance(upstream, Upstream)
    return upstream


def _read(upstream: "Upstream", source: "Source | None", doc: Doc, is_train: bool) -> Floats3d | None:
    """Return the doc's layers; None for a sample doc that has none. Raises NotEmbeddedError for any other."""
    layers = None if source is None else source.read(doc)
    if layers is not None:
        return layers
    if upstream.samples.get(id(doc)) is doc:
        return None
    if source is None:
        raise _no_pipe(upstream)
    if source.was_dropped(doc):
        raise NotEmbeddedError(
            f'the pipe {source.name!r} has store = "none", so it holds the layers of a doc until each component '
            "that listens has predicted on it once. A copy of the doc has none, and a network can read the same "
            f'listener in one place only. Run {source.name!r} on this doc again, or set its store to "layers".'
        )
    if is_train:
        raise NotEmbeddedError(
            f"a component that is trained listens to the pipe {source.name!r}, but a doc has nothing in "
            f"doc._.{source.attr}_layers: the pipe did not run in this update. If it is in frozen_components, add it "
            "to annotating_components too, or remove it from frozen_components (frozen = true in its own config is "
            "enough). If it is disabled, enable it. If this is spacy debug model or spacy pretrain, which run a "
            "component alone, add --nlp.after_pipeline_creation "
            '\'{"@callbacks": "spacy-elmo.ReplaceListeners.v1"}\'.'
        )
    raise NotEmbeddedError(
        f"a component listens to the pipe {source.name!r}, but a doc has nothing in doc._.{source.attr}_layers: the "
        "pipe is disabled, removed or comes later, or the doc is a copy without them (as_doc, or in an entity_linker). "
        f"Run {source.name!r} on it first."
    )


def _no_pipe(upstream: "Upstream") -> NotEmbeddedError:
    name = "" if upstream.name == "*" else f" named {upstream.name!r}"
    return NotEmbeddedError(
        f"a component listens to an elmo pipe{name}, but there is none before it: the pipeline has no such "
        'pipe, or has it later, or under another name. Put it first, nlp.add_pipe("elmo", first=True), or '
        f"set upstream, which is {upstream.name!r}, in the component's spacy-elmo.Listener.v1 to its name."
    )


def _check_fingerprint(model: BiLMModel, source: "Source", is_train: bool) -> None:
    """Store which biLM the layers came from in training, in attrs["bilm"]; in prediction warn once of another one."""
    upstream = _upstream(model)
    if source.changes:
        if is_train:
            # the weights still change: the pipe stores their fingerprint when it is saved
            model.attrs["bilm"], upstream.learned = "", True
    elif is_train:
        model.attrs["bilm"] = source.fingerprint()
        source.warned.discard(upstream)
    elif upstream not in source.warned and model.attrs["bilm"]:
        if source.fingerprint() in ("", model.attrs["bilm"]):
            return
        source.warned.add(upstream)
        warnings.warn(
            f"the biLM of the pipe {source.name!r} is not the one with which this component was trained, so its "
            "predictions may be useless. Use that biLM, or train the component again. This warning is given once.",
            ChangedBiLMWarning,
            stacklevel=2,
        )


class Upstream:
    """The elmo pipe that a listener asks for, and the pipe that feeds it.

    name: name of the pipe that is asked for; "*": the only elmo pipe.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.id: Hashable = object()  # identifies the listener: an opaque token that holds no references
        self.source: Source | None = None  # the pipe that feeds the listener, also if its "*" is ambiguous
        self.learned = False  # whether the listener was trained while the biLM of this pipe was tuned
        # the docs of an initialisation that is not over, by their id
        self.samples: weakref.WeakValueDictionary[int, Doc] = weakref.WeakValueDictionary()
        self._rivals: tuple[str, ...] = ()

    def accepts(self, pipe: str) -> bool:
        """Whether the listener asks for the elmo pipe of this name."""
        return self.name in ("*", pipe)

    def bind(self, source: "Source", rivals: Iterable[str]) -> None:
        """Let a pipe feed the listener, in place of any other. rivals: the elmo pipes before it make "*" ambiguous."""
        if self.source is not None:
            self.source.upstreams.discard(self)
        self.learned = self.learned and self.source is source
        self.source, self._rivals = source, tuple(rivals)
        source.upstreams.add(self)
        # spaCy links a pipeline again when all its components are initialised
        self.samples.clear()

    def unbind(self, source: "Source") -> None:
        """Stop a pipe from feeding the listener, if it does."""
        if self.source is source:
            self.source = None
            source.upstreams.discard(self)

    def only_source(self) -> "Source | None":
        """Return `source`. Raises SettingsError if the listener asks for "*" and there are several elmo pipes."""
        if self.source is not None and self.name == "*" and self._rivals:
            names = ", ".join(map(repr, (*self._rivals, self.source.name)))
            raise SettingsError(
                f'upstream is "*", but there are several elmo pipes before this component: {names}. Set '
                "upstream in its spacy-elmo.Listener.v1 to one of these names."
            )
        return self.source

    def _is_fed(self) -> bool:
        """Whether a pipe counts this listener. Copies of a component alone, as spaCy makes for rehearsing, are not."""
        return self.source is not None and self in self.source.upstreams

    def __deepcopy__(self, memo: dict[int, Any]) -> "Upstream":
        other = Upstream(self.name)
        other.learned = self.learned
        # if the pipe is copied as well, its copy feeds this one; if only the component is copied, the same pipe does
        other.source, other._rivals = memo.get(id(self.source), self.source), self._rivals
        if other.source is not None and other.source is not self.source and self._is_fed():
            other.source.upstreams.add(other)
        return other

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"fed": self._is_fed()}
        return {name: value for name, value in state.items() if name != "samples"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fed = state.pop("fed")
        self.__dict__.update(state, samples=weakref.WeakValueDictionary())
        if fed and self.source is not None:
            self.source.upstreams.add(self)


class Source(ABC):
    """An elmo pipe as its listeners see it. The pipe sets the attributes.

    It is abstract because this room imports nothing of `pipeline`, where `DocLayers` knows how docs store layers.
    """

    def __init__(self, name: str, attr: str, model: BiLMModel) -> None:
        self.name, self.attr = name, attr
        self.model: BiLMModel | None = model  # None in a copy that was pickled without the pipe
        # of the listeners that the pipe feeds, also in disabled components; of those that were warned of another biLM
        self.upstreams: weakref.WeakSet[Upstream] = weakref.WeakSet()
        self.warned: weakref.WeakSet[Upstream] = weakref.WeakSet()
        self.layers: int | None = None  # number of layers, once it is known
        self.step: Step | None = None  # the training step of the last batch, if the biLM is tuned
        self.changes = False  # whether the biLM's weights have been tuned in this process

    @abstractmethod
    def read(self, doc: Doc) -> Floats3d | None:
        """Return a doc's layers, *Shape:* (layers, tokens, width); None if neither they nor their mix are stored."""

    @abstractmethod
    def was_dropped(self, doc: Doc) -> bool:
        """Whether the pipe has run on a doc that has no layers, because it stores nothing."""

    @abstractmethod
    def release(self, doc: Doc, reader: Hashable) -> None:
        """Note that the listener with this id needs the doc's layers no more."""

    @property
    def width(self) -> int | None:
        """Width of the layers; None if a model of another kind does not tell."""
        if self.model is None:
            return None
        return next((shim.options.width for shim in bilm_shims(self.model)), self.model.maybe_get_dim("nO"))

    def fingerprint(self) -> str:
        """Return a digest of the biLM's weights; "" if the model is not a BiLM."""
        shims = [] if self.model is None else bilm_shims(self.model)
        return next((shim.compute_fingerprint() for shim in shims), "")

    def name_weights(self, listeners: Iterable[BiLMModel]) -> None:
        """Store the fingerprint of tuned weights in the listeners that were trained on them, before they are saved."""
        if self.changes and self.model is not None:
            for listener in listeners:
                if _upstream(listener).learned:  # else its component is frozen: it knows the weights from before
                    listener.attrs["bilm"] = self.fingerprint()

    def __getstate__(self) -> dict[str, Any]:
        # the model and the step must not be pickled with each listener
        state = self.__dict__ | {"step": None, "model": None}
        return {name: value for name, value in state.items() if name not in ("upstreams", "warned")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, upstreams=weakref.WeakSet(), warned=weakref.WeakSet())


class Step:
    """One batch of a biLM that is tuned: runs it forward, sums the listeners' gradients, and runs it backward once.

    The step cannot know how many components will train on the batch. It counts as complete when the last listeners have
    read the layers, and each listener has called `add_gradients` as often as `expect_gradient`. A `tok2vec` pipe that
    reads the layers calls back after later components have, because it waits for listeners of its own.

    `nlp.update(sgd=...)` calls the pipe's `finish_update` before the other components have called back; then the step
    ends when it is complete. `spacy train` calls it after they have; then it ends the step. The step also ends when
    the weights are used, or the next batch begins. What other threads predict meanwhile is of the weights before it.

    last: the ids of the listeners that read the layers after all others: those of the last component that listens.
    """

    def __init__(self, model: BiLMModel, docs: Sequence[Doc], last: Iterable[Hashable]) -> None:
        self._model, self._thread, self._process = model, threading.current_thread(), os.getpid()
        self.layers: list[Floats3d]
        self._backprop: Callable[[Any], Any] | None
        self.layers, self._backprop = model.begin_update(list(docs))
        self._tokens: list[Any] = [doc.to_array([ORTH, IDX]) for doc in docs]
        # the step stays until the next batch, the docs need not
        self._positions = weakref.WeakKeyDictionary({doc: position for position, doc in enumerate(docs)})
        self._gradients: list[Any] = []
        self._last, self._expected, self._received = set(last), Counter[Hashable](), Counter[Hashable]()
        self._closed = False
        self._optimizer: Optimizer | None = None
        for shim in bilm_shims(model):
            shim.open_step(self._settle)

    def __contains__(self, doc: Doc) -> bool:
        return doc in self._positions

    def layers_of(self, doc: Doc, attr: str) -> Floats3d:
        """Return the layers of a doc of the batch. Raises NotEmbeddedError if it was retokenised."""
        position = self._positions[doc]
        if not np.array_equal(self._tokens[position], doc.to_array([ORTH, IDX])):
            raise NotEmbeddedError(
                f"the tokens here are not those that the ELMo vectors under {attr!r} belong to: the "
                "doc was retokenised after the elmo pipe. While its biLM is tuned, retokenise before that "
                "pipe."
            )
        return self.layers[position]

    def expect_gradient(self, listener: Hashable) -> None:
        """Note that the listener with this id reads the layers, so that its gradient will follow."""
        self._refuse_closed()
        self._expected[listener] += 1

    def add_gradients(self, listener: Hashable, docs: Sequence[Doc], gradients: Sequence[Floats3d]) -> None:
        """Add the gradients of the listener with this id to the sum. Those of docs not in the batch are dropped."""
        self._refuse_closed()
        if not self._gradients:
            self._gradients = [0.0 * layers for layers in self.layers]
        for doc, gradient in zip(docs, gradients):
            position = self._positions.get(doc)
            if position is not None:
                self._gradients[position] += gradient
        self._received[listener] += 1
        complete = self._expected == self._received and all(self._expected[key] for key in self._last)
        # without an optimizer this is `spacy train`, in which components may still run their networks again
        if complete and self._optimizer is not None:
            self.end()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise SettingsError(
                "a component used a biLM that is tuned after the step of its batch had ended, so its gradient "
                "would be lost. Run each component's network once in an update, and do not predict between its "
                "forward and its backward pass; or update with sgd=False and call finish_update of each pipe, as "
                "spacy train does."
            )

    def finish(self, optimizer: Optimizer) -> None:
        """Apply the gradients with this optimizer: at once, or if no listener has called back yet, at the end."""
        self._optimizer = optimizer
        if self._closed or self._gradients:
            self.end()

    def _settle(self) -> None:
        # the thread that trains ends its step, also in its forked process; another one if that thread has ended
        begun_here = self._thread is threading.current_thread()
        if self._gradients and (begun_here or (os.getpid() == self._process and not self._thread.is_alive())):
            self.end()

    def end(self) -> None:
        """Run the biLM's backward pass, if any listener has called back, and apply the optimizer, if it was given."""
        for shim in bilm_shims(self._model):
            shim.open_step(None)
        gradients, self._gradients = self._gradients, []
        backprop, self._backprop = self._backprop, None
        self._closed, self.layers = True, []
        if gradients and backprop is not None:
            backprop(gradients)
        optimizer, self._optimizer = self._optimizer, None
        if optimizer is not None:
            self._model.finish_update(optimizer)


LISTENER, BILM = "spacy-elmo.Listener.v1", "spacy-elmo.BiLM.v1"
Block = dict[str, Any]


class Replacement:
    """The two functions that spaCy calls to replace a component's listeners to one elmo pipe, all at once.

    For each path that the user named, spaCy calls `config` with the component's complete tok2vec block, and sets the
    result at that path of the component's config. Then it calls `model` for each listener of the model. The path may
    be that of the tok2vec block or that of a listener inside it, and spaCy does not say which. So `model` writes the
    complete block again, in which all listeners to the pipe are replaced.

    pipe: name of the elmo pipe.
    """

    def __init__(self, pipe: str) -> None:
        self.pipe = pipe
        self._before: Block | None = None  # a copy of the tok2vec block before spaCy changed it; None: nothing is open
        self._now: Block = {}  # the block in the component's config
        self._result: Block = {}  # what `config` returned last, which may have taken its place

    def config(self, bilm: Block, tok2vec: Block) -> Block:
        """Return the tok2vec block in which each listener to the pipe is replaced by the block of the pipe's model."""
        if self._before is None or (tok2vec is not self._now and tok2vec is not self._result):
            self._before = copy.deepcopy(tok2vec)
        self._now, self._result = tok2vec, self._replaced(self._before, bilm)
        return self._result

    def model(self, bilm: BiLMModel, listener: BiLMModel, pipe: Any) -> BiLMModel:
        """Complete the component's config, and return the copy of the pipe's biLM that replaces the listener."""
        width, own = None, listener.maybe_get_dim("nO")
        with suppress(ElmoError):  # a saved pipeline's config may name files that are gone: its weights come later
            width = pipe.width
        if None not in (width, own) and width != own:
            for block in (self._now, self._result):  # what `config` has changed
                block.clear()
                block.update(copy.deepcopy(self._before or {}))
            raise SettingsError(
                f"width is {own} in a component's spacy-elmo.Listener.v1, but the biLM of the pipe {pipe.name!r} gives "
                f"{width}, so it can't take the listener's place. Use the biLM that the component was trained with."
            )
        complete = copy.deepcopy(self._result)
        self._now.clear()
        self._now.update(complete)
        self._before = None
        return bilm

    def _replaced(self, block: Any, bilm: Block) -> Any:
        if not isinstance(block, dict):
            return block
        if block.get("@architectures") == LISTENER and block.get("upstream", "*") in ("*", self.pipe):
            # with the listener's width, which may be the network's only way to know it before any file is read
            own = {"width": block["width"]} if bilm.get("@architectures") == BILM else {}
            return copy.deepcopy(bilm | own)
        return {name: self._replaced(value, bilm) for name, value in block.items()}


def listeners_in(model: Model[Any, Any]) -> list[BiLMModel]:
    """Return all listeners of a model, at any depth."""
    return [node for node in model.walk() if node.name == NAME]
