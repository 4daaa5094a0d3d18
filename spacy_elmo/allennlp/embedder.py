"""AllenNLP's ElmoEmbedder: sentences to arrays, and to files of them."""

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from tqdm import tqdm

from ..errors import CommandError, Errors, SettingsError, shown
from ..formats.hdf5_vectors import VectorsWriter
from ..formats.options import BiLMOptions
from ..formats.sentences import read_sentences
from ..formats.truncated import TruncatedWords
from ..inference.engine import Engine
from ..inference.frozen import FrozenBiLM
from ..inference.word_vectors import CACHED_WORDS
from ..modules import Arrays, BiLM, LstmState, load_arrays
from ..modules.precision import Precision, dtype_of
from .sentence_batches import batches_of, checked_words

# of a batch of sentences from a stream; only a longer sentence, alone, has more
MAX_TOKENS = 8192
BATCH_SIZE = 64

Array = npt.NDArray[np.float32]
OutputFormat = Literal["all", "top", "average"]
FORMATS: dict[str, Callable[[Array], Array]] = {
    "all": lambda layers: layers,
    "top": lambda layers: layers[-1],
    "average": lambda layers: layers.mean(0),
}


def device_of(cuda_device: int) -> torch.device:
    """The GPU with this number; -1: the CPU. Raises SettingsError where torch sees no such GPU."""
    if cuda_device < 0:
        return torch.device("cpu")
    seen = torch.cuda.device_count()
    if cuda_device >= seen:
        expected = f"0 to {seen - 1}, or -1 (the CPU)" if seen else "-1 (the CPU)"
        names = f"{seen} of them, counted from 0" if seen else "no GPU"
        raise SettingsError(Errors.EMBED_DEVICE.format(got=cuda_device, seen=names, expected=expected))
    return torch.device("cuda", cuda_device)


class ElmoEmbedder:
    """Embeds tokenised sentences: all layers of the biLM, without gradients.

    options_file, weight_file: the official files; both None: the embedded biLM.
    cuda_device: the number of a GPU; -1: the CPU.
    stateful: row i of a batch starts from the state in which row i of the batch before left the LSTMs, as AllenNLP
        has it. By default every sentence starts from zero, so its vectors depend on nothing else.
    precision: of the products, "float32", "bfloat16" or "auto"; see dtype_of.

    Raises ElmoError where the files, the GPU or the precision can't be used.
    """

    stateful: bool
    _owner: FrozenBiLM | BiLM  # of the weights; a BiLM if from_bilm was given one

    def __init__(
        self,
        options_file: str | os.PathLike[str] | None = None,
        weight_file: str | os.PathLike[str] | None = None,
        cuda_device: int = -1,
        *,
        stateful: bool = False,
        precision: Precision = "float32",
    ) -> None:
        device = device_of(cuda_device)
        dtype = dtype_of(precision, device)  # before files are read
        owner = FrozenBiLM(*load_arrays(options_file, weight_file), device)
        self._use(owner, owner.prepare_engine(dtype, CACHED_WORDS), stateful)

    @classmethod
    def from_arrays(
        cls,
        options: BiLMOptions,
        arrays: Arrays,
        cuda_device: int = -1,
        *,
        stateful: bool = False,
        precision: Precision = "float32",
    ) -> "ElmoEmbedder":
        """An embedder of weights in memory.

        options: the sizes.
        arrays: the weights by parameter name. They move into the embedder: the dict is empty afterwards.
        cuda_device, stateful, precision: as for the class.
        """
        device = device_of(cuda_device)
        dtype, owner = dtype_of(precision, device), FrozenBiLM(options, arrays, device)
        embedder = cls.__new__(cls)
        embedder._use(owner, owner.prepare_engine(dtype, CACHED_WORDS), stateful)
        return embedder

    @classmethod
    def from_bilm(cls, bilm: BiLM, *, stateful: bool = False, precision: Precision = "float32") -> "ElmoEmbedder":
        """An embedder of a network in memory, on its device; its weights must not change any more."""
        embedder = cls.__new__(cls)
        embedder._use(bilm, Engine.of(bilm, dtype_of(precision, bilm.boundary.device), CACHED_WORDS), stateful)
        return embedder

    def _use(self, owner: FrozenBiLM | BiLM, engine: Engine, stateful: bool) -> None:
        self._owner, self._engine, self.stateful = owner, engine, stateful
        self._copy: weakref.ref[BiLM] | None = None
        self._truncated = TruncatedWords("the embedder's n_truncated")
        self._state: LstmState | None = None

    @property
    def elmo_bilm(self) -> BiLM:
        """The network, an attribute because AllenNLP has it so. What is written into it does not reach the embedder.

        One that came from files is a copy: it is the same object, and the weights are in memory twice, for as long as
        somebody holds it. Else the network that from_bilm was given.
        """
        if isinstance(self._owner, BiLM):
            return self._owner
        network = None if self._copy is None else self._copy()
        if network is None:
            network = BiLM.from_arrays(self._owner.options, self._owner.to_arrays()).to(self._engine.device)
            self._copy = weakref.ref(network)
        return network

    @property
    def options(self) -> BiLMOptions:
        """The network's sizes."""
        return self._engine.options

    @property
    def n_truncated(self) -> int:
        """How many tokens had more bytes than the biLM reads, so far (TruncatedWordsWarning)."""
        return self._truncated.n

    def reset_states(self) -> None:
        """Start the next batch from the zero state."""
        self._state = None

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Embed sentences as one tensor, on the biLM's device.

        Returns the layers, *Shape:* (batch, layers, longest, width), 0 behind a sentence's end, and the mask, bool,
        *Shape:* (batch, longest), true at words.
        """
        arrays, options = self.embed_batch(batch), self.options
        longest = max((array.shape[1] for array in arrays), default=0)
        activations = torch.zeros(len(arrays), options.layers, longest, options.width)
        mask = torch.zeros(len(arrays), longest, dtype=torch.bool)
        for row, array in enumerate(arrays):
            activations[row, :, : array.shape[1]] = torch.from_numpy(array)
            mask[row, : array.shape[1]] = True
        device = self._engine.device
        return activations.to(device), mask.to(device)

    def embed_sentence(self, sentence: Sequence[str]) -> Array:
        """Embed one sentence, a list of words. *Shape:* (layers, tokens, width)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[Array]:
        """Embed sentences, lists of words. *Shape:* (layers, tokens, width) each, 0 tokens for an empty one.

        Raises ElmoError for a sentence that is a string, and for a word that is none.
        """
        sentences = [checked_words(sentence) for sentence in batch]
        words = [word for sentence in sentences for word in sentence]
        self._truncated.count(words, self.options.max_characters)
        if not self.stateful:
            return self._engine.run(sentences)
        zero = self._engine.zero_state(len(sentences))
        before = zero if self._state is None else self._state
        layers, after = self._engine.run_from(sentences, before.rows(len(sentences), zero))
        if any(sentences):  # AllenNLP does not run a batch without words: it leaves the state as it was
            self._state = after.followed_by(before)
        return layers

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = BATCH_SIZE) -> Iterator[Array]:
        """Embed a stream of sentences, batch by batch as they are asked for. *Shape:* (layers, tokens, width) each.

        batch_size: sentences that run together, at most; fewer where they are long, unless the state is carried.
        Raises SettingsError for a batch_size below 1, and ElmoError as embed_batch does.
        """
        if not isinstance(batch_size, int) or batch_size < 1:
            raise SettingsError(Errors.EMBED_BATCH_SIZE.format(got=batch_size))
        batches = batches_of(sentences, batch_size, None if self.stateful else MAX_TOKENS)
        return (layers for batch in batches for layers in self.embed_batch(batch))

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | os.PathLike[str],
        output_format: OutputFormat = "all",
        batch_size: int = BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed a text, one sentence a line, words separated by blanks; see embed_lines.

        Raises CommandError for what can't be used of the text, before anything is embedded, and as embed_lines does.
        """
        if isinstance(input_file, str | os.PathLike):
            raise CommandError(Errors.EMBED_FILE.format(got=shown(input_file)))
        source = str(getattr(input_file, "name", "the text"))
        lines = read_sentences(input_file, source, keys=use_sentence_keys)
        self.embed_lines(lines, output_file_path, output_format, batch_size, forget_sentences, use_sentence_keys)

    def embed_lines(
        self,
        lines: Sequence[str],
        output_file_path: str | os.PathLike[str],
        output_format: OutputFormat = "all",
        batch_size: int = BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
        *,
        progress: bool = False,
    ) -> None:
        """Embed sentences, words separated by blanks, to an HDF5 file, which appears when all is written.

        output_format: "all", (layers, tokens, width) each; "top", the last layer, and "average", the layers' mean,
            both (tokens, width).
        forget_sentences: leave out sentence_to_index; use_sentence_keys: name the datasets by the sentences, and not
            "0", "1" ... in order (and leave it out too).
        progress: whether a bar on stderr counts the sentences.

        Raises SettingsError for a format or batch size that is none, VectorsError where the file can't be written.
        """
        if isinstance(lines, str):
            raise CommandError(Errors.EMBED_LINES.format(got=shown(lines)))
        if output_format not in FORMATS:
            raise SettingsError(Errors.EMBED_FORMAT.format(got=output_format, expected=", ".join(FORMATS)))
        embedded = self.embed_sentences((line.split() for line in lines), batch_size)
        with (
            VectorsWriter(output_file_path, index=not (forget_sentences or use_sentence_keys)) as writer,
            tqdm(total=len(lines), unit=" sentences", disable=not progress) as bar,
        ):
            for line, layers in zip(lines, embedded):
                writer.write(line, FORMATS[output_format](layers), line if use_sentence_keys else None)
                bar.update()
