"""What `elmo embed` does as AllenNLP's elmo command did: a text into one HDF5 file."""

import warnings
from dataclasses import dataclass
from pathlib import Path

from ...allennlp.embedder import OutputFormat
from ...corpus.bilm import BiLMChoice
from ...corpus.parsing import Parser
from ...corpus.reading import read_items, warn_of_json
from ...errors import CommandError, Errors, TruncatedWordsWarning
from ...formats.sentences import read_sentences
from ...formats.text.sources import kind_of
from .bilms import embedder_of
from .inputs import STANDARD_INPUT, open_text, source_of
from .printer import msg


@dataclass(frozen=True)
class AllenNLPOptions:
    """The options that only this way of embedding has.

    batch_size: sentences that run together; None: 64.
    use_sentence_keys: whether datasets are named by the sentences.
    forget_sentences: whether sentence_to_index is left out.
    stateful: whether the LSTMs' state is carried from batch to batch.
    """

    batch_size: int | None
    use_sentence_keys: bool
    forget_sentences: bool
    stateful: bool

    def refuse(self) -> None:
        """Raise CommandError if one of them was given."""
        for name, value in vars(self).items():
            if value:
                raise CommandError(Errors.EMBED_HDF5_ONLY.format(option=f"--{name.replace('_', '-')}"))


def embed_as_allennlp(
    files: list[Path],
    output: Path,
    layers: OutputFormat,
    parser: Parser | None,
    bilm: BiLMChoice,
    gpu: int,
    options: AllenNLPOptions,
    *,
    lines_of_progress: bool,
    quiet: bool,
) -> None:
    """Write the layers of texts to an HDF5 file, and print what was written.

    files: the texts; "-" is standard input.
    output: the HDF5 file.
    layers: which of them are written.
    parser: makes sentences of the texts; None: a line of plain text is a sentence, whose words are separated by blanks.
    bilm: the biLM.
    gpu: number of the GPU; -1: the CPU.
    options: of this way of embedding.
    lines_of_progress: whether progress is shown as lines, at most one in ten seconds.
    quiet: whether nothing is shown but warnings.

    Raises ElmoError if a text, a setting or the file can't be used.
    """
    keys = options.use_sentence_keys
    found = [_lines(file, parser, keys) for file in files]
    lines = [line for sentences, _ in found for line in sentences]
    if not lines:
        raise CommandError(Errors.EMBED_NO_SENTENCES.format(source=", ".join(map(source_of, files))))
    embedder = embedder_of(bilm, gpu, options.stateful)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncatedWordsWarning)  # all of them are told at the end
        embedder.embed_lines(
            lines,
            output,
            layers,
            options.batch_size or 64,
            options.forget_sentences,
            keys,
            progress=False if quiet else "lines" if lines_of_progress else True,
        )
    tell_cut_words(embedder.n_truncated, embedder.options.max_characters - 2)
    empty = sum(left_out for _, left_out in found)
    if empty:
        msg.warn(Errors.EMBED_EMPTY.format(n=empty) + ("" if keys else Errors.EMBED_EMPTY_NUMBERS))
    if not quiet:
        msg.good(f"{output}: {len(lines):,} sentences, {layers} of {embedder.options.layers} layers")


def tell_cut_words(n: int, limit: int) -> None:
    """Print a warning if words were cut. n: their number. limit: bytes of a word that the biLM reads."""
    if n:
        msg.warn(f"tokens with more than {limit} bytes, of which the biLM did not see the rest: {n:,}")


def _lines(file: Path, parser: Parser | None, keys: bool) -> tuple[list[str], int]:
    """Return a file's sentences, words separated by blanks, and how many of its texts have no word."""
    plain = file == STANDARD_INPUT or (file.suffix == kind_of(file) and kind_of(file) not in (".jsonl", ".conllu"))
    if parser is None and plain and file.suffix != ".spacy":
        with open_text(file) as text:
            lines = read_sentences(text, source_of(file), keys=keys)
        if file == STANDARD_INPUT:
            warn_of_json("".join(lines[:1]))
        return lines, 0  # an empty line is refused
    parser = Parser(None, docs=False) if parser is None else parser
    texts = list(read_items([file]))
    documents = list(parser.documents(texts))
    lines = [" ".join(sentence.tokens) for document in documents for sentence in document.sentences]
    return lines, len(texts) - len(documents)
