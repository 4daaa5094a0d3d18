"""The listener: a Thinc layer that returns the layers which an elmo pipe has stored on the docs."""

import copy
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from spacy.attrs import IDX, ORTH
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..errors import ChangedBiLMWarning, NotEmbeddedError, SettingsError
from .bilm import leave_component
from .types import BiLMModel, is_whole


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
            raise SettingsError(
                "a component used a biLM that is tuned after the step of its batch had ended, so its gradient "
                "would be lost. Run each component's network once in an update, and do not predict between its "
                "forward and its backward pass; or update with sgd=False and call finish_update of each pipe, as "
                "spacy train does."
            )
        self._expected[listener] += 1

    def add_gradients(self, listener: Hashable, docs: Sequence[Doc], gradients: Sequence[Floats3d]) -> None:
        """Add a listener's gradients to the sum. Those of docs that are not in the batch are dropped.

        listener: its id.
        docs: the docs that it has read.
        gradients: *Shape:* (layers, tokens, width) for each doc.

        Raises SettingsError after `close`, because the biLM's gradient has been computed without these.
        """
        if self.closed:
            raise SettingsError(
                "a component used a biLM that is tuned after the step of its batch had ended, so its gradient "
                "would be lost. Run each component's network once in an update, and do not predict between its "
                "forward and its backward pass; or update with sgd=False and call finish_update of each pipe, as "
                "spacy train does."
            )
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


class LayersOfDocs(Protocol):
    """How the layers are read that an elmo pipe has left for its listeners."""

    def has(self, doc: Doc) -> bool:
        """Whether the doc has something to read, if only a mix."""

    def were_dropped(self, doc: Doc) -> bool:
        """Whether the pipe has run on a doc that has nothing to read, because it stores nothing."""

    def read(self, doc: Doc) -> Floats3d:
        """Return the layers, *Shape:* (layers, tokens, width). Raises NotEmbeddedError if it can't."""

    def release(self, doc: Doc, reader: Hashable) -> None:
        """Note that the listener with this id needs the layers no more."""


class Source:
    """An elmo pipe as its listeners see it.

    name: name of the pipe.
    attr: name of the extension attribute under which the pipe stores the layers.
    docs: reads the layers of docs under `attr`.
    fingerprint: returns a digest of the biLM's weights, "" if the model has none. None after unpickling.

    Attributes that the pipe sets:
    upstreams: those of the listeners that the pipe feeds, also in components that are disabled.
    warned: those of the listeners about which a ChangedBiLMWarning was issued.
    layers: number of layers; None as long as it is not known.
    step: the training step that is open, if the biLM is tuned; None: there is none.
    changes: whether the biLM's weights have been tuned in this process.
    """

    def __init__(
        self,
        name: str,
        attr: str,
        docs: LayersOfDocs,
        fingerprint: Callable[[], str] | None = None,
    ) -> None:
        self.name, self.attr, self.docs, self.fingerprint = name, attr, docs, fingerprint
        self.upstreams: weakref.WeakSet[Upstream] = weakref.WeakSet()
        self.warned: weakref.WeakSet[Upstream] = weakref.WeakSet()
        self.layers: int | None = None
        self.step: Step | None = None
        self.changes = False

    def __getstate__(self) -> dict[str, Any]:
        # step and fingerprint lead to the pipe, which must not be pickled with each listener
        state = self.__dict__ | {"step": None, "fingerprint": None}
        return {name: value for name, value in state.items() if name not in ("upstreams", "warned")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, upstreams=weakref.WeakSet(), warned=weakref.WeakSet())


class Upstream:
    """The elmo pipe that a listener asks for, and the pipe that feeds it.

    name: name of the pipe that is asked for; "*": the only elmo pipe.
    id: attribute, identifies the listener. It leads to nothing, so that whoever keeps it keeps nothing else alive.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.id: Hashable = object()
        self.learned = False  # whether the listener was trained while the biLM of the pipe that feeds it was tuned
        self.renamed = ""  # the new name of the pipe that was asked for, if it was renamed after it was bound
        self._source: Source | None = None
        self._rivals: tuple[str, ...] = ()
        self._samples: weakref.WeakValueDictionary[int, Doc] = weakref.WeakValueDictionary()

    def accepts(self, pipe: str) -> bool:
        """Whether the listener asks for this pipe.

        pipe: name of an elmo pipe.
        """
        return self.name in ("*", pipe)

    def bind(self, source: Source, rivals: Iterable[str]) -> None:
        """Let a pipe feed the listener, in place of any other.

        source: the pipe.
        rivals: names of the elmo pipes before it in the pipeline, which make "*" ambiguous.
        """
        if self._source is not None:
            self._source.upstreams.discard(self)
        self.learned = self.learned and self._source is source
        self._source, self._rivals, self.renamed = source, tuple(rivals), ""
        source.upstreams.add(self)
        # spaCy links a pipeline again when all its components are initialised
        self._samples.clear()

    def unbind(self, source: Source) -> None:
        """Stop a pipe from feeding the listener. Nothing happens if another pipe feeds it.

        source: the pipe.
        """
        if self._source is source:
            self._source = None
            source.upstreams.discard(self)

    def note_name(self, name: str) -> None:
        """Remember the new name of the pipe, if it is no longer the one that the listener asks for.

        name: what the pipe that fed the listener is now called.
        """
        if not self.accepts(name):
            self.renamed = name

    @property
    def fed_by(self) -> Source | None:
        """The pipe that feeds the listener, also if the listener's "*" is ambiguous; None: there is none."""
        return self._source

    @property
    def source(self) -> Source | None:
        """The pipe that feeds the listener; None: there is none.

        Raises SettingsError if the listener asks for "*" and there are several elmo pipes.
        """
        if self._source is not None and self.name == "*" and self._rivals:
            names = ", ".join(map(repr, (*self._rivals, self._source.name)))
            raise SettingsError(
                f'upstream is "*", but there are several elmo pipes before this component: {names}. Set '
                "upstream in its spacy-elmo.Listener.v1 to one of these names."
            )
        return self._source

    def remember_samples(self, docs: Iterable[Doc]) -> None:
        """Remember the sample docs: those with which a model is initialised, before any pipe has seen them.

        docs: the sample docs. They are not kept alive.
        """
        self._samples.update({id(doc): doc for doc in docs})

    def is_sample(self, doc: Doc) -> bool:
        """Whether this is a sample doc of an initialisation that is not over.

        doc: any doc.
        """
        return self._samples.get(id(doc)) is doc

    def forget_samples(self) -> None:
        """Forget the sample docs, because initialisation is over."""
        self._samples.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Upstream":
        other = Upstream(self.name)
        other.learned = self.learned
        # if the pipe is copied as well, its copy feeds this one; if only the component is copied, the same pipe does
        other._source, other._rivals = memo.get(id(self._source), self._source), self._rivals
        if other._source is not None and other._source is not self._source and self._is_fed():
            other._source.upstreams.add(other)
        return other

    def _is_fed(self) -> bool:
        """Whether a pipe counts this listener. Copies of a component alone, as spaCy makes for rehearsing, are not."""
        return self._source is not None and self in self._source.upstreams

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"fed": self._is_fed()}
        return {name: value for name, value in state.items() if name != "_samples"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fed = state.pop("fed")
        self.__dict__.update(state, _samples=weakref.WeakValueDictionary())
        if fed and self._source is not None:
            self._source.upstreams.add(self)


NAME = "elmo_listener"


def build_listener(width: int, upstream: str = "*") -> BiLMModel:
    """Build spacy-elmo.Listener.v1: docs -> the layers that an earlier elmo pipe has stored on them.

    Output: for each doc an array of *Shape:* (layers, tokens, width).

    width: width of the biLM's layers, which is twice its projection_dim; 256 for the embedded biLM.
    upstream: name of the elmo pipe; "*": the only elmo pipe of the pipeline.

    Backprop hands the gradient to the elmo pipe, if its biLM is not frozen. A doc without layers raises
    NotEmbeddedError, which names the pipe and the attribute. The docs with which the model is initialised give zeros:
    no pipe has seen them yet.

    Raises SettingsError if width or upstream cannot be used.
    """
    if not is_whole(width) or width < 1:
        raise SettingsError(
            f"width is {width!r} in spacy-elmo.Listener.v1. Expected the width of the biLM, a whole number: 256 "
            "for the embedded one, else twice its projection_dim."
        )
    if not isinstance(upstream, str) or not upstream:
        raise SettingsError(
            f'upstream is {upstream!r} in spacy-elmo.Listener.v1. Expected the name of an elmo pipe, or "*".'
        )
    attrs = {"upstream": Upstream(upstream), "bilm": ""}
    return Model(NAME, forward, init=init, dims={"nO": width}, attrs=attrs)


def init(model: BiLMModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Remember the sample docs, for which the listener returns zeros during initialisation.

    X: the docs that initialisation runs through the model.
    Y: ignored.
    """
    _upstream(model).remember_samples(X or [])


def forward(
    model: BiLMModel, X: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    """Return the layers of each doc.

    X: docs that the elmo pipe has annotated.
    is_train: whether backprop will be called. If the biLM is being tuned, the layers come from the open step, and
        backprop adds their gradient to it.

    Returns *Shape:* (layers, tokens, width) for each doc, and backprop, which returns no gradients of docs.
    Raises NotEmbeddedError if a doc has no layers, and SettingsError if their width is not that of the listener.
    """
    upstream, docs = _upstream(model), list(X)
    source = upstream.source
    if is_train:
        upstream.forget_samples()
    step = source.step if source is not None and is_train else None
    if step is not None and not any(doc in step for doc in docs):
        step = None
    if step is not None:
        step.expect_gradient(upstream.id)
    layers: list[Any] = []
    for doc in docs:
        if step is not None and doc in step:
            _read(upstream, source, doc, is_train)  # raises if the doc's layers were removed
            if source is not None and not step.has_tokens_of(doc):
                raise NotEmbeddedError(
                    f"the tokens here are not those that the ELMo vectors under {source.attr!r} belong to: the "
                    "doc was retokenised after the elmo pipe. While its biLM is tuned, retokenise before that "
                    "pipe."
                )
            layers.append(step.layers[step.positions[id(doc)]])
        else:
            layers.append(_read(upstream, source, doc, is_train))
        if layers[-1] is not None and layers[-1].shape[2] != model.get_dim("nO"):
            raise SettingsError(
                f"width is {model.get_dim('nO')} in a component's spacy-elmo.Listener.v1, but the biLM of the "
                f"pipe {source.name if source else upstream.name!r} gives {layers[-1].shape[2]}. Set width to "
                f"{layers[-1].shape[2]}, or use the biLM that the component was trained with."
            )
    if source is not None and source.fingerprint is not None:
        _check_fingerprint(model, source, source.fingerprint, is_train)

    if source is not None and not is_train:  # in training a component may predict after its update
        for doc in docs:
            source.docs.release(doc, upstream.id)

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if step is not None:
            step.add_gradients(upstream.id, docs, dY)
        return []

    n_layers = max((len(y) for y in layers if y is not None), default=source.layers or 0 if source else 0)
    for i, doc in enumerate(docs):
        if layers[i] is None:
            layers[i] = np.zeros((n_layers, len(doc), model.get_dim("nO")), "f")
    return [model.ops.asarray3f(y) for y in layers], backprop


def _upstream(model: BiLMModel) -> Upstream:
    upstream = model.attrs["upstream"]
    assert isinstance(upstream, Upstream)
    return upstream


def _read(upstream: Upstream, source: Source | None, doc: Doc, is_train: bool) -> Floats3d | None:
    """Return the doc's layers, *Shape:* (layers, tokens, width); None for a sample doc that has none.

    Raises NotEmbeddedError if any other doc has no layers.
    """
    if source is None:
        if upstream.is_sample(doc):
            return None
        name = "" if upstream.name == "*" else f" named {upstream.name!r}"
        if upstream.renamed:
            raise NotEmbeddedError(
                f"a component listens to an elmo pipe named {upstream.name!r}, which was renamed to "
                f"{upstream.renamed!r}. Rename it back, or set upstream in the component's spacy-elmo.Listener.v1 "
                f"to {upstream.renamed!r} in the config before the pipeline is built."
            )
        raise NotEmbeddedError(
            f"a component listens to an elmo pipe{name}, but there is none before it: the pipeline has no such "
            'pipe, or has it later, or under another name. Put it first, nlp.add_pipe("elmo", first=True), or '
            f"set upstream, which is {upstream.name!r}, in the component's spacy-elmo.Listener.v1 to its name."
        )
    if source.docs.has(doc):
        return source.docs.read(doc)
    if upstream.is_sample(doc):
        return None
    if source.docs.were_dropped(doc):
        raise NotEmbeddedError(
            f'the pipe {source.name!r} has store = "none", so it holds the layers of a doc until each component '
            "that listens has predicted on it once. A copy of the doc has none, and a network can read the same "
            f'listener in one place only. Run {source.name!r} on this doc again, or set its store to "layers".'
        )
    message = (
        (
            "a component that is trained listens to the pipe {pipe!r}, but a doc has nothing in doc._.{attr}_layers: "
            "the pipe did not run in this update. If it is in frozen_components, add it to annotating_components "
            "too, or remove it from frozen_components (frozen = true in its own config is enough). If it is "
            "disabled, enable it. If this is spacy debug model or spacy pretrain, which run a component alone, add "
            '--nlp.after_pipeline_creation \'{{"@callbacks": "spacy-elmo.ReplaceListeners.v1"}}\'.'
        )
        if is_train
        else (
            "a component listens to the pipe {pipe!r}, but a doc has nothing in doc._.{attr}_layers: the pipe is "
            "disabled, removed or comes later, or the doc is a copy without them (as_doc, or in an entity_linker). "
            "Run {pipe!r} on it first."
        )
    )
    raise NotEmbeddedError(message.format(pipe=source.name, attr=source.attr))


def _check_fingerprint(model: BiLMModel, source: Source, fingerprint: Callable[[], str], is_train: bool) -> None:
    """Store in training which biLM the layers came from; in prediction warn once if they come from another biLM.

    The fingerprint is stored in model.attrs["bilm"], which is saved with the model.
    """
    upstream = _upstream(model)
    if source.changes:
        if is_train:
            # the weights still change: the pipe stores their fingerprint when it is saved
            model.attrs["bilm"], upstream.learned = "", True
    elif is_train:
        model.attrs["bilm"] = fingerprint()
        source.warned.discard(upstream)
    elif upstream not in source.warned and model.attrs["bilm"] and fingerprint() not in ("", model.attrs["bilm"]):
        source.warned.add(upstream)
        warnings.warn(
            (
                f"the biLM of the pipe {source.name!r} is not the one with which this component was trained, so its "
                "predictions may be useless. Use that biLM, or train the component again. This warning is given once."
            ),
            ChangedBiLMWarning,
            stacklevel=2,
        )


LISTENER, BILM = "spacy-elmo.Listener.v1", "spacy-elmo.BiLM.v1"
Block = dict[str, Any]


class Replacement:
    """The two functions that spaCy calls to replace a component's listeners to one elmo pipe.

    For each listener path that the user named, spaCy calls `config` with the component's complete tok2vec block, and
    sets the result at that path in the component's config. Then it calls `model` for each listener of the model.

    The path may be that of the tok2vec block or that of a listener inside it, and spaCy does not say which. So
    `config` always returns the tok2vec block. If this block afterwards contains its own result, then the path was that
    of a listener, and `model` puts the biLM's block there instead.

    pipe: name of the elmo pipe.
    """

    def __init__(self, pipe: str) -> None:
        self.pipe = pipe
        self._tok2vec: Block = {}  # the block in the component's config, which spaCy changes
        self._before: Block = {}  # a copy of that block before spaCy changed it
        self._places: list[tuple[Block, str]] = []  # present and former listeners: the block around each, its key there
        self._returned: list[tuple[Block, Block]] = []  # for each call of config: its result, and the biLM's block

    def config(self, bilm: Block, tok2vec: Block) -> Block:
        """Return the tok2vec block in which each listener to the pipe is replaced by the biLM's block.

        spaCy calls it once for each listener, and then calls `model` the same number of times.

        bilm: the config of the pipe's model.
        tok2vec: the tok2vec block of the component's config.
        """
        if tok2vec is not self._tok2vec and not self._is_returned(tok2vec):
            self._before, self._returned = copy.deepcopy(tok2vec), []
        # with the listener's width, so that the network knows its shape before any file is read
        width = next((block["width"] for block in _blocks(self._before) if self._listens(block)), None)
        block = copy.deepcopy(bilm) | ({"width": width} if bilm.get("@architectures") == BILM else {})
        self._tok2vec = tok2vec
        self._places = [
            (parent, name)
            for parent in _blocks(tok2vec)
            for name, value in parent.items()
            if self._listens(value) or self._is_returned(value) or value == block
        ]
        result = {name: self._replaced(value, block) for name, value in tok2vec.items()}
        self._returned.append((result, block))
        return result

    def model(self, bilm: BiLMModel, listener: BiLMModel, pipe: Any) -> BiLMModel:
        """Prepare the copy of the pipe's biLM that replaces a listener, and complete the component's config.

        The copy is trained only if its own setting `trainable` says so.

        bilm: the copy of the pipe's model, which spaCy has made.
        listener: the listener that it replaces.
        pipe: the elmo pipe.

        Returns bilm. Raises SettingsError, and restores the config, if the paths that the user named are neither that
        of the tok2vec block nor those of all its listeners.
        """
        results = [
            (parent, name, block)
            for parent in _blocks(self._tok2vec)
            for name, value in parent.items()
            for result, block in self._returned
            if value is result
        ]
        # if the last path was that of the tok2vec block, the last result has replaced this block, and is complete
        inside = any(parent[name] is self._returned[-1][0] for parent, name, _ in results)
        for parent, name, block in results:
            parent[name] = copy.deepcopy(block)
        stray = [name for parent, name, _ in results if not any(parent is p and name == n for p, n in self._places)]
        if stray or (inside and any(self._listens(block) for block in _blocks(self._tok2vec))):
            self._tok2vec.clear()
            self._tok2vec.update(self._before)
            self._returned = []
            raise SettingsError(
                "replace_listeners was given paths that are neither the component's tok2vec block nor its "
                f'listeners to {self.pipe!r}. Give "model.tok2vec" as often as it has listeners, or the path of '
                'each listener, such as "model.tok2vec.elmo.source". Nothing was replaced.'
            )
        self._tok2vec, self._returned = {}, []
        leave_component(bilm)
        return bilm

    def _listens(self, block: Any) -> bool:
        if not isinstance(block, dict) or block.get("@architectures") != LISTENER:
            return False
        return block.get("upstream", "*") in ("*", self.pipe)

    def _is_returned(self, block: Any) -> bool:
        return any(block is result for result, _ in self._returned)

    def _replaced(self, block: Any, bilm: Block) -> Any:
        if not isinstance(block, dict):
            return block
        if self._listens(block) or self._is_returned(block):
            return copy.deepcopy(bilm)
        return {name: self._replaced(value, bilm) for name, value in block.items()}


def _blocks(block: Any) -> Iterator[Block]:
    """Yield a config block and all blocks inside it."""
    if isinstance(block, dict):
        yield block
        for value in list(block.values()):
            yield from _blocks(value)


def listeners_in(model: Model[Any, Any]) -> list[BiLMModel]:
    """Return all listeners of a model, at any depth.

    model: any Thinc model.
    """
    return [node for node in model.walk() if node.name == NAME]


def source_name(node: Model[Any, Any]) -> str:
    """Return what feeds a scalar mix: the name of the pipe that a listener asks for, or "biLM".

    node: the layer before the mix.
    """
    return node.attrs["upstream"].name if node.name == NAME else "biLM"
