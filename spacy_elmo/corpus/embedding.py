"""Embeds a corpus into a file, or into a folder of shards."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from ..errors import CorpusError, ElmoError, SettingsError, check_whole, shown
from ..formats import outputs
from ..formats.atomic import remove_leftovers
from ..formats.options import BiLMOptions
from ..formats.paths import Name, expanded
from ..text.files import text_files
from ..text.stream import Item, nothing_read, read_items
from .bilm import BiLMChoice
from .shards import (
    MANIFEST,
    SHARDS,
    SKIPPED,
    Manifest,
    OnProgress,
    Shard,
    ShardFacts,
    ShardSettings,
    ShardWriter,
    Summary,
    cut,
)
from .workers import connected, run_cluster, run_workers
from .writing import FORMATS, SUFFIXES, FoundSentence, Layers, Selection


class Output(NamedTuple):
    """Where vectors go. single: whether the path is one file, not a folder of shards."""

    path: Path
    format: str
    single: bool

    @classmethod
    def of(cls, path: Name, format: str | None, sharded: bool) -> Output:
        """Return what a path and a format mean (see `embed`). sharded: whether a size of shards was given."""
        path = expanded(path)
        told = None if path.is_dir() else SUFFIXES.get(path.suffix.lower())
        problem = None
        if str(path) in ("-", "."):
            problem = f"the output is {shown(str(path))}. Expected the name of a file, like vectors.parquet, or of a "
            problem += "folder, which gets shards"
        elif format is not None and format not in FORMATS:
            problem = f"format is {shown(format)}. Expected one of {', '.join(FORMATS)}"
        elif format is None and told is None and path.suffix and not path.is_dir():
            problem = f"{path}: the end of its name tells no format. Expected one of {', '.join(SUFFIXES)}, or a name "
            problem += "without a dot for a folder; or say with format (--format) what is meant"
        elif format is not None and told is not None and told != format:
            problem = f"{path}: its name tells {told}, but format (--format) is {format}. Leave one of them out, or "
            problem += "change the name"
        if problem:
            raise SettingsError(f"{problem}.")
        chosen = format or told or "parquet"
        # HDF5 and npy are one file unless shards are asked for
        single = not sharded and not path.is_dir() and (told is not None or chosen in ("hdf5", "npy"))
        return cls(path, chosen, single)

    def check(
        self,
        sentence: bool,
        dtype: str,
        lang: str | None,
        tokenized: bool | None,
        engine: str,
        address: str | None,
        workers: int | None,
    ) -> None:
        """Raise SettingsError if arguments of `embed` can't be used, or not together or for this output."""
        if workers is not None:
            check_whole(workers=workers)
        problem = None
        if engine not in ENGINES:
            problem = f"engine is {shown(engine)}. Expected one of {', '.join(ENGINES)}"
        elif address is not None and engine != "ray":
            problem = f"address is {shown(address)}, but only the engine ray has one. Leave it out, or add --engine "
            problem += "ray (engine='ray')"
        elif self.single and (engine == "ray" or (workers or 1) > 1):
            problem = f"{self.path} is one file, which one process writes. For several (workers, or the engine ray), "
            problem += "give a folder as the output: it gets shards"
        elif sentence and self.format in ("hdf5", "spacy"):
            problem = f"one vector a sentence was asked for (sentence, --sentence), which {self.format} can't hold "
            problem += "here. Expected npy, or parquet or safetensors, which need other packages"
        elif not sentence and self.format == "npy":
            problem = "an .npy file has one vector a sentence, but vectors of tokens were asked for. Add --sentence "
            problem += "(sentence=True), or give another format"
        elif self.format == "hdf5" and dtype != "float32":
            problem = f"dtype is {dtype}, but HDF5 in AllenNLP's layout is float32. Leave it out, or give another "
            problem += "format"
        if problem:
            raise SettingsError(f"{problem}.")
        check_tokenizer(lang, tokenized)


def check_tokenizer(lang: str | None, tokenized: bool | None) -> None:
    """Raise SettingsError if there is a language for a tokenizer, but words are separated by blanks."""
    if lang is not None and tokenized:
        raise SettingsError(
            f"lang is {shown(lang)}, but tokenized says that the words are separated by blanks, which needs no "
            "language. Expected one of the two: leave out --lang (lang), or leave out --tokenized (tokenized)."
        )


ENGINES = ("local", "ray")


def shard_bytes(options: BiLMOptions) -> int:
    """Return how many bytes of text a shard has by default, so that one takes some seconds: a kill loses no more."""
    return min(1_000_000, max(20_000, 1_500_000_000_000 // options.n_parameters))


def embed(
    inputs: Name | Sequence[Name],
    output: Name,
    *,
    format: str | None = None,
    layers: Layers | None = None,
    dtype: str = "float32",
    sentence: bool = False,
    lang: str | None = None,
    tokenized: bool | None = None,
    docs: bool = False,
    text_column: str | None = None,
    text_field: str | None = None,
    bilm: str | BiLMChoice = "en_core",
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    shard_size: int | None = None,
    resume: bool = True,
    code: str | Path | None = None,
    progress: OnProgress = lambda tokens, size: None,
) -> Summary:
    """Embed a corpus.

    inputs: files, folders and patterns: text, .jsonl, .csv, .tsv, .conllu or .spacy, perhaps packed as .gz, .bz2, .xz
        or .zst; "-" is standard input.
    output: a file, whose name ends in .parquet, .hdf5, .spacy, .safetensors or .npy; or a folder, which gets shards.
    format: "parquet", "hdf5", "spacy", "safetensors" or "npy"; None: what the name of the output says, or Parquet.
    layers: "all", "top", "mean", or the weights of a mix, as a JSON file or as a dict like {"w": [0.1, 0.7, -0.2],
        "gamma": 1.0}; None: "all" for HDF5, else "mean".
    dtype: of the values that are written: "float32" or "float16".
    sentence: whether a sentence gets one vector, the mean over its tokens.
    lang: language of the spaCy tokenizer; None: that of a saved pipeline or of the biLM's model card, or English.
    tokenized: whether the words of a text are separated by blanks, without a `lang`; None: only for HDF5, as AllenNLP
        reads text, and only if there is neither `lang` nor a pipeline.
    docs: whether a text (a line, or the "text" of an object) is a document of several sentences.
    text_column: the column with the text; files of no other format are then tables (see `table_rows`).
    text_field: the field of JSON lines with the text; None: "tokens" or "text".
    bilm: the name of a biLM ("en_core", "original" ...), a folder of a biLM or of a pretraining run, or a saved
        pipeline; or a BiLMChoice, which can say more: two files, a device, a precision.
    workers: number of processes, which only a folder of shards can have; None: one, or with Ray one for each core.
    engine: what runs the processes: "local", this machine; or "ray", all machines of a Ray cluster.
    address: of the Ray cluster: "auto" (this machine's) or "host:port"; None: the connection that this process has, or
        the cluster that RAY_ADDRESS names, or this machine's; without any, Ray is started for the call.
    shard_size: bytes of text in a shard; None: as in an earlier command, or fewer the larger the biLM is (see
        `shard_bytes`).
    resume: whether to go on with an earlier command; false: its shards are deleted.
    code: Python file with functions that a saved pipeline needs. The workers import it; None: they import nothing.
    progress: is called with the numbers of tokens and of bytes of text that were done since the call before; with zeros
        when the settings were found to be usable.

    Returns what was embedded.
    Raises ElmoError if a setting, an input or the output can't be used. In a folder, finished shards stay.
    """
    begun = time.monotonic()
    names = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    target = Output.of(output, format, shard_size is not None)
    if shard_size is not None:
        check_whole(shard_size=shard_size)
    target.check(sentence, dtype, lang, tokenized, engine, address, workers)
    bilm = BiLMChoice(bilm) if isinstance(bilm, str) else bilm
    if tokenized is None:
        tokenized = target.format == "hdf5" and lang is None and bilm.saved_pipeline is None
    layers = layers if layers is not None else "all" if target.format == "hdf5" else "mean"
    selection = Selection.of(layers, dtype, sentence)
    if not tokenized and lang is None and bilm.saved_pipeline is None:
        lang = bilm.language  # here, since a process on another machine may not have the card
    settings = ShardSettings(bilm, target.format, selection, lang, tokenized, docs, code, text_field)
    sources = text_files(names, target.path)
    items = read_items(sources, text_column)
    summary = Summary(target.path, target.format)

    def refuse_nothing() -> None:
        if not summary.sentences:
            raise nothing_read(names, summary.blank, summary.skipped, summary.first_skipped)

    if target.single:
        with outputs.output(target.path, CorpusError, [*names, *bilm.files]):
            writer, facts = ShardWriter(settings), ShardFacts(0, target.path.name, 0, "")
            with writer.file(target.path) as write:
                progress(0, 0)
                writer.write(write, items, facts, refuse, progress)
                summary.add(facts)
                refuse_nothing()  # before the file replaces an earlier one
    else:
        # of an input folder that has the output only these files are read
        read = [*(file for file, _ in sources), *bilm.files]
        written = (MANIFEST, SKIPPED, SHARDS)
        with outputs.output(target.path, CorpusError, read, names=written, marks=(MANIFEST,)):
            _embed_into_folder(items, settings, summary, engine, address, workers, shard_size, resume, progress)
        refuse_nothing()
    summary.seconds = time.monotonic() - begun
    return summary


def refuse(item: Item, reason: str) -> NoReturn:
    raise CorpusError(
        f"{item.source}, line {item.line}: {reason}. Correct or remove the line; or give a folder as the output, "
        "for which bad lines are left out and listed."
    )


def _embed_into_folder(
    items: Iterator[Item],
    settings: ShardSettings,
    summary: Summary,
    engine: str,
    address: str | None,
    workers: int | None,
    shard_size: int | None,
    resume: bool,
    progress: OnProgress,
) -> None:
    folder = summary.output
    if (folder / MANIFEST).exists():
        outputs.check_output(folder / MANIFEST, CorpusError, begins=b'{"version"')
    writer = ShardWriter(settings)  # before the folder is made, so that wrong settings leave nothing
    tokenizer = "blanks" if settings.tokenized else settings.lang
    if tokenizer is None and (pipeline := settings.bilm.saved_pipeline):
        tokenizer = os.path.realpath(pipeline) if os.path.exists(pipeline) else pipeline
    decisive = {
        "format": settings.format,
        "layers": [settings.selection.name, *settings.selection.weights, settings.selection.gamma],
        "dtype": settings.selection.dtype,
        "sentence": settings.selection.sentence,
        "tokenizer": tokenizer,
        "docs": settings.docs,
        "text_field": settings.text_field,
        "shard_size": shard_size or shard_bytes(writer.bilm.options),
        "biLM": f"{writer.bilm.fingerprint} {writer.bilm.dtype}",
    }
    # before the folder is made, for the same reason
    with connected(address) if engine == "ray" else nullcontext():
        manifest = Manifest(folder, decisive, resume, shard_size is None)
        progress(0, 0)

        def done(facts: ShardFacts, size: int) -> None:
            manifest.add(facts)
            progress(facts.tokens, size)

        def missing() -> Iterator[Shard]:
            for shard in cut(items, manifest.shard_size):
                summary.shards += 1
                if manifest.is_done(shard.number, shard.digest, shard.real_digest):
                    summary.resumed += 1
                    progress(0, shard.bytes)
                else:
                    yield shard

        try:
            if engine == "local" and (workers or 1) == 1:
                for shard in missing():
                    manifest.add(writer.write_shard(shard, folder / SHARDS, progress))
            else:
                del writer  # the workers have their own
                run = run_cluster if engine == "ray" else run_workers
                run(missing(), settings, workers, folder / SHARDS, done)
        finally:
            with suppress(CorpusError):  # an error before tells more
                remove_leftovers(folder, CorpusError)
        manifest.finish(summary.shards)
        for number in sorted(manifest.facts):
            summary.add(manifest.facts[number])


def find_sentence(output: str | os.PathLike[str], number: int) -> FoundSentence:
    """Return a sentence of what `embed` has written: a file of any format, or a folder with all shards up to it.

    number: counted from 0 over all sentences of the output, in the order of the input.
    Raises CorpusError if there is no such sentence, and ElmoError if the output can't be read.
    """
    path, place, found = expanded(output), number, None
    try:
        if isinstance(number, int | np.integer) and number >= 0:
            if path.is_dir():
                path, place = _shard_of(path, number)
            format = SUFFIXES.get(path.suffix.lower())
            if format is None or not path.is_file():
                raise CorpusError(f"{path}: no output of embed. Expected one of its files, or its folder of shards.")
            found = FORMATS[format].find(path, place)
    except ElmoError:
        raise
    except Exception as error:  # each library has errors of its own
        reason = str(error) or type(error).__name__
        raise CorpusError(
            f"{path}: damaged, cut short, or not written by embed ({reason}). Expected its output: give the same "
            "command again to make it, for a folder with --no-resume."
        ) from error
    if found is None:
        raise CorpusError(f"{output}: no sentence {shown(number)}. Expected a whole number, counted from 0.")
    return found


def _shard_of(folder: Path, number: int) -> tuple[Path, int]:
    lines = (folder / MANIFEST).read_bytes().splitlines()[1:] if (folder / MANIFEST).exists() else []
    shards = sorted((json.loads(line) for line in lines), key=lambda facts: int(facts["shard"]))
    place = number
    for i, facts in enumerate(shards):
        if facts["shard"] != i:
            raise CorpusError(f"{folder}: the shard {i} is missing. Give the same command again, to make it.")
        if place < facts["sentences"]:
            return folder / SHARDS / facts["file"], place
        place -= facts["sentences"]
    raise CorpusError(f"{folder}: {number - place:,} sentences in {len(shards):,} shards, so there is no {number:,}.")
