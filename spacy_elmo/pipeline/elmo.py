"""The component `elmo`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Optimizer
from thinc.types import Floats3d

from ..errors import Errors, NotEmbeddedError, SettingsError
from ..models.bilm import serve_component
from ..models.cached import LayerCache
from ..models.saved_pipe import load_bytes, load_folder
from ..models.shim import bilm_shims
from ..models.types import BiLMModel
from .attributes import annotate, mix_parameters
from .batching import batches_of
from .checks import Store, check_settings, check_training_settings, refuse_shared_model
from .extensions import register
from .facts import Facts
from .hooks import set_vector_hooks, warn_in_worker
from .listening.listeners import Listening
from .listening.tuning import Tuning


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
            raise SettingsError(Errors.MODEL_DOCS.format(got=len(scores), expected=len(docs)))
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
            raise SettingsError(Errors.MIX_LAYERS.format(got=len(parameters), expected=layers))
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
            raise NotEmbeddedError(Errors.STORED_MIX.format(attr=self.attr))
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
