"""The component `elmo`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Optimizer
from thinc.types import Floats3d

from ..errors import ElmoError, Errors, NotEmbeddedError, SettingsError, WeightsError
from ..models.bilm import serve_component
from ..models.cached import LayerCache
from ..models.shim import bilm_shims
from ..models.types import BiLMModel
from .attributes import annotate, mix_parameters, register
from .checks import Store, check_settings
from .listening.listeners import Listening
from .listening.tuning import Tuning
from .vectors import set_vector_hooks


class ElmoPipe(Listening, TrainablePipe):
    """Runs the biLM over docs and keeps all its layers on them; see make_elmo for the settings."""

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
        check_settings(model, frozen, max_batch_tokens, store, scalar_mix_parameters, learn_rate_factor, cache_mb)
        register(attr)
        self.vocab, self.model, self.name = vocab, model, name
        self.cfg: dict[str, Any] = {}
        self.attr, self.set_vectors, self.store, self.frozen = attr, set_vectors, store, frozen
        self.scalar_mix_parameters = scalar_mix_parameters
        self.max_batch_tokens, self.learn_rate_factor = max_batch_tokens, learn_rate_factor
        self.cache = LayerCache(cache_mb * 2**20, cache_file)
        self._listen_as(self.attr)
        self._connect()

    def _connect(self) -> None:
        """Let this pipe and its model know each other."""
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
        """Names the weights; "" where the model has no such name."""
        return next((shim.compute_fingerprint() for shim in bilm_shims(self.model)), "")

    @property
    def n_truncated(self) -> int:
        """How many tokens had more bytes than the biLM reads, so far and in this process (TruncatedWordsWarning)."""
        return sum(shim.truncated.n for shim in bilm_shims(self.model))

    def predict(self, docs: Iterable[Doc]) -> list[Floats3d]:
        """Layers of each doc, (layers, tokens, width)."""
        return self.model.predict(list(docs))

    def set_annotations(self, docs: Iterable[Doc], scores: list[Floats3d]) -> None:
        """Keep the layers, or their mix, on the docs."""
        docs = list(docs)
        if len(docs) != len(scores):
            raise SettingsError(Errors.MODEL_DOCS.format(got=len(scores), expected=len(docs)))
        for doc, layers in zip(docs, scores):
            annotate(doc, self.attr, layers, self._weights(layers.shape[0]), self.store)
            if self.set_vectors:
                set_vector_hooks(doc, self.attr)

    def _weights(self, layers: int) -> Any:
        parameters = self.scalar_mix_parameters
        if parameters is None:
            parameters = [0.0] * layers
        if len(parameters) != layers:
            raise SettingsError(Errors.MIX_LAYERS.format(got=len(parameters), expected=layers))
        return mix_parameters(parameters)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Process docs in batches of at most batch_size docs and, docs longer than that aside, max_batch_tokens.

        Where a batch fails, its docs are tried one by one, and only those that fail go to the error handler.
        """
        for docs in _batches(stream, batch_size, self.max_batch_tokens):
            yield from self._annotated(docs)

    def _annotated(self, docs: list[Doc]) -> Iterator[Doc]:
        try:
            self.set_annotations(docs, self.predict(docs))
        except Exception as error:  # whatever it is belongs to the error handler
            if len(docs) == 1:
                self.get_error_handler()(self.name, self, docs, error)
                return
        else:
            yield from docs
            return
        for doc in docs:
            yield from self._annotated([doc])

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Read the biLM's files, so that a wrong path shows here. Nothing is learnt from the examples.

        Raises SettingsError where a component's listener does not fit, CacheError where cache_file can't be used.
        """
        self.model.initialize()
        for shim in bilm_shims(self.model):
            shim.train_all()  # an earlier training may have left parts shut
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
        """Annotate the examples' docs for the components after this one.

        A frozen biLM learns nothing, and from the first update on each sentence is read once, in evaluations too: the
        pipe's cache is open then (cache_mb, cache_file), until somebody calls cache.close().
        One that is not frozen learns from its listeners' gradients.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        docs = [example.predicted for example in examples]
        if self.store == "mix" and self.listeners:
            raise NotEmbeddedError(Errors.STORED_MIX.format(attr=self.attr))
        if self.frozen:
            self.cache.open()
        if self.frozen or not self.listeners:
            layers = self.predict(docs)
        else:
            self.relink()
            layers = self.tuning.begin(docs, [listener.id for listener in self.last_listeners])
        self.set_annotations(docs, layers)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Apply what the listeners have called back, unless the biLM is frozen."""
        if not self.frozen:
            self.tuning.finish(sgd)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save options and weights. Missing files of a biLM that was never used show before anything is written."""
        self.model.initialize()
        self.name_weights()
        super().to_disk(path, exclude=exclude)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Options and weights."""
        self.name_weights()
        saved: bytes = super().to_bytes(exclude=exclude)
        return saved

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load what to_bytes saved, a biLM of any width."""
        self._forget_width()
        with _loading():
            loaded: ElmoPipe = super().from_bytes(bytes_data, exclude=exclude)
        return loaded

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load what to_disk saved, a biLM of any width."""
        self._forget_width()
        with _loading():
            loaded: ElmoPipe = super().from_disk(path, exclude=exclude)
        return loaded

    def _forget_width(self) -> None:
        """It is unknown until loaded; a model of one's own may never tell it."""
        if self.model.has_dim("nO") is not False:
            self.model.set_dim("nO", None, force=True)  # type: ignore[arg-type]

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        register(self.attr)  # a fresh process has no extensions yet
        self._connect()


@contextmanager
def _loading() -> Iterator[None]:
    """What spaCy and srsly raise for damaged data, as the package's error."""
    try:
        yield
    except ElmoError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WeightsError(Errors.SAVED_DAMAGED.format(reason=error or type(error).__name__)) from error


def _batches(stream: Iterable[Doc], batch_size: int, max_tokens: int) -> Iterator[list[Doc]]:
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
