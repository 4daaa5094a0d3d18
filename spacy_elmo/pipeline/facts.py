"""What a user may ask an elmo pipe about itself."""

from abc import abstractmethod

from ..errors import ElmoError
from ..models.shim import bilm_shims
from ..models.types import BiLMModel


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
