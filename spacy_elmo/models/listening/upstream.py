"""What a listener and its elmo pipe know of each other."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from spacy.tokens import Doc
from thinc.types import Floats3d

from ...errors import Errors, SettingsError
from .step import Step


class Source:
    """An elmo pipe as its listeners see it.

    name: the pipe's; attr: where it keeps the layers.
    has_values: whether a doc has any; read: its layers, (layers, tokens, width), or raises NotEmbeddedError.
    layers: how many; None where that is not known yet.
    fingerprint: gives the name of the biLM's weights; "" where it can't be named. None after unpickling.
    step: the batch that is being trained on, where the biLM is tuned; changes: whether it is, in this process.
    """

    def __init__(
        self,
        name: str,
        attr: str,
        has_values: Callable[[Doc], bool],
        read: Callable[[Doc], Floats3d],
        fingerprint: Callable[[], str] | None = None,
    ) -> None:
        self.name, self.attr, self.has_values, self.read, self.fingerprint = name, attr, has_values, read, fingerprint
        self.layers: int | None = None
        self.step: Step | None = None
        self.changes = False

    def __getstate__(self) -> dict[str, Any]:
        # a listener that is pickled must not take the pipe with it
        return self.__dict__ | {"step": None, "fingerprint": None}


class Upstream:
    """The pipe that a listener asks for, "*" for any, and the one that answered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._source: Source | None = None
        self._rivals: tuple[str, ...] = ()
        self._samples: weakref.WeakValueDictionary[int, Doc] = weakref.WeakValueDictionary()

    def accepts(self, pipe: str) -> bool:
        """Whether a pipe of that name is meant."""
        return self.name in ("*", pipe)

    def bind(self, source: Source, rivals: Iterable[str]) -> None:
        """A pipe answers, in the place of those that did before. rivals: names of the elmo pipes before it."""
        self._source, self._rivals = source, tuple(rivals)
        # a pipeline is linked anew when all is initialised
        self._samples.clear()

    def unbind(self, source: Source) -> None:
        """A pipe does not answer any more."""
        if self._source is source:
            self._source = None

    @property
    def source(self) -> Source | None:
        """The pipe; None where there is none. Raises SettingsError where several answer to "*"."""
        if self._source is not None and self.name == "*" and self._rivals:
            names = ", ".join(map(repr, (*self._rivals, self._source.name)))
            raise SettingsError(Errors.LISTENER_SEVERAL.format(got=names))
        return self._source

    def show_samples(self, docs: Iterable[Doc]) -> None:
        """The docs that a model is initialised with, before any pipe has seen them."""
        self._samples.update({id(doc): doc for doc in docs})

    def is_sample(self, doc: Doc) -> bool:
        """Whether it is one of them."""
        return self._samples.get(id(doc)) is doc

    def forget_samples(self) -> None:
        """Initialisation is over."""
        self._samples.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Upstream":
        other = Upstream(self.name)
        # with the pipe's copy where a whole pipeline is copied; a component's alone reads what the pipe puts on docs
        other._source, other._rivals = memo.get(id(self._source), self._source), self._rivals
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_samples"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _samples=weakref.WeakValueDictionary())
