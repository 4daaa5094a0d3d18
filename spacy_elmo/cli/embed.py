"""`elmo embed`: the vectors of texts, in one file or in a folder of shards."""

from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import import_code

from ..allennlp.devices import device_of
from ..allennlp.embedder import OutputFormat
from ..corpus.embedding import check_processes
from ..corpus.embedding import embed as embed_corpus
from ..corpus.output import Output
from ..corpus.parsing import Parser, check_tokenizer
from ..corpus.reading import sources_of, total_bytes
from ..errors import CommandError, Errors
from ..formats.folders.leftovers import remove_leftovers_of
from ..modules.loading import files_of
from .shared.allennlp_embedding import AllenNLPOptions, embed_as_allennlp
from .shared.bilms import bilm_of, warn_of_language
from .shared.errors import printing_errors
from .shared.options import Code, OldLanguage, PipeName
from .shared.outputs import refuse_inputs, refuse_stream
from .shared.printer import msg
from .views.corpus import corpus_bar, show_summary

_OF_ALLENNLP: dict[str | None, OutputFormat] = {None: "all", "all": "all", "top": "top", "mean": "average"}


def layers_of(layers: str | None, *, all_: bool, top: bool, average: bool) -> str | None:
    """Return what --layers, --all, --top and --average say; None if none was given.

    Raises CommandError if several are set.
    """
    names = [("--all", "all", all_), ("--top", "top", top), ("--average", "mean", average)]
    given = [(option, name) for option, name, value in names if value]
    if layers is not None:
        given.append(("--layers", layers))
    if len(given) > 1:
        raise CommandError(Errors.EMBED_FORMATS.format(got=" and ".join(option for option, _ in given)))
    return given[0][1] if given else None


def refuse_untold_format(output: Path, format_: str | None, *, all_: bool, top: bool, average: bool) -> None:
    """Raise CommandError if AllenNLP's command may be meant, which writes HDF5 whatever the name of the output is."""
    given = "--all" if all_ else "--top" if top else "--average" if average else None
    if given and format_ is None and not output.suffix and not output.is_dir():
        raise CommandError(Errors.EMBED_NO_FORMAT.format(path=output, option=given))


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
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", min=-1, metavar="N", help="Number of the GPU; -1: the CPU")
    ] = -1,
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
        msg.warn(Errors.EMBED_VOCAB_PATH.format(got=vocab_path))
    if include_package:
        msg.warn(Errors.EMBED_INCLUDE_PACKAGE.format(got=", ".join(include_package)))
    with printing_errors():
        refuse_stream(output)
        target = Output.of(output, format_, shard_size is not None)
    stopped = Errors.EMBED_STOPPED if target.single else Errors.CORPUS_STOPPED
    with printing_errors(stopped.format(path=output)):
        lang = lang or language
        chosen = layers_of(layers, all_=all_, top=top, average=average)
        if shard_size is None:
            refuse_untold_format(output, format_, all_=all_, top=top, average=average)
        gpu = gpu_id if cuda_device is None else cuda_device
        bilm = bilm_of(model, options_file, weight_file, pipeline, pipe, str(device_of(gpu)), precision)
        warn_of_language(bilm, lang)
        files = sources_of(inputs, output)
        if target.single:
            named = (options_file, weight_file) if model is None else files_of(model)
            refuse_inputs(output, [*files, *(Path(name) for name in named if name)])
            remove_leftovers_of(output, CommandError)
        allennlp = AllenNLPOptions(batch_size, use_sentence_keys, forget_sentences, stateful)
        if target.format == "hdf5" and target.single and chosen in _OF_ALLENNLP:
            check_processes(engine, address, workers)
            target.check(sentence, dtype, engine == "ray" or (workers or 1) > 1)
            check_tokenizer(lang, tokenized)
            blanks = tokenized or (lang is None and bilm.saved_pipeline is None)
            parser = None if blanks and not docs else Parser(None if blanks else bilm.tokenizer(lang), docs)
            embed_as_allennlp(
                files,
                output,
                _OF_ALLENNLP[chosen],
                parser,
                bilm,
                gpu,
                allennlp,
                lines_of_progress=file_friendly_logging,
                quiet=quiet,
            )
            return
        allennlp.refuse()
        with corpus_bar(None if quiet else total_bytes(files), quiet) as progress:
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
        show_summary(summary, quiet)
