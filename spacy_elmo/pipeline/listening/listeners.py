"""The methods of an elmo pipe that spaCy calls to link it with its listeners."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from spacy.language import Language
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ...errors import Errors, SettingsError, UnusedLayersWarning
from ...models.listening.replacing import Replacement, listeners_in
from ...models.listening.upstream import Source, Upstream
from ...models.types import BiLMModel
from .doc_layers import DocLayers


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
            warnings.warn(Errors.STORE_UNUSED.format(name=self.name), UnusedLayersWarning, stacklevel=3)
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
                    Errors.LISTENER_WIDTH.format(width=listener.get_dim("nO"), got=width, pipe=self.name)
                )
        for name, component in nlp.components if nlp is not None else []:
            if name in self._listener_map and isinstance(component, EntityLinker):
                raise SettingsError(Errors.LISTENER_LINKER.format(name=name))

    def find_listeners(self, component: Any) -> None:
        """Feed the listeners of a component that ask for this pipe.

        component: any component. If it is an elmo pipe, it is told that this pipe is before it.

        Raises SettingsError if it is an elmo pipe with the same attr, or this pipe, which spaCy lets a user source.
        """
        if component is self:
            raise SettingsError(Errors.PIPE_TWICE.format(name=self.name))
        if isinstance(component, Listening):
            if component.source.attr == self.source.attr:
                raise SettingsError(Errors.ATTR_TWICE.format(attr=self.source.attr, other=self.name))
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
