"""The component `elmo`."""

import gc
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, Protocol, get_args
from weakref import WeakValueDictionary

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Optimizer
from thinc.types import Floats3d

from ..errors import MIX_FINITE, ElmoError, NotEmbeddedError, OtherLanguageWarning, SettingsError, shown
from ..models.bilm import LayerCache, serve_component
from ..models.saved import load_bytes, load_folder
from ..models.shim import bilm_shims
from ..models.types import BiLMModel, is_number, is_whole
from ..modules.loading import OPTIONS, card_language, find_bilm
from . import registries  # noqa: F401  # the default config names a span getter
from .attributes import annotate, mix_parameters
from .extensions import register, set_vector_hooks, warn_in_worker
from .listening import Listening, Tuning


def batches_of(stream: Iterable[Doc], batch_size: int, max_tokens: int) -> Iterator[list[Doc]]:
    """Yield batches of at most batch_size docs and max_tokens tokens. A longer doc is a batch alone.

    stream: the docs.
    batch_size: number of docs, at most.
    max_tokens: number of tokens, at most.
    """
    batch: list[Doc] = []
    tokens = 0
    for doc in stream:
        if batch and (len(batch) == batch_size or tokens + len(doc) > max_tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(doc)
        tokens += len(doc)
    if batch:
        yield batch


Store = Literal["layers", "layers_float16", "mix", "none"]


class HasModel(Protocol):
    """What an elmo pipe is to `refuse_shared_model`."""

    name: str
    model: BiLMModel


# The pipe of each model, by id(model). A copy of a model is another model. A pipe holds its model, so the id is not of
# another object as long as the pipe exists.
_PIPES: WeakValueDictionary[int, HasModel] = WeakValueDictionary()


def refuse_shared_model(pipe: HasModel) -> None:
    """Raise SettingsError if another elmo pipe has the same model: the model has the settings of one pipe.

    pipe: the pipe that is made.
    """

    def is_shared() -> bool:
        other = _PIPES.get(id(pipe.model))
        return other is not None and other is not pipe and other.model is pipe.model

    if is_shared():
        gc.collect()  # nobody may hold that pipe any more
    if is_shared():
        raise SettingsError(
            f"the elmo pipe {pipe.name!r} has the same model as the pipe {_PIPES[id(pipe.model)].name!r}, and a "
            "model has the settings of one pipe. Give it a model of its own, for example model.copy()."
        )
    _PIPES[id(pipe.model)] = pipe


def check_settings(
    model: BiLMModel,
    frozen: bool,
    max_batch_tokens: int,
    store: str,
    set_vectors: bool,
    scalar_mix_parameters: Sequence[float] | None,
) -> None:
    """Raise SettingsError if a setting of the factory `elmo` cannot be used.

    model: must not be stateful if it is tuned.
    frozen: whether the biLM is not tuned.
    max_batch_tokens: a whole number from 1 on.
    store: one of Store.
    set_vectors: must be false if nothing is stored.
    scalar_mix_parameters: finite numbers, or None.
    """
    if not frozen and "settings" in model.attrs and model.attrs["settings"].stateful:
        raise SettingsError("model.stateful is true and frozen is false. Set stateful to false, or frozen to true.")
    if not is_whole(max_batch_tokens):
        raise SettingsError(f"{'max_batch_tokens'} is {max_batch_tokens!r}. Expected a whole number.")
    if max_batch_tokens < 1:
        raise SettingsError(f"max_batch_tokens is {max_batch_tokens}. Expected 1 or more; 8192 is the default.")
    if store not in get_args(Store):
        raise SettingsError(f"store is {store!r}. Expected one of {', '.join(get_args(Store))}.")
    if store == "none" and set_vectors:
        raise SettingsError(
            'set_vectors is true, but store is "none", so .vector would have nothing to read. Set store to '
            '"layers", "layers_float16" or "mix", or set_vectors to false.'
        )
    if scalar_mix_parameters is not None and not all(map(is_number, scalar_mix_parameters)):
        raise SettingsError(MIX_FINITE.format(got=shown(scalar_mix_parameters)))


def check_training_settings(learn_rate_factor: float, cache_mb: int) -> None:
    """Raise SettingsError if a setting of the factory `elmo` for training cannot be used.

    learn_rate_factor: a finite number above 0.
    cache_mb: a whole number from 0 on.
    """
    if not (is_number(learn_rate_factor) and learn_rate_factor > 0):
        raise SettingsError(f"learn_rate_factor is {shown(learn_rate_factor)}. Expected a finite number above 0.")
    if not is_whole(cache_mb) or cache_mb < 0:
        raise SettingsError(
            f"cache_mb is {shown(cache_mb)}. Expected a whole number of MiB, 0 or more; 0 caches nothing in memory."
        )


def language_of(model: BiLMModel) -> str | None:
    """Return spaCy's code of a biLM's language, from the README.md in the folder of its options file.

    model: the biLM's layer.

    Returns None if there is no card, or it names no language that spaCy knows, or xx, which is no language.
    """
    shim = next(iter(bilm_shims(model)), None)
    if shim is None:
        return None
    try:
        code = card_language(shim.options_file if shim.bilm is None else str(find_bilm(shim.bilm) / OPTIONS))
    except ValueError:  # a biLM that was not downloaded or installed
        return None
    return None if code == "xx" else code


class Facts:
    """Mixin of the elmo pipe: sizes, counts and a short text. Nothing here reads weights."""

    name: str
    model: BiLMModel
    attr: str
    frozen: bool

    @property
    @abstractmethod
    def listening_components(self) -> list[str]:
        """Names of the components that have listeners."""

    @property
    def width(self) -> int | None:
        """Width of the vectors. None if a model of another kind does not tell. Raises ElmoError if a file is wrong."""
        return next((shim.options.width for shim in bilm_shims(self.model)), self.model.maybe_get_dim("nO"))

    @property
    def layers(self) -> int | None:
        """Number of layers, layer 0 included. None if the model is not a BiLM. Raises ElmoError if a file is wrong."""
        return next((shim.options.layers for shim in bilm_shims(self.model)), None)

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


class ElmoPipe(Listening, Facts, TrainablePipe):
    """Runs the biLM over docs and stores its layers on them. The arguments are those of factory.make_elmo."""

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
        cache_mb: int = 1024,
        cache_file: str | None = None,
    ) -> None:
        check_settings(model, frozen, max_batch_tokens, store, set_vectors, scalar_mix_parameters)
        check_training_settings(learn_rate_factor, cache_mb)
        register(attr)
        self.vocab, self.model, self.name = vocab, model, name
        self.cfg: dict[str, Any] = {}
        self.attr, self.set_vectors, self.store, self.frozen = attr, set_vectors, store, frozen
        self.scalar_mix_parameters = scalar_mix_parameters
        self.max_batch_tokens, self.learn_rate_factor = max_batch_tokens, learn_rate_factor
        self.cache = LayerCache(cache_mb * 2**20, cache_file)
        refuse_shared_model(self)
        self._listen_as(self.attr)
        self._connect()

    def _connect(self) -> None:
        """Pass the settings to the model, and let listeners ask for its fingerprint."""
        self.source.fingerprint = self._fingerprint
        self.tuning = Tuning(self.model, self.source)
        serve_component(
            self.model,
            self.name,
            max_batch_tokens=self.max_batch_tokens,
            tuned=not self.frozen,
            learn_rate_factor=self.learn_rate_factor,
            cache=self.cache if self.frozen else None,
        )

    def _fingerprint(self) -> str:
        """Return the digest of the model's weights; "" if the model is not a BiLM."""
        return next((shim.compute_fingerprint() for shim in bilm_shims(self.model)), "")

    def predict(self, docs: Iterable[Doc]) -> list[Floats3d]:
        """Return the layers of each doc, *Shape:* (layers, tokens, width). The docs are not changed."""
        return self.model.predict(list(docs))

    def set_annotations(self, docs: Iterable[Doc], scores: list[Floats3d]) -> None:
        """Store the layers, or their mix, on the docs; with store = "none", hold the layers for the listeners.

        docs: the docs.
        scores: what `predict` returned for them.

        Issues an UnusedLayersWarning if store is "none" and there are no listeners. Raises SettingsError if the number
        of docs differs, or scalar_mix_parameters has another number of layers.
        """
        docs = list(docs)
        if len(docs) != len(scores):
            raise SettingsError(
                f"the model returned {len(scores)} arrays for {len(docs)} docs. Expected (layers, tokens, width) "
                "for each doc."
            )
        for doc, layers in zip(docs, scores):
            annotate(doc, self.attr, layers, self._weights(layers.shape[0]), self.store)
            if self.set_vectors:
                set_vector_hooks(doc, self.attr)
        self.hand_over(docs, scores if self.store == "none" else None)

    def _weights(self, layers: int) -> Any:
        parameters = self.scalar_mix_parameters
        if parameters is None:
            parameters = [0.0] * layers
        if len(parameters) != layers:
            raise SettingsError(
                f"scalar_mix_parameters has {len(parameters)} weights. Expected {layers}: one for each layer of "
                "the biLM."
            )
        return mix_parameters(parameters)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Process a stream of docs in batches of at most max_batch_tokens tokens; a longer doc is a batch alone.

        If a batch fails, its docs are run one by one, and the error handler is called only for those that fail.

        stream: the docs.
        batch_size: number of docs in a batch, at most.

        Issues a LostVectorsWarning if `set_vectors` is on and this is a worker, as of nlp.pipe with n_process.
        """
        if self.set_vectors:
            warn_in_worker()
        for docs in batches_of(stream, batch_size, self.max_batch_tokens):
            yield from self._annotated(docs)

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

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Read the biLM's files, so that errors in them are raised before training.

        get_examples: not called, because nothing is learnt from the examples.
        nlp: the pipeline, whose listeners are checked.

        Raises ElmoError if the biLM's files cannot be used, SettingsError if a component's listener does not fit, and
        CacheError if cache_file cannot be used.
        """
        self.model.initialize()
        for shim in bilm_shims(self.model):
            shim.train_all()  # gradual unfreezing in an earlier training may have left out parts
        self.source.layers = next((shim.options.layers for shim in bilm_shims(self.model)), None)
        self.check_listeners(nlp)
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
        """Store the layers on the examples' docs, for the components after this one.

        A frozen biLM learns nothing. The first update opens the pipe's cache (cache_mb, cache_file), so that each
        sentence is run only once, in evaluations too, until `cache.close` is called. A biLM that is not frozen learns
        from its listeners' gradients (see pipeline/listening).

        examples: the batch. Only their predicted docs are used.
        drop, sgd: ignored. spaCy passes the optimizer to `finish_update`.
        losses: gets a loss of 0 under the pipe's name.

        Returns losses. Raises NotEmbeddedError if there are listeners, but `store` is "mix".
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        docs = [example.predicted for example in examples]
        if self.store == "mix" and self.listeners:
            raise NotEmbeddedError(
                f"this doc has the mixed vectors under {self.attr!r} but not the layers, because the pipe has "
                'store = "mix". Set store to "layers".'
            )
        if self.frozen:
            self.cache.open()
        if self.frozen or not self.upstreams:
            layers = self.predict(docs)
        else:
            self.relink()
            layers = self.tuning.begin(docs, [upstream.id for upstream in self.last_upstreams])
        self.set_annotations(docs, layers)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Apply the gradients of the listeners with this optimizer, unless the biLM is frozen."""
        if not self.frozen:
            self.tuning.finish(sgd)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save options and weights. Raises ElmoError before anything is written, if the biLM's files are missing."""
        self.model.initialize()
        self.name_weights()
        super().to_disk(path, exclude=exclude)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return options and weights as bytes, the same before and after use. Raises ElmoError as `to_disk` does."""
        self.model.initialize()
        self.name_weights()
        saved: bytes = super().to_bytes(exclude=exclude)
        return saved

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load a biLM of any width, which `to_bytes` has saved.

        Raises WeightsError if it is damaged. Then the pipe is as it was before.
        """
        self.cfg.update(load_bytes(self.vocab, self.model, bytes_data, exclude))
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load a biLM of any width, which `to_disk` has saved.

        Raises WeightsError if it is damaged. Then the pipe is as it was before.
        """
        self.cfg.update(load_folder(self.vocab, self.model, path, exclude))
        return self

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        register(self.attr)  # a new process has no extensions yet
        refuse_shared_model(self)
        self._connect()


DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.BiLM.v1",
    "bilm": None,
    "options_file": None,
    "weight_file": None,
    "get_spans": {
        "@span_getters": "spacy-elmo.sentences.v1",
        "window": 250,
        "overlap": 50,
        "longest_sentence": 1000,
    },
    "precision": "float32",
    "stateful": False,
    "trainable": False,
    "cached_words": 16384,
    "width": None,
}
# the other defaults are stated once, in the signature of ElmoPipe
OWN_DEFAULTS = {
    name: parameter.default
    for name, parameter in signature(ElmoPipe.__init__).parameters.items()
    if parameter.kind is Parameter.KEYWORD_ONLY
}


@Language.factory(
    "elmo",
    assigns=[
        "doc._.elmo",
        "doc._.elmo_layers",
        "span._.elmo",
        "span._.elmo_layers",
        "token._.elmo",
        "token._.elmo_layers",
    ],
    default_config={"model": DEFAULT_MODEL, **OWN_DEFAULTS},
)
def make_elmo(
    nlp: Language,
    name: str,
    model: BiLMModel,
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

    nlp: the pipeline.
    name: name of the component.
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
    for other, pipe in nlp.components:
        if isinstance(pipe, ElmoPipe) and pipe.attr == attr:
            raise SettingsError(
                f"attr is {attr!r}, but the pipe {other!r} has the same. Set attr of one of them to another name: "
                "a doc has one set of layers under each name."
            )
    language = language_of(model)
    if language is not None and nlp.lang not in (language, "xx", None):
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
