"""A drop-in for AllenNLP's ElmoEmbedder: from sentences to arrays, or to an HDF5 file of arrays."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, TextIO, overload

import numpy as np
import numpy.typing as npt
import torch
from spacy.util import minibatch
from torch import Tensor
from tqdm import tqdm

from ..errors import CommandError, ElmoError, SettingsError, check_whole, listed, shown
from ..formats.characters import TruncatedWords, checked_words
from ..formats.options import BiLMOptions
from ..formats.outputs import output
from ..formats.vectors import VectorsWriter, key_problem, of_length_1
from ..inference.embedder import Embedder
from ..inference.linear import Precision, dtype_of
from ..modules import Arrays
from ..modules.loading import load_named_arrays, named_language
from ..text.words import Unusable, tokenizer_of, words_of
from .elmo_bilm import RawBiLM

BATCH_SIZE = 64


def device_of(cuda_device: int) -> torch.device:
    """Return the GPU with this number; -1: the CPU. One that torch does not see is an error."""
    if cuda_device < 0:
        return torch.device("cpu")
    seen = torch.cuda.device_count()
    if cuda_device >= seen:
        expected = f"0 to {seen - 1}, or -1 (the CPU)" if seen else "-1 (the CPU)"
        names = f"{seen} of them, counted from 0" if seen else "no GPU"
        wanted = f"the GPU {cuda_device} was asked for (cuda_device, or --gpu-id)"
        raise SettingsError(f"{wanted}, but torch finds {names}. Expected {expected}.")
    return torch.device("cuda", cuda_device)


def number_of(device: torch.device) -> int:
    """Return the number of a GPU; -1 for the CPU. A GPU without a number is the first."""
    return -1 if device.type == "cpu" else device.index or 0


# True: a bar, if stderr is a terminal; "lines": each state of the bar is a line, for a log file
BarSetting = bool | Literal["lines"]
SECONDS = 10.0  # from one line to the next, as in AllenNLP's Tqdm.set_slower_interval


class _Lines:
    """Writes each state of a bar as a line, which tqdm would write over the one before."""

    def __init__(self, file: TextIO) -> None:
        self.file, self._last = file, ""

    def write(self, text: str) -> None:
        text = re.sub(r"\x1b\[A|\r", "", text).strip()  # with a bar in a bar, tqdm moves up and down
        if text and text != self._last:
            self.file.write(text + "\n")
            self._last = text

    def flush(self) -> None:
        self.file.flush()


def bar_of(progress: BarSetting, seconds: float = SECONDS, **options: Any) -> "tqdm[Any]":
    """Return a bar on stderr, with other options of tqdm. seconds: from one line to the next."""
    if progress == "lines" and sys.stderr:
        return tqdm(file=_Lines(sys.stderr), mininterval=seconds, maxinterval=seconds, ncols=0, **options)
    # None: shown on a terminal only, since in a file each of its states would stay. Without stderr it is None
    return tqdm(disable=None if progress and sys.stderr else True, **options)


Array = npt.NDArray[np.float32]


def split_texts(texts: Iterable[str | Sequence[str]], lang: str | None) -> list[list[str]]:
    """Return the words of each text: of strings, split by spaCy's tokenizer of `lang` or at blanks, and of lists.

    None and NaN are texts without words.
    """
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping) or hasattr(texts, "columns"):
        raise ElmoError(f"the texts are {shown(texts)}. Expected a list of strings, or of lists of words.")
    split, sentences = tokenizer_of(lang) or str.split, []
    for i, text in enumerate(texts):
        try:
            sentences.append(words_of(text, split))
        except Unusable as error:
            raise ElmoError(f"texts[{i}]: {error}. Expected a string or a list of words: change it.") from error
    return sentences


OutputFormat = Literal["all", "top", "average"]
FORMATS: dict[str, Callable[[Array], Array]] = {
    "all": lambda layers: layers,
    "top": lambda layers: layers[-1],
    "average": lambda layers: layers.mean(0),
}


class ElmoEmbedder:
    """Computes all layers of the biLM for tokenised sentences, without gradients.

    options_file, weight_file: paths of the official files; both None: the embedded biLM. A folder with both files, the
        folder of a pretraining run, or a name ("en_core", "original" ...) may stand in place of the two:
        `ElmoEmbedder("runs/mine")`.
    cuda_device: number of the GPU; -1: the CPU.
    stateful: whether row i of a batch starts from the state after row i of the previous batch, as in AllenNLP; false:
        each sentence starts from the zero state, so that its vectors depend on no other sentence.
    precision: type of the matrix multiplications: "float32", "bfloat16" or "auto" (see dtype_of).

    Raises ElmoError if the files, the GPU or the precision cannot be used.
    """

    language: str = "en"  # of the biLM's model card: the tokenizer that `encode` and `build_index` use by default

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
        self._use(*load_named_arrays(options_file, weight_file), dtype, device, stateful)
        self.language = named_language(options_file, weight_file) or "en"

    @classmethod
    def from_arrays(
        cls,
        options: BiLMOptions,
        arrays: Arrays,
        cuda_device: int = -1,
        *,
        stateful: bool = False,
        precision: Precision = "float32",
        language: str = "en",
    ) -> "ElmoEmbedder":
        """Return an embedder with weights in memory, by parameter name. It owns the arrays.

        language: spaCy's code of the language that the biLM was trained on.
        """
        device, embedder = device_of(cuda_device), cls.__new__(cls)
        embedder.language = language
        embedder._use(options, arrays, dtype_of(precision, device), device, stateful)
        return embedder

    def _use(
        self, options: BiLMOptions, arrays: Arrays, dtype: torch.dtype, device: torch.device, stateful: bool
    ) -> None:
        self._embedder = Embedder.from_arrays(options, arrays, dtype, device)
        # as in AllenNLP, it is not trained: else the outputs of elmo_bilm could not become arrays
        self._network = RawBiLM(self._embedder.bilm.requires_grad_(False), stateful=stateful)
        self._truncated = TruncatedWords("the embedder's n_truncated")

    @property
    def options(self) -> BiLMOptions:
        """The biLM's options."""
        return self._embedder.options

    def to_arrays(self) -> Arrays:
        """Return copies of the weights by parameter name."""
        return self._embedder.bilm.to_arrays()

    @property
    def n_truncated(self) -> int:
        """Number of tokens so far that had more bytes than the biLM reads (TruncatedWordsWarning)."""
        return self._truncated.n

    @property
    def elmo_bilm(self) -> RawBiLM:
        """The network, with the interface of AllenNLP's, which has this name, too: `elmo_bilm(ids)["activations"]`.

        It has the state and the weights of the embedder. The weights must not change.
        """
        self._embedder.network()  # without weights in float16
        return self._network

    @property
    def cuda_device(self) -> int:
        """Number of the GPU; -1: the CPU."""
        return number_of(self._embedder.device)

    def reset_states(self) -> None:
        """Let the next batch start from the zero state."""
        self._network.carried.reset()

    @property
    def stateful(self) -> bool:
        """Whether row i of a batch starts from the state after row i of the previous batch."""
        return self._network.carried.stateful

    def _counted(self, batch: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the sentences, checked, and count the words that the biLM does not read to their end."""
        sentences = [checked_words(sentence) for sentence in batch]
        self._truncated.count([word for sentence in sentences for word in sentence], self.options.max_characters)
        return sentences

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Embed sentences, lists of words, in one tensor on the biLM's device.

        Returns the layers, *Shape:* (batch, layers, tokens, width), float32, 0 after the end of a sentence, and the
        mask, *Shape:* (batch, tokens), bool, true at words.
        """
        # padded by numpy, because torch's default type and device may be others
        activations, mask = self._padded(self.embed_batch(batch), "all", None)
        device = self._embedder.device
        return torch.from_numpy(activations).to(device), torch.from_numpy(mask).to(device)

    def embed_padded(
        self,
        sentences: Iterable[Sequence[str]],
        output_format: OutputFormat = "all",
        length: int | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Embed sentences, lists of words, in one array for a network of your own.

        output_format: as in `embed_file`.
        length: number of tokens in the array, after which a sentence is cut; None: that of the longest sentence.
        batch_size: as in `embed_sentences`.

        Returns the vectors, *Shape:* (sentences, layers, tokens, width), or (sentences, tokens, width) for "top" and
        "average", float32, 0 after the end of a sentence, and the mask, *Shape:* (sentences, tokens), true at words.
        """
        _check_output_format(output_format)
        if length is not None:
            check_whole(length=length)
        embedded = self.embed_sentences(sentences, batch_size)
        arrays = [FORMATS[output_format](layers[:, :length]) for layers in embedded]
        return self._padded(arrays, output_format, length)

    def _padded(
        self, arrays: list[Array], output_format: OutputFormat, length: int | None
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        lengths = np.array([array.shape[-2] for array in arrays], np.int64)
        if length is None:
            length = int(lengths.max(initial=0))
        layers = (self.options.layers,) if output_format == "all" else ()
        vectors = np.zeros((len(arrays), *layers, length, self.options.width), np.float32)
        for row, array in zip(vectors, arrays):
            row[..., : array.shape[-2], :] = array
        return vectors, np.arange(length) < lengths[:, None]

    def embed_sentence(self, sentence: Sequence[str]) -> Array:
        """Embed one sentence, a list of words. Returns *Shape:* (layers, tokens, width)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[Array]:
        """Embed sentences, lists of words, which may be empty. Returns *Shape:* (layers, tokens, width) for each.

        Raises ElmoError if a sentence is a string, or a word is not a string.
        """
        return self._network.carried.run(self._embedder, self._counted(batch))

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = BATCH_SIZE) -> Iterator[Array]:
        """Embed a stream of sentences, each batch when it is needed. Yields *Shape:* (layers, tokens, width) for each.

        batch_size: number of sentences in a batch, at most. Without `stateful`, long sentences run in smaller ones.
        Raises SettingsError if batch_size is below 1, and the errors of `embed_batch`.
        """
        check_whole(batch_size=batch_size)
        return (layers for batch in minibatch(sentences, int(batch_size)) for layers in self.embed_batch(batch))

    @overload
    def encode(
        self,
        texts: str | Iterable[str | Sequence[str]],
        batch_size: int = BATCH_SIZE,
        show_progress_bar: BarSetting = False,
        lang: str | None = "auto",
        *,
        normalize_embeddings: bool = False,
        convert_to_numpy: Literal[True] = True,
        convert_to_tensor: Literal[False] = False,
        device: torch.device | str | None = None,
    ) -> Array: ...
    @overload
    def encode(
        self,
        texts: str | Iterable[str | Sequence[str]],
        batch_size: int = BATCH_SIZE,
        show_progress_bar: BarSetting = False,
        lang: str | None = "auto",
        *,
        normalize_embeddings: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: torch.device | str | None = None,
    ) -> Any: ...
    def encode(
        self,
        texts: str | Iterable[str | Sequence[str]],
        batch_size: int = BATCH_SIZE,
        show_progress_bar: BarSetting = False,
        lang: str | None = "auto",
        *,
        normalize_embeddings: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: torch.device | str | None = None,
    ) -> Array | Tensor:
        """Return a vector for each text: the mean of all layers of all its words. A text is read as one sentence.

        `stateful` has no effect here: the vector of a text depends on that text alone. Most names are those of
        sentence-transformers.

        texts: strings, or lists of words. One string alone gives one vector.
        batch_size: number of texts in a batch, at most. Long texts run in smaller batches.
        show_progress_bar: true: a bar, if stderr is a terminal; "lines": its states as lines, for a log file.
        lang: of the spaCy tokenizer that splits the strings; "auto": `language`; None: they are split at blanks.
        normalize_embeddings: whether each vector is divided by its length.
        convert_to_numpy, convert_to_tensor: true and false: an array. Otherwise a tensor on the biLM's device.
        device: such as "cuda": the biLM moves there, and stays; None: it stays where it is.

        Returns *Shape:* (texts, width), float32; (width,) for one string. The row of a text without words is zero.
        """
        check_whole(batch_size=batch_size)
        if device is not None and (number := number_of(torch.device(device))) != self.cuda_device:
            self._use(self.options, self.to_arrays(), self._embedder.dtype, device_of(number), self.stateful)
        alone = isinstance(texts, str)
        sentences = split_texts([texts] if isinstance(texts, str) else texts, self.language if lang == "auto" else lang)
        vectors = np.zeros((len(sentences), self.options.width), np.float32)
        batches = minibatch(sentences, int(batch_size))
        with bar_of(show_progress_bar, total=len(sentences), unit=" sentences") as bar:
            embedded = (layers for batch in batches for layers in self._embedder.run(self._counted(batch)))
            for row, layers in enumerate(embedded):
                if layers.shape[1]:
                    vectors[row] = layers.mean((0, 1), dtype=np.float64)
                bar.update()
        found = vectors[0] if alone else vectors
        if normalize_embeddings:
            found = of_length_1(found)
        if convert_to_tensor or not convert_to_numpy:
            return torch.from_numpy(found).to(self._embedder.device)
        return found

    def get_sentence_embedding_dimension(self) -> int:
        """Return the width of what `encode` gives."""
        return self.options.width

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | os.PathLike[str],
        output_format: OutputFormat = "all",
        batch_size: int = BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed an open text file of one sentence per line into an HDF5 file, which appears when it is complete.

        output_format: "all": *Shape:* (layers, tokens, width) for each sentence. "top" (the last layer) and "average"
            (the mean of the layers): *Shape:* (tokens, width).
        batch_size: as in `embed_sentences`.
        forget_sentences: whether the dataset sentence_to_index is left out.
        use_sentence_keys: whether the sentences name the datasets, in place of "0", "1" ... and sentence_to_index.

        Raises CommandError before anything is embedded, if the text cannot be used, SettingsError if output_format or
        batch_size cannot be, and VectorsError if the file cannot be written.
        """
        if isinstance(input_file, str | os.PathLike | io.BufferedIOBase):
            raise CommandError(
                f"input_file is {shown(input_file)}. Expected an open text file: open it, without the b in its mode."
            )
        source = str(getattr(input_file, "name", "the text"))
        with output(output_file_path, CommandError, ["-" if input_file is sys.stdin else source]):
            lines = _read_lines(input_file, source)
            embedded = self.embed_sentences(map(str.split, lines), batch_size)
            write_layers(output_file_path, lines, embedded, output_format, forget_sentences, use_sentence_keys)


def _read_lines(file: IO[str], source: str) -> list[str]:
    """Return all lines of an open text, stripped, of which none may be empty, as in AllenNLP."""
    lines: list[str] = []
    try:
        for line in file:
            lines.append(line.strip())
    except UnicodeDecodeError as error:
        # Python decodes text in blocks. The bad block starts in the line after the one that was read last.
        before = error.object[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        encoding = error.encoding.upper()
        raise CommandError(
            f"{source}: line {len(lines) + 1 + before} is not {encoding} ({error.reason}). Expected text in {encoding} "
            "throughout: convert the file, for example with iconv, or correct that line."
        ) from error
    if empty := [number for number, line in enumerate(lines, 1) if not line]:
        raise CommandError(
            f"{source}: these lines are empty: {listed(empty)}. Expected a sentence in every line: remove the empty "
            "ones. Or let python -m spacy elmo embed leave them out: give --lang CODE, whose tokenizer then splits the "
            "text, or write another file than HDF5, such as a .spacy file."
        )
    return lines


def write_layers(
    path: str | os.PathLike[str],
    sentences: Sequence[str],
    embedded: Iterable[Array],
    output_format: OutputFormat,
    forget_sentences: bool,
    use_sentence_keys: bool,
) -> None:
    """Write the layers of sentences to a file as AllenNLP's elmo command does (see `ElmoEmbedder.embed_file`)."""
    _check_output_format(output_format)
    first: dict[str, int] = {}
    for number, sentence in enumerate(sentences if use_sentence_keys else (), 1):
        earlier = first.setdefault(sentence, number)
        if problem := key_problem(sentence) or (f"it is sentence {earlier}, too" if earlier != number else None):
            raise CommandError(
                f"sentence {number} can't be the key of its vectors: {problem}. Expected one that can, each once: "
                "change it, or leave out --use-sentence-keys (use_sentence_keys)."
            )
    with VectorsWriter(path, index=not (forget_sentences or use_sentence_keys)) as writer:
        for layers, sentence in zip(embedded, sentences):  # in this order, so that a bar comes to its end
            writer.write(sentence, FORMATS[output_format](layers), sentence if use_sentence_keys else None)


def _check_output_format(output_format: str) -> None:
    if output_format not in FORMATS:
        raise SettingsError(f"output_format is {output_format!r}. Expected one of {', '.join(FORMATS)}.")
