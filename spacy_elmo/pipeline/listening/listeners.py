"""The pipe's side of its listeners, as spaCy asks for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spacy.language import Language
from spacy.pipeline import EntityLinker
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ...errors import Errors, SettingsError
from ...models.listening.replacing import Replacement, listeners_in
from ...models.listening.upstream import Source
from ...models.types import BiLMModel
from ..attributes import has_values, layers_of


class Listening:
    """Keeps which components listen, and through which layers of their models.

    spaCy calls these when a pipeline changes: see spacy.ty.ListenedToComponent.
    """

    name: str
    model: BiLMModel
    source: Source

    def _listen_as(self, attr: str) -> None:
        read: Callable[[Doc], Floats3d] = partial(layers_of, attr=attr)
        self.source = Source(self.name, attr, partial(has_values, attr=attr), read)
        self._listener_map: dict[str, list[BiLMModel]] = {}
        self._before: list[str] = []
        self._found_by: list[str] = []
        self.start_linking({})

    @property
    def listener_map(self) -> dict[str, list[BiLMModel]]:
        """Components' names and their listeners. spaCy sets it to {} before it links a pipeline anew."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listeners: dict[str, list[BiLMModel]]) -> None:
        """Start linking: a setter, because spaCy (Language._link_components) tells it by assigning {}, and not else."""
        self.start_linking(listeners)

    def start_linking(self, listeners: dict[str, list[BiLMModel]]) -> None:
        """Let go of all listeners: find_listeners, which spaCy calls next for each later component, feeds them anew.

        The pipes that have found this one since the last linking count as standing before it. What replaces listeners
        is made anew too, under the pipe's name of now.

        listeners: components' names and the listeners to begin with; spaCy gives none.
        """
        for listener in self.listeners:
            listener.attrs["upstream"].unbind(self.source)
        self._listener_map = listeners
        self._before, self._found_by = self._found_by, []
        self.source.name = self.name
        replacement = Replacement(self.name)
        self.model.attrs["replace_listener_cfg"] = replacement.config
        self.model.attrs["replace_listener"] = replacement.model

    @property
    def listeners(self) -> list[BiLMModel]:
        """All listeners of all components."""
        return [listener for listeners in self._listener_map.values() for listener in listeners]

    @property
    def last_listeners(self) -> list[BiLMModel]:
        """Those of the last component that listens, in the pipeline's order."""
        return next(reversed(self._listener_map.values()), [])

    def relink(self) -> None:
        """Feed the listeners again: spaCy shares a component between the pipelines that source it."""
        for listener in self.listeners:
            listener.attrs["upstream"].bind(self.source, self._before)

    def name_weights(self) -> None:
        """Let the listeners know with which weights they are saved, where those were tuned."""
        if self.source.changes and self.source.fingerprint is not None:
            fingerprint = self.source.fingerprint()
            for listener in self.listeners:
                listener.attrs["bilm"] = fingerprint

    @property
    def listening_components(self) -> list[str]:
        """Names of the components that listen."""
        return list(self._listener_map)

    def add_listener(self, listener: BiLMModel, component_name: str) -> None:
        """Feed a listener."""
        listeners = self._listener_map.setdefault(component_name, [])
        if not any(known is listener for known in listeners):
            listeners.append(listener)
        listener.attrs["upstream"].bind(self.source, self._before)

    def remove_listener(self, listener: BiLMModel, component_name: str) -> bool:
        """Stop feeding a listener. Returns whether it was fed."""
        listeners = self._listener_map.get(component_name, [])
        kept = [known for known in listeners if known is not listener]
        if len(kept) == len(listeners):
            return False
        listener.attrs["upstream"].unbind(self.source)
        self._listener_map[component_name] = kept
        if not kept:
            del self._listener_map[component_name]
        return True

    def check_listeners(self, nlp: Language | None) -> None:
        """Raise SettingsError where a listener does not fit the biLM, or its component can't listen."""
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
        """Feed the listeners of a component that ask for this pipe."""
        if isinstance(component, Listening):
            component._found_by.append(self.name)
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for listener in listeners_in(model):
                if listener.attrs["upstream"].accepts(self.name):
                    self.add_listener(listener, component.name)
