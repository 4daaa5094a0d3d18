"""A drop-in for AllenNLP's ElmoEmbedder: from sentences to arrays, or to an HDF5 file of arrays."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import CommandError, Errors, SettingsError, shown
from ..formats.hdf5_vectors import VectorsWriter
from ..formats.options import BiLMOptions
from ..formats.sentences import read_sentences, refuse_same_file
from ..formats.truncated import TruncatedWords
from ..inference.engine import Engine
from ..inference.frozen import FrozenBiLM
from ..inference.word_vectors import CACHED_WORDS
from ..modules import Arrays, BiLM
from ..modules.loading import load_named_arrays
from ..modules.precision import Precision, dtype_of
from .carried import CarriedState
from .devices import device_of
from .embedder_network import EmbedderNetwork
from .encoding import Encoder
from .progress import BarSetting, bar_of
from .sentence_batches import BATCH_SIZE, MAX_TOKENS, batches_of, check_batch_size

Array = npt.NDArray[np.float32]
OutputFormat = Literal["all", "top", "average"]
FORMATS: dict[str, Callable[[Array], Array]] = {
    "all": lambda layers: layers,
    "top": lambda layers: layers[-1],
    "average": lambda layers: layers.mean(0),
}


class ElmoEmbedder(Encoder, EmbedderNetwork):
    """Computes all layers of the biLM for tokenised sentences, without gradients.

    options_file, weight_file: paths of the official files; both None: the embedded biLM. A folder with both files, the
        folder of a pretraining run, or a name ("en_mini", "original" ...) may stand in place of the two:
        `ElmoEmbedder("runs/mine")`.
    cuda_device: number of the GPU; -1: the CPU.
    stateful: whether row i of a batch starts from the state after row i of the previous batch, as in AllenNLP; false:
        each sentence starts from the zero state, so that its vectors depend on no other sentence.
    precision: type of the matrix multiplications: "float32", "bfloat16" or "auto" (see dtype_of).

    Raises ElmoError if the files, the GPU or the precision cannot be used.
    """

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
        self._use(FrozenBiLM(*load_named_arrays(options_file, weight_file), device), dtype, stateful)

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
        """Return an embedder with weights in memory.

        options: the biLM's options.
        arrays: the weights by parameter name. The dict is emptied, so that the embedder is their only owner.
        cuda_device, stateful, precision: as for the class.
        """
        device = device_of(cuda_device)
        dtype, embedder = dtype_of(precision, device), cls.__new__(cls)
        embedder._use(FrozenBiLM(options, arrays, device), dtype, stateful)
        return embedder

    @classmethod
    def from_bilm(cls, bilm: BiLM, *, stateful: bool = False, precision: Precision = "float32") -> "ElmoEmbedder":
        """Return an embedder with the weights of a network, on its device. The weights must not change afterwards."""
        embedder = cls.__new__(cls)
        embedder._use(bilm, dtype_of(precision, bilm.boundary.device), stateful)
        return embedder

    def _use(self, owner: FrozenBiLM | BiLM, dtype: torch.dtype, stateful: bool) -> None:
        self._owner, self._dtype = owner, dtype
        self._engine = _engine_of(owner, dtype)
        self._network = None
        self._truncated = TruncatedWords("the embedder's n_truncated")
        self._carried = CarriedState(stateful)

    def __getstate__(self) -> dict[str, Any]:
        # the engine's matrices can't be copied; a copy lays them out again, and has a state of its own
        state = {name: value for name, value in self.__dict__.items() if name != "_engine"}
        return state | {"_network": None, "_carried": replace(self._carried)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _engine=_engine_of(state["_owner"], state["_dtype"]))

    def to_arrays(self) -> Arrays:
        """Return copies of the weights by parameter name."""
        return self._owner.to_arrays()

    @property
    def n_truncated(self) -> int:
        """Number of tokens so far that had more bytes than the biLM reads (TruncatedWordsWarning)."""
        return self._truncated.n

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Embed sentences, lists of words, in one tensor on the biLM's device.

        Returns the layers, *Shape:* (batch, layers, tokens, width), float32, 0 after the end of a sentence, and the
        mask, *Shape:* (batch, tokens), bool, true at words.
        """
        arrays, options = self.embed_batch(batch), self.options
        longest = max((array.shape[1] for array in arrays), default=0)
        # made by numpy, because torch's default type and device may be others
        activations = np.zeros((len(arrays), options.layers, longest, options.width), np.float32)
        mask = np.zeros((len(arrays), longest), np.bool_)
        for row, array in enumerate(arrays):
            activations[row, :, : array.shape[1]] = array
            mask[row, : array.shape[1]] = True
        device = self._engine.device
        return torch.from_numpy(activations).to(device), torch.from_numpy(mask).to(device)

    def embed_sentence(self, sentence: Sequence[str]) -> Array:
        """Embed one sentence, a list of words. Returns *Shape:* (layers, tokens, width)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[Array]:
        """Embed sentences, lists of words, which may be empty. Returns *Shape:* (layers, tokens, width) for each.

        Raises ElmoError if a sentence is a string, or a word is not a string.
        """
        sentences = self._counted(batch)
        if not self.stateful:
            return self._engine.run(sentences)
        zero = self._engine.zero_state(len(sentences))
        before = self._carried.on_device_of(zero)
        layers, after = self._engine.run_from(sentences, before.rows(len(sentences), zero))
        if any(sentences):  # as in AllenNLP, a batch without words does not change the state
            self._carried.state = after.followed_by(before)
        return layers

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = BATCH_SIZE) -> Iterator[Array]:
        """Embed a stream of sentences, each batch when it is needed. Yields *Shape:* (layers, tokens, width) for each.

        batch_size: number of sentences in a batch, at most. Without `stateful`, long sentences run in smaller batches.
        Raises SettingsError if batch_size is below 1, and the errors of `embed_batch`.
        """
        check_batch_size(batch_size)
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
        """Embed an open text file of one sentence per line. All other arguments are those of `embed_lines`.

        Raises CommandError before anything is embedded, if the text cannot be used, and the errors of `embed_lines`.
        """
        if isinstance(input_file, str | os.PathLike):
            raise CommandError(Errors.EMBED_FILE.format(got=shown(input_file)))
        refuse_same_file(input_file, output_file_path)
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
        progress: BarSetting = False,
    ) -> None:
        """Embed sentences into an HDF5 file, which appears at its path when it is complete.

        lines: the sentences, with blanks between the words.
        output_format: "all": *Shape:* (layers, tokens, width) for each sentence. "top" (the last layer) and "average"
            (the mean of the layers): *Shape:* (tokens, width).
        batch_size: as in `embed_sentences`.
        forget_sentences: whether the dataset sentence_to_index is left out.
        use_sentence_keys: whether the datasets are named by the sentences, in place of "0", "1" ... Then
            sentence_to_index is left out, too.
        progress: how the sentences are counted on stderr. True: by a bar, if stderr is a terminal. "lines": in lines,
            for a log file.

        Raises SettingsError if output_format or batch_size cannot be used, and VectorsError if the file cannot be.
        """
        if isinstance(lines, str):
            raise CommandError(Errors.EMBED_LINES.format(got=shown(lines)))
        if output_format not in FORMATS:
            raise SettingsError(Errors.EMBED_FORMAT.format(got=output_format, expected=", ".join(FORMATS)))
        embedded = self.embed_sentences((line.split() for line in lines), batch_size)
        with (
            VectorsWriter(output_file_path, index=not (forget_sentences or use_sentence_keys)) as writer,
            bar_of(len(lines), progress) as bar,
        ):
            for line, layers in zip(lines, embedded):
                writer.write(line, FORMATS[output_format](layers), line if use_sentence_keys else None)
                bar.update()


def _engine_of(owner: FrozenBiLM | BiLM, dtype: torch.dtype) -> Engine:
    if isinstance(owner, BiLM):
        return Engine.of(owner, dtype, CACHED_WORDS)
    return owner.prepare_engine(dtype, CACHED_WORDS)
