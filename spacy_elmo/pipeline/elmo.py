"""The component `elmo`: it runs the biLM, stores the layers on docs, and feeds the components that listen.

spaCy links a pipeline whenever it changes: it assigns {} to the `listener_map` of each elmo pipe, and then shows the
pipe each later component that is not disabled, `find_listeners`. In training it calls `update` of all pipes in their
order. A frozen biLM predicts, and the listeners read its layers from the docs. For one that is tuned a `Step` is opened
(models/step.py), to which the listeners hand their gradients.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

import srsly
from spacy.language import Language
from spacy.pipeline import EntityLinker, TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats3d

from ..errors import (
    MIX_FINITE,
    ElmoError,
    NotEmbeddedError,
    OtherLanguageWarning,
    SettingsError,
    UnusedLayersWarning,
    check_whole,
    shown,
)
from ..inference import LayerCache
from ..inference.packing import trim
from ..models.bilm import load_model
from ..models.doc_layers import annotate, hold, mix_parameters
from ..models.listener import Replacement, Upstream, link_of, listeners_in
from ..models.shim import PipeSettings, bilm_shims, refusing_damage
from ..models.step import Step
from ..models.types import BiLMModel, is_number
from ..modules.loading import card_language
from .attributes import register, set_vector_hooks

Store = Literal["layers", "layers_float16", "mix", "none"]
TRIM_EVERY = 50  # updates. glibc may hold a GB of freed memory after some hundreds; returning it takes some 30 ms


class ElmoPipe(TrainablePipe):
    """Runs the biLM over docs and stores its layers on them. The arguments are those of `make_elmo`."""

    def __init__(
        self,
        vocab: Vocab,
        model: BiLMModel,
        name: str = "elmo",
        *,
        attr: str = "elmo",
        frozen: bool = True,
        set_vectors: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        max_batch_tokens: int = 8192,
        store: Store = "layers",
        learn_rate_factor: float = 0.1,
        cache_mb: int = 2048,
        cache_file: str | None = None,
    ) -> None:
        if not frozen and "settings" in model.attrs and model.attrs["settings"].stateful:
            raise SettingsError("model.stateful is true and frozen is false. Set stateful to false, or frozen to true.")
        check_whole(max_batch_tokens=max_batch_tokens)
        check_whole(0, cache_mb=cache_mb)
        if store not in get_args(Store):
            raise SettingsError(f"store is {store!r}. Expected one of {', '.join(get_args(Store))}.")
        if store == "none" and set_vectors:
            raise SettingsError(
                'set_vectors is true, but store is "none", so .vector would have nothing to read. Set store to '
                '"layers", "layers_float16" or "mix", or set_vectors to false.'
            )
        if scalar_mix_parameters is not None and not all(map(is_number, scalar_mix_parameters)):
            raise SettingsError(MIX_FINITE.format(got=shown(scalar_mix_parameters)))
        if not (is_number(learn_rate_factor) and learn_rate_factor > 0):
            raise SettingsError(f"learn_rate_factor is {shown(learn_rate_factor)}. Expected a finite number above 0.")
        register(attr)
        self.vocab, self.model, self.name = vocab, model, name
        self.cfg: dict[str, Any] = {}
        self.attr, self.set_vectors, self.store, self.frozen = attr, set_vectors, store, frozen
        self.scalar_mix_parameters = scalar_mix_parameters
        self.max_batch_tokens, self.learn_rate_factor = max_batch_tokens, learn_rate_factor
        self.cache = LayerCache(cache_mb * 2**20, cache_file)
        self.upstream = Upstream(name, attr, model)
        self._n_updates = 0
        self._listener_map: dict[str, list[BiLMModel]] = {}
        self._earlier: list[str] = []  # the elmo pipes before this one that have shown themselves since a linking
        self.listener_map = {}
        self._connect()

    def _connect(self) -> None:
        """Pass the settings to the model, and the model to the listeners."""
        self.upstream.model, self.upstream.tuned = self.model, not self.frozen
        for shim in bilm_shims(self.model):
            shim.truncated.where = f"the pipe's n_truncated: nlp.get_pipe({self.name!r}).n_truncated"
            shim.pipe_settings = PipeSettings(
                tuned=not self.frozen,
                learn_rate_factor=self.learn_rate_factor,
                max_batch_tokens=self.max_batch_tokens,
                cache=self.cache if self.frozen else None,
            )

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        register(self.attr)  # a new process has no extensions yet
        self._connect()

    # Text to vectors

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Process a stream of docs in batches of at most batch_size docs and max_batch_tokens tokens, in their order.

        If a batch fails, its docs are run one by one, and the error handler is called for those that fail.
        """
        batch: list[Doc] = []
        tokens = 0
        for doc in stream:
            if batch and (len(batch) == batch_size or tokens + len(doc) > self.max_batch_tokens):
                yield from self._annotated(batch)
                batch, tokens = [], 0
            batch.append(doc)
            tokens += len(doc)
        if batch:
            yield from self._annotated(batch)

    def _annotated(self, docs: list[Doc]) -> Iterator[Doc]:
        try:
            self.set_annotations(docs, self.predict(docs))
        except Exception as error:  # the error handler decides about all errors
            if len(docs) == 1:
                self.get_error_handler()(self.name, self, docs, error)
                return
        else:
            yield from docs
            return
        for doc in docs:
            yield from self._annotated([doc])

    def predict(self, docs: Iterable[Doc]) -> list[Floats3d]:
        """Return the layers of each doc, *Shape:* (layers, tokens, width), without storing them."""
        return self.model.predict(list(docs))

    def set_annotations(self, docs: Iterable[Doc], scores: list[Floats3d]) -> None:
        """Store what `predict` returned on the docs, or its mix. Hold the layers for the listeners, if they need that.

        Listeners read what is held with store = "none" and in a training step. With store = "layers" the docs keep
        these arrays themselves.
        Issues an UnusedLayersWarning if store is "none" and there are no listeners.
        """
        docs, step = list(docs), self.upstream.step
        held = self.store == "none" or (step is not None and step.layers is scores)
        self._relink()
        for doc, layers in zip(docs, scores, strict=True):
            parameters = self.scalar_mix_parameters
            if parameters is not None and len(parameters) != len(layers):
                raise SettingsError(
                    f"scalar_mix_parameters has {len(parameters)} weights. Expected {len(layers)}: one for each layer "
                    "of the biLM."
                )
            weights = mix_parameters([0.0] * len(layers) if parameters is None else parameters)
            annotate(doc, self.attr, layers, weights, self.store)
            if self.set_vectors:
                set_vector_hooks(doc, self.attr)
            if held:
                hold(doc, self.attr, layers, [link.id for link in self.upstream.links])
        if docs and self.store == "none" and not self.upstream.links:
            warnings.warn(
                f'the pipe {self.name!r} has store = "none", but no component listens to it: what it computes '
                'is dropped. Set store to "layers", or remove the pipe.',
                UnusedLayersWarning,
                stacklevel=2,
            )

    # Links with listeners: what spaCy calls is in spacy.ty.ListenedToComponent

    @property
    def listener_map(self) -> dict[str, list[BiLMModel]]:
        """The listeners by component name. spaCy assigns {} before it links a pipeline again."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listeners: dict[str, list[BiLMModel]]) -> None:
        # The listeners of disabled components are fed nevertheless, because spaCy does not link the pipeline again when
        # it enables them. Those that ask for another name than the pipe now has are fed no more.
        for link in list(self.upstream.links):
            if not link.accepts(self.name):
                link.unbind(self.upstream)
        self._listener_map = listeners
        self.upstream.earlier, self._earlier = self._earlier, []
        self.upstream.compared.clear()
        self.upstream.name = self.name
        replacement = Replacement(self.name)
        self.model.attrs["replace_listener_cfg"] = replacement.config
        self.model.attrs["replace_listener"] = replacement.model

    def find_listeners(self, component: Any) -> None:
        """Feed the listeners of a component that ask for this pipe. An elmo pipe is told that this one is before it."""
        if component is self:
            raise SettingsError(
                f"{self.name!r} is twice in the pipeline: add_pipe(..., source=...) adds the same pipe, not a "
                "copy. Remove one of them, or source the second from a pipeline that you load again."
            )
        if isinstance(component, ElmoPipe):
            _refuse_same_attr(self.attr, self.name, component.attr)
            component._earlier.append(self.name)
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for listener in listeners_in(model):
                if link_of(listener).accepts(self.name):
                    self.add_listener(listener, component.name)

    def add_listener(self, listener: BiLMModel, component_name: str) -> None:
        """Feed a listener of the component of this name."""
        listeners = self._listener_map.setdefault(component_name, [])
        if not any(known is listener for known in listeners):
            listeners.append(listener)
        self._bind(listener)

    def _bind(self, listener: BiLMModel) -> None:
        link = link_of(listener)
        if link.upstream is not None and link.upstream is not self.upstream:
            link.upstream.store_fingerprint([listener])  # the listener was trained with them
        link.bind(self.upstream)

    def _relink(self) -> None:
        """Bind listeners again that are bound to the pipe of another pipeline, which shares their component."""
        for listener in self.listeners:
            if link_of(listener).upstream is not self.upstream:
                self._bind(listener)

    def remove_listener(self, listener: BiLMModel, component_name: str) -> bool:
        """Stop feeding a listener of the component of this name. Return whether it was fed."""
        listeners = self._listener_map.get(component_name, [])
        others = [known for known in listeners if known is not listener]
        if len(others) == len(listeners):
            return False
        link_of(listener).unbind(self.upstream)
        self._listener_map[component_name] = others
        if not others:
            del self._listener_map[component_name]
        return True

    @property
    def listeners(self) -> list[BiLMModel]:
        """The listeners of all components."""
        return [listener for listeners in self._listener_map.values() for listener in listeners]

    @property
    def listening_components(self) -> list[str]:
        return list(self._listener_map)

    # Training

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Read the biLM's files, so that an ElmoError of these is raised before training. No examples are read."""
        self.model.initialize()
        for shim in bilm_shims(self.model):
            shim.load().bilm.requires_grad_(True)  # gradual unfreezing in an earlier training may have left out parts
        for name, component in nlp.components if nlp is not None else []:
            if name in self._listener_map and isinstance(component, EntityLinker):
                raise SettingsError(
                    f"the component {name!r} is an entity_linker, which works on copies of the docs without layers. "
                    "Give it spacy-elmo.BiLM.v1 as source, in place of spacy-elmo.Listener.v1."
                )
        if self.frozen:
            self.cache.check_file()

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Store the layers on the examples' predicted docs, for the components after this one.

        Of a frozen biLM, the first update opens the cache, so that each sentence is run only once, until `cache.close`
        is called. Another one learns from its listeners' gradients (see models/step.py), and spaCy passes the optimizer
        to `finish_update`. The loss is 0.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        self._n_updates += 1
        if self._n_updates % TRIM_EVERY == 0:
            trim()
        docs = [example.predicted for example in examples]
        if self.store == "mix" and self.listeners:
            raise NotEmbeddedError(
                f"this doc has the mixed vectors under {self.attr!r} but not the layers, because the pipe has "
                'store = "mix". Set store to "layers".'
            )
        if self.frozen:
            self.cache.open()
        self._relink()
        if self.frozen or not self.upstream.links:
            self.set_annotations(docs, self.predict(docs))
            return losses
        if self.upstream.step is not None:
            self.upstream.step.end()
        # awaited are those of the last component, and those whose place in the pipeline is not known
        earlier = {link_of(listener) for listeners in list(self._listener_map.values())[:-1] for listener in listeners}
        self.upstream.step = Step(self.model, docs, [link.id for link in set(self.upstream.links) - earlier])
        self.set_annotations(docs, self.upstream.step.layers)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Apply the gradients of the listeners with this optimizer, unless the biLM is frozen."""
        if self.frozen:
            return
        if self.upstream.step is None:
            self.model.finish_update(sgd)
        else:
            self.upstream.step.finish(sgd)

    # Saving and loading

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save options and weights. Raises ElmoError before anything is written, if the biLM's files are missing."""
        self.model.initialize()
        self.upstream.store_fingerprint(self.listeners)
        super().to_disk(path, exclude=exclude)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return options and weights as bytes, the same before and after use. Raises ElmoError as `to_disk` does."""
        self.model.initialize()
        self.upstream.store_fingerprint(self.listeners)
        saved: bytes = super().to_bytes(exclude=exclude)
        return saved

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load a biLM of any width that `to_bytes` has saved. A damaged one raises WeightsError and changes nothing."""
        exclude = list(exclude)
        with refusing_damage():
            parts = srsly.msgpack_loads(bytes_data)
            if not isinstance(parts, dict) or not set(parts) <= {"cfg", "vocab", "model"}:
                raise ValueError("it is no pipe")
            self._load(parts, lambda vocab: vocab.from_bytes(parts["vocab"], exclude=exclude), exclude)
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load a biLM of any width that `to_disk` has saved. A damaged one raises WeightsError and changes nothing."""
        folder, exclude = Path(path), list(exclude)
        with refusing_damage():
            parts: dict[str, Any] = {"vocab": folder / "vocab"}
            if "model" not in exclude:
                file = folder / "model"
                if file.exists() and not file.is_file():  # opening a pipe could wait for ever
                    raise ValueError(f"{file} is a folder or a special file")
                parts["model"] = file.read_bytes()
            self._load(parts, lambda vocab: vocab.from_disk(parts["vocab"], exclude=exclude), exclude)
        return self

    def _load(self, parts: dict[str, Any], load_vocab: Callable[[Vocab], object], exclude: Iterable[str]) -> None:
        """Load the parts of a saved pipe, all or none. Its cfg is empty: the settings are those of the config."""
        names = parts.keys() - set(exclude)
        self.upstream.compared.clear()
        if "vocab" in names:
            load_vocab(Vocab())  # it raises here if the data are damaged, before anything of the pipe is changed
        if "model" in names:
            load_model(self.model, parts["model"])
            if self.upstream.step is not None:  # it was of the weights before, on which the listeners were trained
                self.upstream.step.drop()
                self.upstream.step = None
                self.upstream.store_fingerprint(self.listeners, replaced=True)
        if "vocab" in names:
            load_vocab(self.vocab)

    # Read-only properties

    @property
    def width(self) -> int | None:
        """Width of the vectors. None if a model of another kind does not tell. Raises ElmoError if a file is wrong."""
        return self.upstream.width

    @property
    def layers(self) -> int | None:
        """Number of layers, layer 0 included. None if the model is not a BiLM. Raises ElmoError if a file is wrong."""
        return self.upstream.layers

    @property
    def n_truncated(self) -> int:
        """Number of tokens in this process so far that had more bytes than the biLM reads (TruncatedWordsWarning)."""
        return sum(shim.truncated.n for shim in bilm_shims(self.model))

    @property
    def is_trainable(self) -> bool:
        """Whether training changes the biLM. If not, `spacy train` shows no loss of this pipe."""
        return not self.frozen

    def __repr__(self) -> str:
        try:
            sizes = f"layers={self.layers}, width={self.width}"
        except ElmoError:  # the files are missing or damaged
            sizes = "layers and width unknown"
        listen = f", listening_components={names}" if (names := self.listening_components) else ""
        return f"<{type(self).__name__} {self.name!r}: attr={self.attr!r}, {sizes}, frozen={self.frozen}{listen}>"


def _refuse_same_attr(attr: str, pipe: str, other: str) -> None:
    if attr == other:
        raise SettingsError(
            f"attr is {attr!r}, but the pipe {pipe!r} has the same. Set attr of one of them to another name: "
            "a doc has one set of layers under each name."
        )


# spaCy fills in what these have by default, but first prints this one beside a setting that stands in the wrong place
DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.BiLM.v1",
    "bilm": None,
    "options_file": None,
    "weight_file": None,
    "get_spans": {"@span_getters": "spacy-elmo.sentences.v1"},
}


@Language.factory(
    "elmo",
    assigns=[f"{part}._.elmo{end}" for part in ("doc", "span", "token") for end in ("", "_layers")],
    default_config={"model": DEFAULT_MODEL, **(ElmoPipe.__init__.__kwdefaults__ or {})},
)
def make_elmo(
    nlp: Language,
    name: str,
    model: BiLMModel | str,  # a string is what many type, and confection's error would not show the right line
    attr: str,
    frozen: bool,
    set_vectors: bool,
    scalar_mix_parameters: list[float] | None,
    max_batch_tokens: int,
    store: Store,
    learn_rate_factor: float,
    cache_mb: int,
    cache_file: str | None,
) -> ElmoPipe:
    """Create the component `elmo`.

    model: spacy-elmo.BiLM.v1, or any Model[List[Doc], List[Floats3d]] that returns *Shape:* (layers, tokens, width)
        for each doc.
    attr: name of the extension attributes. With different names there can be two embedders in one pipeline.
    frozen: whether the biLM is not trained; false: it learns from all components that have listeners.
    set_vectors: whether `.vector`, `.has_vector` and `.similarity` of tokens, spans and docs come from ELMo.
    scalar_mix_parameters: weights of the layers before the softmax (AllenNLP's name); null: the mean of the layers.
    max_batch_tokens: number of tokens that run at once, at most.
    store: what is stored on each doc: "layers" (in float32), "layers_float16", "mix" (only the vectors), or "none": the
        layers are held until all listeners have read them.
    learn_rate_factor: factor of the learning rate for a biLM that is not frozen.
    cache_mb: size in MiB of the memory in which layers are cached while components are trained on a frozen biLM.
    cache_file: path of a file in which all these layers are cached, for later epochs and runs; null: none.

    Issues an OtherLanguageWarning if the biLM's model card names another language than the pipeline's. Raises
    SettingsError if a setting cannot be used, or if another elmo pipe has the same attr.
    """
    if isinstance(model, str):
        raise SettingsError(
            f"model is {shown(model)}. Expected a block with the settings of the model, in which bilm names the biLM: "
            f'nlp.add_pipe("elmo", config={{"model": {{"bilm": {json.dumps(model)}}}}}), or in a config file '
            f"bilm = {json.dumps(model)} in the section [components.{name}.model]."
        )
    for other, pipe in nlp.components:
        if isinstance(pipe, ElmoPipe):
            _refuse_same_attr(attr, other, pipe.attr)
    language = _language_of(model)
    if language not in (None, "xx", nlp.lang) and nlp.lang not in ("xx", None):
        warning = (
            f"the biLM of the pipe {name!r} was trained on the language {language!r}, but the pipeline's is "
            f"{nlp.lang!r}, so its vectors may be useless. Set model.bilm to the folder of a biLM of {nlp.lang!r}."
        )
        warnings.warn(warning, OtherLanguageWarning, stacklevel=2)
    return ElmoPipe(
        nlp.vocab,
        model,
        name,
        attr=attr,
        frozen=frozen,
        set_vectors=set_vectors,
        scalar_mix_parameters=scalar_mix_parameters,
        max_batch_tokens=max_batch_tokens,
        store=store,
        learn_rate_factor=learn_rate_factor,
        cache_mb=cache_mb,
        cache_file=cache_file,
    )


def elmo_pipes(pipeline: Iterable[tuple[str, Any]]) -> dict[str, ElmoPipe]:
    """Return the elmo pipes of nlp.pipeline or nlp.components by name. Raises SettingsError if there is none."""
    components = dict(pipeline)
    pipes = {name: pipe for name, pipe in components.items() if isinstance(pipe, ElmoPipe)}
    if not pipes:
        raise SettingsError(
            f"no elmo pipe; the pipeline has {', '.join(components) or 'no pipes'}. Expected one: give another "
            'pipeline, or add the pipe with nlp.add_pipe("elmo").'
        )
    return pipes


def chosen_pipe(pipes: dict[str, ElmoPipe], name: str | None, setting: str) -> str:
    """Return the name of the pipe that the setting names; None: the only one. Raises SettingsError."""
    if name is not None and name not in pipes:
        raise SettingsError(f"{setting} is {shown(name)}. Expected the name of an elmo pipe: {', '.join(pipes)}.")
    if name is None and len(pipes) > 1:
        raise SettingsError(f"several elmo pipes, {', '.join(pipes)}. Expected the name of one of them as {setting}.")
    return next(iter(pipes)) if name is None else name


def _language_of(model: BiLMModel) -> str | None:
    """Return spaCy's code of a biLM's language, from the README.md beside its files; None if that tells none."""
    for shim in bilm_shims(model):
        with suppress(ValueError):  # of a biLM that was not downloaded or installed
            return card_language(shim.options_file, shim.bilm)
    return None
