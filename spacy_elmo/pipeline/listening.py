"""The methods of an elmo pipe that spaCy calls to link it with its listeners."""

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from spacy.language import Language
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc
from thinc.api import Model, Optimizer
from thinc.types import Floats3d

from ..errors import NotEmbeddedError, SettingsError, UnusedLayersWarning
from ..models.listener import Replacement, Source, Step, Upstream, listeners_in
from ..models.shim import bilm_shims
from ..models.types import BiLMModel
from .attributes import Block, follow, has_values, is_not_stored, layers_of, tokens_of


class _Held:
    """The layers of one doc, and the listeners that have not read them yet."""

    def __init__(self, block: Block, readers: Iterable[Hashable]) -> None:
        self.block, self.readers = block, set(readers)


# The held layers of each doc by attr. They are not in doc.user_data, so that nobody writes them; they go with the doc.
_HELD: WeakKeyDictionary[Doc, dict[str, _Held]] = WeakKeyDictionary()


@dataclass(frozen=True)
class DocLayers:
    """Reads the layers of docs.

    attr: the setting `attr` of an elmo pipe.
    """

    attr: str

    def hold(self, doc: Doc, layers: Floats3d, readers: Iterable[Hashable]) -> None:
        """Hold layers until each reader has released them, or the doc is gone. Without readers nothing is held.

        doc: the doc. Layers that were held before are dropped.
        layers: *Shape:* (layers, tokens, width).
        readers: the ids of all listeners.
        """
        self.drop(doc)
        held = _Held(Block(0, tokens_of(doc), layers, None, None), readers)
        if held.readers:
            _HELD.setdefault(doc, {})[self.attr] = held

    def drop(self, doc: Doc) -> None:
        """Drop layers that are held, if any. doc: any doc."""
        held = _HELD.get(doc, {})
        held.pop(self.attr, None)
        if not held:
            _HELD.pop(doc, None)

    def release(self, doc: Doc, reader: Hashable) -> None:
        """Note that a reader needs the layers no more. After the last one they are dropped.

        doc: any doc.
        reader: the id of a listener.
        """
        held = _HELD.get(doc, {}).get(self.attr)
        if held is not None:
            held.readers.discard(reader)
            if not held.readers:
                self.drop(doc)

    def has(self, doc: Doc) -> bool:
        """Whether there is something to read, if only a mix. doc: any doc."""
        return self.attr in _HELD.get(doc, {}) or has_values(doc, attr=self.attr)

    def were_dropped(self, doc: Doc) -> bool:
        """Whether a pipe has run on the doc but stored nothing. doc: a doc that `has` nothing."""
        return is_not_stored(doc, self.attr)

    def read(self, doc: Doc) -> Floats3d:
        """Return the layers of a doc that `has` something, *Shape:* (layers, tokens, width).

        doc: the doc. If it was retokenised, its tokens have the layers of their characters.

        Raises NotEmbeddedError if only a mix is stored, or a token has no layers.
        """
        held = _HELD.get(doc, {}).get(self.attr)
        if held is None:
            return layers_of(doc, attr=self.attr)
        if np.array_equal(held.block.tokens, tokens_of(doc)):
            layers: Floats3d = held.block.layers
            return layers

        def values_of(block: Block, rows: Any) -> Any:
            return block.layers[:, rows]

        followed: Floats3d | None = follow(doc, [held.block], values_of)
        if followed is None:
            raise NotEmbeddedError(
                f"the tokens here are not those that the ELMo vectors under {self.attr!r} belong to: the doc was "
                "joined with one that has none, or its text is another. Run the pipe on it again."
            )
        return followed


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


class Listening:
    """Mixin of the elmo pipe that knows which listeners, of which components, the pipe feeds.

    spaCy calls its methods when a pipeline changes (see spacy.ty.ListenedToComponent). A pipe calls `_listen_as` in its
    constructor.
    """

    name: str
    model: BiLMModel
    source: Source

    def _listen_as(self, attr: str) -> None:
        self._doc_layers = DocLayers(attr)
        self.source = Source(self.name, attr, self._doc_layers)
        self._listener_map: dict[str, list[BiLMModel]] = {}
        self._warned_of_no_listener = False
        self._before: list[str] = []
        self._found_by: list[str] = []
        self.start_linking({})

    @property
    def listener_map(self) -> dict[str, list[BiLMModel]]:
        """The listeners by component name. spaCy assigns {} before it links a pipeline again."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listeners: dict[str, list[BiLMModel]]) -> None:
        # spaCy (Language._link_components) announces a new linking only by this assignment
        self.start_linking(listeners)

    def start_linking(self, listeners: dict[str, list[BiLMModel]]) -> None:
        """Forget all listeners. Afterwards spaCy calls `find_listeners` for each later component that is not disabled.

        The listeners of disabled components are fed nevertheless, because spaCy does not link the pipeline again when
        it enables them. Those that ask for another name than the pipe now has are fed no more.

        The elmo pipes that have called `find_listeners` with this one since the last linking are those before it. The
        functions for `replace_listeners` are created again, because the pipe may have another name.

        listeners: the listeners by component name at the start; spaCy passes an empty dict.
        """
        for upstream in self.upstreams:
            if not upstream.accepts(self.name):
                upstream.unbind(self.source)
                upstream.note_name(self.name)
        self._listener_map = listeners
        self._before, self._found_by = self._found_by, []
        self.source.name = self.name
        replacement = Replacement(self.name)
        self.model.attrs["replace_listener_cfg"] = replacement.config
        self.model.attrs["replace_listener"] = replacement.model

    @property
    def listeners(self) -> list[BiLMModel]:
        """The listeners of all components."""
        return [listener for listeners in self._listener_map.values() for listener in listeners]

    @property
    def upstreams(self) -> set[Upstream]:
        """Those of all listeners, also of components that were disabled when spaCy linked the pipeline."""
        return _upstreams_of(self.listeners) | set(self.source.upstreams)

    @property
    def last_upstreams(self) -> set[Upstream]:
        """Of `upstreams`, those of the last component, and those whose place in the pipeline is not known."""
        last = next(reversed(self._listener_map.values()), [])
        return _upstreams_of(last) | (self.upstreams - _upstreams_of(self.listeners))

    def hand_over(self, docs: Sequence[Doc], held: Sequence[Floats3d] | None) -> None:
        """Hold the layers of docs until all listeners have read them, if they are not stored on the docs.

        docs: the docs.
        held: their layers, *Shape:* (layers, tokens, width) each; None: they are stored on the docs.

        Issues an UnusedLayersWarning, once, if layers should be held but there are no listeners.
        """
        self.relink()
        readers = [upstream.id for upstream in self.upstreams]
        if held and not readers and not self._warned_of_no_listener:
            self._warned_of_no_listener = True
            warnings.warn(
                (
                    f'the pipe {self.name!r} has store = "none", but no component listens to it: what it computes '
                    'is dropped. Set store to "layers", or remove the pipe. This warning is given once.'
                ),
                UnusedLayersWarning,
                stacklevel=3,
            )
        for i, doc in enumerate(docs):
            self._doc_layers.drop(doc)
            if held:
                self._doc_layers.hold(doc, held[i], readers)

    def relink(self) -> None:
        """Bind the listeners to this pipe again that are bound to another one.

        It is needed because pipelines share a component that one of them sources from the other; then the listeners
        may be bound to the other pipeline's elmo pipe.
        """
        for listener in self.listeners:
            if listener.attrs["upstream"].fed_by is not self.source:
                self._bind(listener)

    def _bind(self, listener: BiLMModel) -> None:
        upstream = listener.attrs["upstream"]
        left = upstream.fed_by
        if left is not None and left is not self.source:
            _name_weights(left, [listener])  # the listener was trained with them
        upstream.bind(self.source, self._before)

    def name_weights(self) -> None:
        """Store the fingerprint of tuned weights in the listeners that were trained on them, before they are saved."""
        _name_weights(self.source, self.listeners)

    @property
    def listening_components(self) -> list[str]:
        """Names of the components that have listeners."""
        return list(self._listener_map)

    def add_listener(self, listener: BiLMModel, component_name: str) -> None:
        """Feed a listener.

        listener: the listener.
        component_name: name of its component.
        """
        listeners = self._listener_map.setdefault(component_name, [])
        if not any(known is listener for known in listeners):
            listeners.append(listener)
        self._bind(listener)

    def remove_listener(self, listener: BiLMModel, component_name: str) -> bool:
        """Stop feeding a listener.

        listener: the listener.
        component_name: name of its component.

        Returns whether it was fed.
        """
        listeners = self._listener_map.get(component_name, [])
        others = [known for known in listeners if known is not listener]
        if len(others) == len(listeners):
            return False
        listener.attrs["upstream"].unbind(self.source)
        self._listener_map[component_name] = others
        if not others:
            del self._listener_map[component_name]
        return True

    def check_listeners(self, nlp: Language | None) -> None:
        """Raise SettingsError if a listener's width is not that of the biLM, or its component cannot use a listener.

        nlp: the pipeline; None: components are not checked.
        """
        width = self.model.maybe_get_dim("nO")
        for listener in self.listeners:
            if width is not None and listener.get_dim("nO") != width:
                raise SettingsError(
                    f"width is {listener.get_dim('nO')} in a component's spacy-elmo.Listener.v1, but the biLM of "
                    f"the pipe {self.name!r} gives {width}. Set width to {width}, or use the biLM that the "
                    "component was trained with."
                )
        for name, component in nlp.components if nlp is not None else []:
            if name in self._listener_map and isinstance(component, EntityLinker):
                raise SettingsError(
                    f"the component {name!r} is an entity_linker, which works on copies of the docs, and the "
                    "copies have no layers. Give it spacy-elmo.BiLM.v1 as source, in place of "
                    "spacy-elmo.Listener.v1."
                )

    def find_listeners(self, component: Any) -> None:
        """Feed the listeners of a component that ask for this pipe.

        component: any component. If it is an elmo pipe, it is told that this pipe is before it.

        Raises SettingsError if it is an elmo pipe with the same attr, or this pipe, which spaCy lets a user source.
        """
        if component is self:
            raise SettingsError(
                f"{self.name!r} is twice in the pipeline: add_pipe(..., source=...) adds the same pipe, not a "
                "copy. Remove one of them, or source the second from a pipeline that you load again."
            )
        if isinstance(component, Listening):
            if component.source.attr == self.source.attr:
                raise SettingsError(
                    f"attr is {self.source.attr!r}, but the pipe {self.name!r} has the same. Set attr of one of "
                    "them to another name: a doc has one set of layers under each name."
                )
            component._found_by.append(self.name)
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for listener in listeners_in(model):
                if listener.attrs["upstream"].accepts(self.name):
                    self.add_listener(listener, component.name)


def _name_weights(source: Source, listeners: Iterable[BiLMModel]) -> None:
    if source.changes and source.fingerprint is not None:
        fingerprint = source.fingerprint()
        for listener in listeners:
            if listener.attrs["upstream"].learned:  # else its component is frozen: it knows the weights from before
                listener.attrs["bilm"] = fingerprint


def _upstreams_of(listeners: Iterable[BiLMModel]) -> set[Upstream]:
    return {listener.attrs["upstream"] for listener in listeners}
