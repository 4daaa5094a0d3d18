"""The listener: a Thinc layer inside a component's model that returns the layers which an elmo pipe has computed.

spaCy shows each component to the pipe, which binds the listeners in it: `Link.bind`. From then on `forward` reads the
layers that the pipe, its `Upstream`, holds beside a doc or has stored on it (doc_layers.py). In training the listener
remembers the biLM, or hands the gradient to the open step of one that is tuned (step.py). The first prediction after a
linking or loading notices another biLM. `nlp.replace_listeners` puts a copy of the biLM in the listener's place:
`Replacement`.
"""

import copy
import warnings
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..errors import ChangedBiLMWarning, ElmoError, NotEmbeddedError, SettingsError, check_whole
from .doc_layers import held_or_stored, is_not_stored, release
from .shim import BiLMShim, bilm_shims
from .step import Step
from .types import BiLMModel

NAME = "elmo_listener"


def build_listener(width: int | None = None, upstream: str = "*") -> BiLMModel:
    """Build spacy-elmo.Listener.v1: docs -> the layers that an earlier elmo pipe has computed for them.

    Output: for each doc an array of *Shape:* (layers, tokens, width).

    width: width of the biLM's layers; null: that of the pipe's biLM, from initialisation on.
    upstream: name of the elmo pipe; "*": the only elmo pipe of the pipeline.

    Backprop hands the gradient to the elmo pipe, if its biLM is not frozen. A doc without layers raises
    NotEmbeddedError, which names the pipe and the attribute. The docs with which the model is initialised give zeros:
    no pipe has seen them yet.
    """
    if width is not None:
        check_whole(width=width)
    if not isinstance(upstream, str) or not upstream:
        raise SettingsError(
            f'upstream is {upstream!r} in spacy-elmo.Listener.v1. Expected the name of an elmo pipe, or "*".'
        )
    # bilm: fingerprint of the biLM with which the listener was trained; "": none, or one that is still tuned
    attrs = {"link": Link(upstream), "bilm": ""}
    return Model(NAME, forward, init=init, dims={"nO": width}, attrs=attrs)


def init(model: BiLMModel, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Remember the sample docs, for which the listener returns zeros, and take the pipe's width. Y is ignored."""
    link = link_of(model)
    link.samples.update(X or [])
    if model.has_dim("nO") is None:
        upstream = link.only_upstream()
        if upstream is None:
            raise _no_pipe(link)
        if (width := upstream.width) is None:
            raise SettingsError(
                f"width is null in spacy-elmo.Listener.v1, but the model of the pipe {upstream.name!r} does not tell "
                "its width. Set width to that of its layers."
            )
        model.set_dim("nO", width)


def forward(
    model: BiLMModel, X: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    """Return the layers of each doc, *Shape:* (layers, tokens, width). Backprop returns no gradients of docs.

    If the biLM is tuned and is_train is true, backprop adds the gradient to the open step.
    """
    link, width, docs = link_of(model), model.maybe_get_dim("nO"), list(X)
    upstream, step = link.only_upstream(), None
    if is_train:
        link.samples.clear()
    layers: list[Any] = [_read(link, upstream, doc, is_train) for doc in docs]
    if upstream is not None:
        _check_width(width, upstream, layers)
        if is_train:
            # the weights of one that is tuned still change: the pipe stores their fingerprint when it is saved
            model.attrs["bilm"] = upstream.fingerprint() if upstream.step is None else ""
            if upstream.step is not None and upstream.step.expect_gradient(link.id, docs, upstream.attr):
                step = upstream.step
        else:
            _warn_of_another_bilm(model, upstream)
            for doc in docs:  # not in training, in which a component may predict after its update
                release(doc, upstream.attr, link.id)

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if step is not None:
            step.add_gradients(docs, dY)
        return []

    if any(found is None for found in layers):
        n_layers = upstream.layers or 0 if upstream else 0
        n_layers = max((len(found) for found in layers if found is not None), default=n_layers)
        layers = [
            np.zeros((n_layers, len(doc), width or 0), "f") if found is None else found
            for doc, found in zip(docs, layers)
        ]
    return [model.ops.asarray3f(y) for y in layers], backprop


def _read(link: "Link", upstream: "Upstream | None", doc: Doc, is_train: bool) -> Floats3d | None:
    """Return the doc's layers; None for a sample doc that has none. Raises NotEmbeddedError for any other."""
    layers = None if upstream is None else held_or_stored(doc, upstream.attr)
    if layers is not None:
        return layers
    if doc in link.samples:
        return None
    if upstream is None:
        raise _no_pipe(link)
    if is_not_stored(doc, upstream.attr):
        raise NotEmbeddedError(
            f'the pipe {upstream.name!r} has store = "none", so it holds the layers of a doc until each component '
            "that listens has predicted on it once. A copy of the doc has none, and a network can read the same "
            f'listener in one place only. Run {upstream.name!r} on this doc again, or set its store to "layers".'
        )
    if is_train:
        raise NotEmbeddedError(
            f"a component that is trained listens to the pipe {upstream.name!r}, but a doc has nothing in "
            f"doc._.{upstream.attr}_layers: the pipe did not run in this update. If it is in frozen_components, add it "
            "to annotating_components too, or remove it from frozen_components (frozen = true in its own config is "
            "enough). If it is disabled, enable it. If this is spacy debug model or spacy pretrain, which run a "
            'component alone, add --nlp.after_pipeline_creation \'{"@callbacks": "spacy-elmo.ReplaceListeners.v1"}\'.'
        )
    raise NotEmbeddedError(
        f"a component listens to the pipe {upstream.name!r}, but a doc has nothing in doc._.{upstream.attr}_layers: "
        "the pipe is disabled, removed or comes later, or the doc is a copy without them (as_doc, or in an "
        f"entity_linker). Run {upstream.name!r} on it first."
    )


def _no_pipe(link: "Link") -> NotEmbeddedError:
    name = "" if link.name == "*" else f" named {link.name!r}"
    return NotEmbeddedError(
        f"a component listens to an elmo pipe{name}, but there is none before it: the pipeline has no such "
        'pipe, or has it later, or under another name. Put it first, nlp.add_pipe("elmo", first=True), or '
        f"set upstream, which is {link.name!r}, in the component's spacy-elmo.Listener.v1 to its name."
    )


def _check_width(width: int | None, upstream: "Upstream", layers: Iterable[Floats3d | None]) -> None:
    for found in layers:
        if found is not None and found.shape[2] != (width or found.shape[2]):
            raise SettingsError(
                f"width is {width} in a component's spacy-elmo.Listener.v1, but the biLM of the pipe "
                f"{upstream.name!r} gives {found.shape[2]}. Use the biLM that the component was trained with; before "
                "training set width to null."
            )


def _warn_of_another_bilm(model: BiLMModel, upstream: "Upstream") -> None:
    """Issue a ChangedBiLMWarning if the listener was trained with another biLM, once for each linking or loading."""
    link = link_of(model)
    if link in upstream.compared:
        return
    upstream.compared.add(link)
    if model.attrs["bilm"] and upstream.step is None and upstream.fingerprint() not in ("", model.attrs["bilm"]):
        warnings.warn(
            f"the biLM of the pipe {upstream.name!r} is not the one with which this component was trained, so its "
            "predictions may be useless. Use that biLM, or train the component again. This warning is given once.",
            ChangedBiLMWarning,
            stacklevel=2,
        )


def link_of(model: BiLMModel) -> "Link":
    """Return the link of a listener."""
    link = model.attrs["link"]
    assert isinstance(link, Link)
    return link


def listeners_in(model: Model[Any, Any]) -> list[BiLMModel]:
    """Return all listeners of a model, at any depth."""
    return [node for node in model.walk() if node.name == NAME]


class Link:
    """What a listener knows of its elmo pipe: the name that it asks for, and the pipe that feeds it.

    name: name of the pipe that is asked for; "*": the only elmo pipe.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.id: Hashable = object()  # identifies the listener: an opaque token that holds no references
        self.upstream: Upstream | None = None  # the pipe that feeds the listener, also if its "*" is ambiguous
        self.samples: WeakSet[Doc] = WeakSet()  # the docs of an initialisation that is not over

    def accepts(self, pipe: str) -> bool:
        """Whether the listener asks for the elmo pipe of this name."""
        return self.name in ("*", pipe)

    def bind(self, upstream: "Upstream") -> None:
        """Let a pipe feed the listener, in place of any other."""
        if self.upstream is not None:
            self.unbind(self.upstream)
        self.upstream = upstream
        upstream.links.add(self)
        # spaCy links a pipeline again when all its components are initialised
        self.samples.clear()

    def unbind(self, upstream: "Upstream") -> None:
        """Stop a pipe from feeding the listener, if it does."""
        if self.upstream is upstream:
            self.upstream = None
            upstream.links.discard(self)

    def only_upstream(self) -> "Upstream | None":
        """Return `upstream`. Raises SettingsError if the listener asks for "*" and there are several elmo pipes."""
        if self.upstream is not None and self.name == "*" and self.upstream.earlier:
            names = ", ".join(map(repr, (*self.upstream.earlier, self.upstream.name)))
            raise SettingsError(
                f'upstream is "*", but there are several elmo pipes before this component: {names}. Set '
                "upstream in its spacy-elmo.Listener.v1 to one of these names."
            )
        return self.upstream

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "samples"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # the copy of a component alone gets an Upstream of its own, which reads docs but is no pipe
        self.__dict__.update(state, samples=WeakSet())
        if self.upstream is not None:
            self.upstream.links.add(self)


class Upstream:
    """An elmo pipe as its listeners see it. The pipe sets the attributes."""

    def __init__(self, name: str, attr: str, model: BiLMModel) -> None:
        self.name, self.attr = name, attr
        self.model: BiLMModel | None = model  # None in a copy that was made without the pipe
        self.tuned = False  # whether the pipe trains the biLM
        self.earlier: list[str] = []  # names of the elmo pipes before this one, which make "*" ambiguous
        # of the listeners that the pipe feeds, also in disabled components; of those that know whose layers they get
        self.links: WeakSet[Link] = WeakSet()
        self.compared: WeakSet[Link] = WeakSet()
        self.step: Step | None = None  # the training step of the last batch, if the biLM is tuned

    @property
    def shim(self) -> BiLMShim | None:
        """The biLM; None if the model is of another kind."""
        return next(iter(bilm_shims(self.model)), None) if self.model is not None else None

    @property
    def width(self) -> int | None:
        """Width of the layers; None if a model of another kind does not tell."""
        if self.shim is not None:
            return self.shim.options.width
        return None if self.model is None else self.model.maybe_get_dim("nO")

    @property
    def layers(self) -> int | None:
        """Number of layers, layer 0 included; None if the model is not a BiLM."""
        return None if self.shim is None else self.shim.options.layers

    def fingerprint(self) -> str:
        """Return a digest of the biLM's weights; "" if the model is not a BiLM."""
        return "" if self.shim is None else self.shim.compute_fingerprint()

    def store_fingerprint(self, listeners: Iterable[BiLMModel], replaced: bool = False) -> None:
        """Store the fingerprint of tuned weights in the listeners that were trained on them, before they are saved.

        replaced: whether these weights are gone, so that no biLM is theirs.
        """
        for listener in listeners:
            if self.tuned and not listener.attrs["bilm"]:  # else its component is frozen: it knows earlier weights
                listener.attrs["bilm"] = "replaced" if replaced else self.fingerprint()

    def __getstate__(self) -> dict[str, Any]:
        # the model and the step must not be copied with each listener
        state = self.__dict__ | {"step": None, "model": None}
        return {name: value for name, value in state.items() if name not in ("links", "compared")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, links=WeakSet(), compared=WeakSet())


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
