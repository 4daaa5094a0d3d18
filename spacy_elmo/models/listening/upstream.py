"""What a listener and its elmo pipe know about each other."""

import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

from spacy.tokens import Doc
from thinc.types import Floats3d

from ...errors import Errors, SettingsError
from .step import Step


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
            raise SettingsError(Errors.LISTENER_SEVERAL.format(got=names))
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
