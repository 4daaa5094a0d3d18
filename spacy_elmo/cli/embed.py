"""`elmo embed`: the vectors of texts, in one file or in a folder of shards."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from spacy.cli._util import Arg, Opt

from ..allennlp.embedder import BATCH_SIZE, BarSetting, OutputFormat, bar_of, device_of, write_layers
from ..corpus import embedding
from ..corpus.shards import SKIPPED
from ..errors import CommandError, TruncatedWordsWarning
from ..formats.characters import count_truncated
from ..text.files import TextFile, text_files, total_bytes
from ..text.stream import Parser, read_items
from ..text.words import Unusable, line_of
from . import shared
from .console import msg

_OF_ALLENNLP: dict[str | None, OutputFormat] = {None: "all", "all": "all", "top": "top", "mean": "average"}
_KINDS = "Text (a sentence a line), .jsonl, .csv, .conllu, .spacy, also packed: files, folders or patterns; - is stdin"
_LANG = "Language of the tokenizer; HDF5 splits at blanks without it"
_FILE = "File (.hdf5, .parquet, .spacy, .safetensors, .npy), or a folder, which gets shards"
_SHARD = "Bytes of text in a shard; default: for some seconds each"


def embed(
    inputs: list[Path] = Arg(..., metavar="TEXT", help=_KINDS),
    output: Path = Arg(..., metavar="OUT", help=_FILE),
    format_: str | None = Opt(None, "--format", metavar="NAME", help="parquet, hdf5, spacy, safetensors or npy"),
    layers: str | None = Opt(None, metavar="WHICH", help="all, top, mean, or a JSON file with the weights of a mix"),
    dtype: str = Opt("float32", metavar="TYPE", help="Of the values that are written: float32 or float16"),
    sentence: bool = Opt(False, "--sentence", help="Write one vector a sentence, the mean"),
    lang: str | None = Opt(None, "--lang", "-l", metavar="CODE", help=_LANG),
    tokenized: shared.Tokenized = False,
    text_column: shared.TextColumn = None,
    text_field: shared.TextField = None,
    docs: bool = Opt(False, "--docs", help="A text is a document of several sentences"),
    workers: int | None = Opt(None, min=1, metavar="N", help="Processes that make shards; default: 1, or Ray's cores"),
    engine: str = Opt("local", metavar="NAME", help="What runs the processes: local, or ray for several machines"),
    address: str | None = Opt(None, metavar="ADDRESS", help="Of a Ray cluster: auto or host:port"),
    shard_size: int | None = Opt(None, min=1, metavar="N", help=_SHARD),
    resume: bool = Opt(True, "--resume/--no-resume", help="Go on with the shards in OUT, or delete them"),
    quiet: bool = Opt(False, "--quiet", help="Show warnings and errors only"),
    all_: bool = Opt(False, "--all", help="The same as --layers all"),
    top: bool = Opt(False, "--top", help="The same as --layers top: the last one"),
    average: bool = Opt(False, "--average", help="The same as --layers mean"),
    batch_size: int | None = Opt(None, "--batch-size", "-b", min=1, metavar="N", help="HDF5: sentences a batch (64)"),
    use_sentence_keys: bool = Opt(False, "--use-sentence-keys", help="HDF5: name the datasets by the sentences"),
    forget_sentences: bool = Opt(False, "--forget-sentences", help="HDF5: leave out the dataset sentence_to_index"),
    gpu_id: shared.GpuId = -1,
    model: str | None = Opt(None, metavar="MODEL", help=shared.MODEL),
    options_file: str | None = Opt(None, metavar="FILE", help="options.json of a biLM"),
    weight_file: str | None = Opt(None, metavar="FILE", help="weights.hdf5 of a biLM"),
    pipeline: str | None = Opt(None, metavar="PIPELINE", help="Saved pipeline whose biLM is used: folder or package"),
    pipe: shared.PipeName = None,
    code: shared.Code = None,
    stateful: bool = Opt(False, "--stateful", help="HDF5: carry the state from batch to batch, as AllenNLP does"),
    file_friendly_logging: bool = Opt(False, "--file-friendly-logging", help="HDF5: show progress as lines"),
    vocab_path: str | None = Opt(None, "--vocab-path", hidden=True),
    include_package: list[str] | None = Opt(None, "--include-package", hidden=True),
    precision: str = Opt("float32", metavar="TYPE", help="Of the matrix multiplications: float32, bfloat16 or auto"),
) -> None:
    """A folder gets shards, in Parquet unless --format says otherwise. A command that was stopped goes on with the
    shards that are missing. HDF5 is one file with a dataset for each sentence, (layers, tokens, width), named "0", "1"
    ... as by AllenNLP's elmo command. docs/corpora.md tells more.
    """
    if vocab_path is not None or include_package:
        msg.warn("--vocab-path and --include-package do nothing. --code FILE has the functions that a pipeline needs")
    target = embedding.Output.of(output, format_, shard_size is not None)
    flags = {"--all": all_ and "all", "--top": top and "top", "--average": average and "mean", "--layers": layers}
    given = {option: value for option, value in flags.items() if value}
    if len(given) > 1:
        both = " and ".join(given)
        raise CommandError(f"{both} were given together. Expected one of --layers, --all, --top and --average.")
    if given and not layers and format_ is None and shard_size is None and not (output.suffix or output.is_dir()):
        raise CommandError(
            f"{output}: the end of its name tells no format, and {next(iter(given))} was given, as in AllenNLP. "
            "Expected --format hdf5 for one HDF5 file, or --format parquet for a folder of shards."
        )
    chosen = next(iter(given.values()), None)
    device = str(device_of(gpu_id))
    bilm = shared.bilm_of(model, pipe, code, options_file, weight_file, pipeline, device, precision)
    language = bilm.named_language
    if lang not in (None, "xx", language) and language not in (None, "xx"):
        msg.warn(f"--lang is {lang}, but the biLM was trained on the language {language}. Give --model one of {lang}.")
    sources, n_empty = text_files(inputs, output), 0
    if target.format == "hdf5" and target.single and chosen in _OF_ALLENNLP:
        target.check(sentence, dtype, lang, tokenized, engine, address, workers)
        shared.hold(output, [*inputs, *bilm.files])
        blanks = tokenized or (lang is None and bilm.saved_pipeline is None)
        parser = Parser(None if blanks else bilm.tokenizer(lang), docs, text_field)
        names, rows, n_empty = _rows(sources, parser, text_column, by_line=blanks and not docs)
        if not rows:
            raise CommandError(f"{', '.join(map(str, inputs))}: empty. Expected text, one sentence a line.")
        embedder, form = bilm.load(), _OF_ALLENNLP[chosen]
        n_cut = sum(count_truncated(row, embedder.options.max_characters) for row in rows)
        shown: BarSetting = not quiet and ("lines" if file_friendly_logging else True)
        found = shared.embedded(embedder, rows, batch_size or BATCH_SIZE, stateful)
        with warnings.catch_warnings(), bar_of(shown, iterable=found, total=len(rows), unit=" sentences") as bar:
            warnings.simplefilter("ignore", TruncatedWordsWarning)  # all of them are told at the end
            write_layers(output, names, bar, form, forget_sentences, use_sentence_keys)
        told = f"{len(rows):,} sentences, {form} of {embedder.options.layers} layers"
    else:
        for_hdf5 = {"--batch-size": batch_size, "--use-sentence-keys": use_sentence_keys, "--stateful": stateful}
        for_hdf5["--forget-sentences"] = forget_sentences
        for option in [option for option, value in for_hdf5.items() if value]:
            raise CommandError(
                f"{option} is for one HDF5 file with all layers, the top one or their mean, as AllenNLP "
                "writes it. Leave it out, or give an output whose name ends in .hdf5, or add --format hdf5."
            )
        total = total_bytes([source.path for source in sources])
        with shared.shown_bar(total=total, unit="B", unit_scale=True, disable=quiet) as bar:
            summary = embedding.embed(
                inputs,
                output,
                format=format_,
                layers=chosen,
                dtype=dtype,
                sentence=sentence,
                lang=lang,
                tokenized=tokenized or None,
                docs=docs,
                text_column=text_column,
                text_field=text_field,
                bilm=bilm,
                workers=workers,
                engine=engine,
                address=address,
                shard_size=shard_size,
                resume=resume,
                code=code,
                progress=lambda _, size: bar.update(size),
            )
            bar.total = bar.total and bar.n  # it may have been an estimate
        n_cut = summary.cut_words
        told = f"{summary.documents:,} documents, {summary.sentences:,} sentences, {summary.tokens:,} tokens"
        if summary.shards:
            before = f", {summary.resumed:,} of them made before" if summary.resumed else ""
            told += f", {summary.shards:,} shards of {summary.format}{before}"
        told += f", in {summary.seconds:,.1f} seconds"
        if summary.skipped:
            listed = summary.output / SKIPPED
            msg.warn(f"lines that can't be used, left out and listed in {listed}: {summary.skipped:,}")
    if n_cut:
        msg.warn(f"tokens with more bytes than the biLM reads, of which it did not see the rest: {n_cut:,}")
    if n_empty:
        numbered = "" if use_sentence_keys else "; the datasets are numbered without them"
        msg.warn(f"texts without a word, such as empty lines, which were left out: {n_empty:,}{numbered}")
    if not quiet:
        msg.good(f"{output}: {told}")


def _rows(
    sources: Sequence[TextFile], parser: Parser, text_column: str | None, by_line: bool
) -> tuple[list[str], list[list[str]], int]:
    """Return what names the sentences of files, their words, and how many texts have no word."""
    names, rows, n_empty = list[str](), list[list[str]](), 0
    for item in read_items(sources, text_column):
        is_line = by_line and item.kind == "text"
        try:
            document = parser(item)
        except Unusable as error:
            embedding.refuse(item, str(error))
        if document is None and is_line:
            embedding.refuse(item, "empty, and the vectors are numbered by lines. With --lang CODE it is left out")
        if document is None:
            n_empty += 1
            continue
        rows += document.sentences
        names += [document.text.strip()] if is_line and document.text else map(line_of, document.sentences)
    return names, rows, n_empty
