"""`elmo embed`: the vectors of texts, in one file or in a folder of shards."""

from __future__ import annotations

import io
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from spacy.cli._util import import_code
from tqdm import tqdm

from ..allennlp.embedder import OutputFormat, device_of
from ..errors import CommandError, TruncatedWordsWarning
from ..formats.atomic import remove_leftovers_of
from ..formats.text import kind_of, read_sentences
from ..modules.loading import OPTIONS, WEIGHTS, find_bilm
from .console import msg, telling_if_stopped
from .shared import (
    STANDARD_INPUT,
    STANDARD_OUTPUT,
    Code,
    GpuId,
    OldLanguage,
    PipeName,
    bilm_of,
    check_output,
    embedder_of,
    shown_bar,
    source_of,
    warn_of_language,
)

if TYPE_CHECKING:
    from ..corpus.bilm import BiLMChoice
    from ..corpus.manifest import Summary
    from ..corpus.reading import Parser


def embed(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEXT",
            help="Files, folders or patterns: text (a sentence a line), .jsonl, .conllu, .spacy, also packed as .gz, "
            ".xz or .zst; - is stdin",
        ),
    ],
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="File to write (.hdf5, .parquet, .spacy, .safetensors, .npy), or a folder, which gets shards",
        ),
    ],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="parquet, hdf5, spacy, safetensors or npy; left out: as OUT ends, or parquet",
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="all, top, mean, or a JSON file with the weights of a mix; left out: all for HDF5, else mean",
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="Of the values that are written: float32 or float16")
    ] = "float32",
    sentence: Annotated[bool, typer.Option("--sentence", help="Write one vector a sentence, the mean")] = False,
    lang: Annotated[
        str | None,
        typer.Option(
            "--lang",
            "-l",
            metavar="CODE",
            help="Language of the tokenizer; left out: that of the pipeline or biLM. HDF5 splits at blanks without it",
        ),
    ] = None,
    language: OldLanguage = None,
    tokenized: Annotated[bool, typer.Option("--tokenized", help="The words of texts are separated by blanks")] = False,
    docs: Annotated[bool, typer.Option("--docs", help="A text is a document of several sentences")] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Processes that make shards; left out: 1, or with Ray one for each core"),
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="What runs the processes: local, or ray for several machines")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Of a Ray cluster: auto or host:port; left out: that of this machine, or a new one"
        ),
    ] = None,
    shard_size: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Bytes of text in a shard; left out: 1,000,000, and HDF5 or npy is one file"
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on with the shards in OUT, or delete them")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show warnings and errors only")] = False,
    all_: Annotated[bool, typer.Option("--all", help="The same as --layers all")] = False,
    top: Annotated[bool, typer.Option("--top", help="The same as --layers top: the last one")] = False,
    average: Annotated[bool, typer.Option("--average", help="The same as --layers mean")] = False,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", "-b", min=1, metavar="N", help="HDF5: sentences that run together, 64")
    ] = None,
    use_sentence_keys: Annotated[
        bool, typer.Option("--use-sentence-keys", help="HDF5: name the datasets by the sentences, not by numbers")
    ] = False,
    forget_sentences: Annotated[
        bool, typer.Option("--forget-sentences", help="HDF5: leave out the dataset sentence_to_index")
    ] = False,
    gpu_id: GpuId = -1,
    cuda_device: Annotated[int | None, typer.Option("--cuda-device", min=-1, hidden=True)] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Saved pipeline (folder or package), folder of a biLM or of a pretraining run, or the name of a biLM",
        ),
    ] = None,
    options_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="options.json of a biLM; left out: the embedded one")
    ] = None,
    weight_file: Annotated[str | None, typer.Option(metavar="FILE", help="weights.hdf5 of a biLM")] = None,
    pipeline: Annotated[
        str | None, typer.Option(metavar="PIPELINE", help="Saved pipeline whose biLM is used: folder or package")
    ] = None,
    pipe: PipeName = None,
    code: Code = None,
    stateful: Annotated[
        bool, typer.Option("--stateful", help="HDF5: carry the LSTMs' state from batch to batch, as AllenNLP does")
    ] = False,
    file_friendly_logging: Annotated[
        bool, typer.Option("--file-friendly-logging", help="Show progress as lines, at most one in ten seconds")
    ] = False,
    vocab_path: Annotated[str | None, typer.Option("--vocab-path", hidden=True)] = None,
    include_package: Annotated[list[str] | None, typer.Option("--include-package", hidden=True)] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="TYPE",
            help="Of the matrix multiplications: float32, bfloat16 (faster, less exact), auto (bfloat16 if available)",
        ),
    ] = "float32",
) -> None:
    """Write the vectors of texts.

    A folder gets shards, in Parquet unless --format says otherwise. A command that was stopped goes on with the shards
    that are missing. HDF5 is one file with a dataset for each sentence, (layers, tokens, width), named "0", "1" ... as
    by AllenNLP's elmo command. docs/corpora.md tells more.
    """
    import_code(code)
    if vocab_path is not None:
        msg.warn(f"--vocab-path is not used, as in AllenNLP: nothing is written to {vocab_path}")
    if include_package:
        msg.warn(
            f"--include-package is not used: {', '.join(include_package)} is not imported. If a saved pipeline "
            "needs functions of yours, give their file with --code"
        )
    from ..corpus.embedding import Output, check_processes
    from ..corpus.embedding import embed as embed_corpus
    from ..corpus.reading import Parser, check_tokenizer, sources_of, total_bytes

    if output == STANDARD_OUTPUT:
        raise CommandError(
            "- as the output means standard output, to which no vectors can be written. Expected the name of a file."
        )
    target = Output.of(output, format_, shard_size is not None)
    stopped = f"stopped. The finished shards stay in {output}: the same command goes on with the others."
    if target.single:
        stopped = f"stopped. {output} was not written. If there was a file of that name before, it is unchanged."
    with telling_if_stopped(stopped):
        lang = lang or language
        told_format = format_ is not None or shard_size is not None
        flags = {"--all": all_, "--top": top, "--average": average}
        chosen = _layers_of(output, layers, told_format, flags)
        gpu = gpu_id if cuda_device is None else cuda_device
        bilm = bilm_of(
            model,
            pipe,
            options_file=options_file,
            weight_file=weight_file,
            pipeline=pipeline,
            device=str(device_of(gpu)),
            precision=precision,
        )
        warn_of_language(bilm, lang)
        files = sources_of(inputs, output)
        if target.single:
            folder = None if model is None else find_bilm(model)
            named = [options_file, weight_file] if folder is None else [folder / OPTIONS, folder / WEIGHTS]
            check_output(output, [*files, *(Path(name) for name in named if name)])
            remove_leftovers_of(output, CommandError)
        if target.format == "hdf5" and target.single and chosen in _OF_ALLENNLP:
            check_processes(engine, address, workers)
            target.check(sentence, dtype, engine == "ray" or (workers or 1) > 1)
            check_tokenizer(lang, tokenized)
            blanks = tokenized or (lang is None and bilm.saved_pipeline is None)
            _embed_as_allennlp(
                files,
                output,
                _OF_ALLENNLP[chosen],
                None if blanks and not docs else Parser(None if blanks else bilm.tokenizer(lang), docs),
                bilm,
                gpu,
                batch_size=batch_size or 64,
                keys=use_sentence_keys,
                forget_sentences=forget_sentences,
                stateful=stateful,
                lines_of_progress=file_friendly_logging,
                quiet=quiet,
            )
            return
        for option, value in {
            "--batch-size": batch_size,
            "--use-sentence-keys": use_sentence_keys,
            "--forget-sentences": forget_sentences,
            "--stateful": stateful,
        }.items():
            if value:
                raise CommandError(
                    f"{option} is for one HDF5 file with all layers, the top one or their mean, as AllenNLP "
                    "writes it. Leave it out, or give an output whose name ends in .hdf5, or add --format hdf5."
                )
        with _corpus_bar(None if quiet else total_bytes(files), quiet) as progress:
            summary = embed_corpus(
                inputs,
                output,
                format=format_,
                layers=chosen,
                dtype=dtype,
                sentence=sentence,
                lang=lang,
                tokenized=tokenized or None,
                docs=docs,
                bilm=bilm,
                workers=workers,
                engine=engine,
                address=address,
                shard_size=shard_size,
                resume=resume,
                code=code,
                progress=progress,
            )
        _show_summary(summary, quiet)


_OF_ALLENNLP: dict[str | None, OutputFormat] = {None: "all", "all": "all", "top": "top", "mean": "average"}


def _layers_of(output: Path, layers: str | None, told_format: bool, flags: dict[str, bool]) -> str | None:
    """Return what --layers, --all, --top and --average say; None if none was given.

    told_format: whether --format or --shard-size was given.
    flags: AllenNLP's options, and whether they were given. Its command writes HDF5 whatever the name of the output is.
    """
    given = [option for option, value in flags.items() if value]
    if len(given) > 1 or (given and layers is not None):
        raise CommandError(
            f"{' and '.join(given + ['--layers'] * (layers is not None))} were given together. Expected one of "
            "--layers, --all, --top and --average: leave out the others."
        )
    if given and not told_format and not output.suffix and not output.is_dir():
        raise CommandError(
            f"{output}: the end of its name tells no format, and {given[0]} was given, as in AllenNLP, whose command "
            "always writes one HDF5 file. Expected --format hdf5 for such a file. For a folder of shards in "
            "Parquet add --format parquet."
        )
    return {"--all": "all", "--top": "top", "--average": "mean"}[given[0]] if given else layers


def _embed_as_allennlp(
    files: list[Path],
    output: Path,
    layers: OutputFormat,
    parser: Parser | None,
    bilm: BiLMChoice,
    gpu: int,
    *,
    batch_size: int,
    keys: bool,
    forget_sentences: bool,
    stateful: bool,
    lines_of_progress: bool,
    quiet: bool,
) -> None:
    """Write the layers of texts to one HDF5 file, and print what was written.

    parser: makes sentences of the texts; None: a line of plain text is a sentence, whose words are separated by blanks.
    """
    found = [_lines(file, parser, keys) for file in files]
    lines = [line for sentences, _ in found for line in sentences]
    if not lines:
        raise CommandError(
            f"{', '.join(map(source_of, files))}: empty. Expected text, one sentence a line, words separated by blanks."
        )
    embedder = embedder_of(bilm, gpu, stateful)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncatedWordsWarning)  # all of them are told at the end
        embedder.embed_lines(
            lines,
            output,
            layers,
            batch_size,
            forget_sentences,
            keys,
            progress=False if quiet else "lines" if lines_of_progress else True,
        )
    if embedder.n_truncated:
        limit = embedder.options.max_characters - 2
        msg.warn(
            f"tokens with more than {limit} bytes, of which the biLM did not see the rest: {embedder.n_truncated:,}"
        )
    empty = sum(left_out for _, left_out in found)
    if empty:
        msg.warn(
            f"texts without a word, such as empty lines, which were left out: {empty:,}"
            + ("" if keys else "; the datasets are numbered without them")
        )
    if not quiet:
        msg.good(f"{output}: {len(lines):,} sentences, {layers} of {embedder.options.layers} layers")


def _lines(file: Path, parser: Parser | None, keys: bool) -> tuple[list[str], int]:
    """Return a file's sentences, words separated by blanks, and how many of its texts have no word."""
    from ..corpus.reading import Parser, read_items, standard_input, warn_of_json

    if parser is None and file == STANDARD_INPUT:
        text = io.TextIOWrapper(standard_input(), encoding="utf-8-sig")
        try:
            lines = read_sentences(text, source_of(file), keys=keys)
        finally:
            text.detach()  # otherwise it would close standard input
        warn_of_json("".join(lines[:1]))
        return lines, 0
    if parser is None and file.suffix == kind_of(file) and file.suffix not in (".jsonl", ".conllu", ".spacy"):
        with file.open(encoding="utf-8-sig") as lines_of_text:
            return read_sentences(lines_of_text, str(file), keys=keys), 0  # none may be empty
    parser = Parser(None, docs=False) if parser is None else parser
    texts = list(read_items([file]))
    documents = list(parser.documents(texts))
    lines = [" ".join(sentence.tokens) for document in documents for sentence in document.sentences]
    return lines, len(texts) - len(documents)


@contextmanager
def _corpus_bar(total: int | None, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show the bytes of text that are done, the time left, and the tokens a second.

    total: bytes of text, perhaps an estimate; None: they are not known, so the time left isn't either.

    Yields the function that moves the bar.
    """
    bar: tqdm[None] | None = None
    begun, done = time.monotonic(), 0

    def update(tokens: int, size: int) -> None:
        nonlocal bar, done
        if quiet or not sys.stderr:
            return
        if bar is None:  # not before, since the settings may be wrong
            bar = shown_bar(total=total, unit="B", unit_scale=True)
        done += tokens
        rate = done / max(1e-9, time.monotonic() - begun)
        bar.set_postfix_str(f"{done:,} tokens, {rate:,.0f} tokens/s", refresh=False)
        if bar.total is not None:
            bar.total = max(bar.total, bar.n + size)  # the total may be an estimate
        bar.update(size)

    try:
        yield update
        if bar is not None and bar.total is not None:
            bar.total = bar.n  # closing the bar shows it
    finally:
        if bar is not None:
            bar.close()


def _show_summary(summary: Summary, quiet: bool) -> None:
    """Print what was embedded; only the warnings if `quiet`."""
    from ..corpus.manifest import SKIPPED

    if summary.skipped:
        listed = summary.output / SKIPPED
        msg.warn(f"lines that can't be used, left out and listed in {listed}: {summary.skipped:,}")
    if summary.cut_words:
        msg.warn(f"tokens with more bytes than the biLM reads, of which it did not see the rest: {summary.cut_words:,}")
    if quiet:
        return
    counts = {"documents": summary.documents, "sentences": summary.sentences, "tokens": summary.tokens}
    parts = [_counted(n, name) for name, n in counts.items()]
    if summary.shards:
        before = f", {summary.resumed:,} of them made before" if summary.resumed else ""
        parts.append(f"{_counted(summary.shards, 'shards')} of {summary.format}{before}")
    msg.good(f"{summary.output}: {', '.join(parts)}, in {summary.seconds:,.1f} seconds")


def _counted(n: int, name: str) -> str:
    return f"{n:,} {name if n != 1 else name[:-1]}"
