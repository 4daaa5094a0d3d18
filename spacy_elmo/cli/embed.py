"""`elmo embed`: the vectors of a text, as HDF5."""

import warnings
from pathlib import Path
from typing import Annotated, cast

import typer
from spacy.cli._util import import_code
from wasabi import msg

from ..allennlp.embedder import ElmoEmbedder, OutputFormat
from ..errors import CommandError, Errors, TruncatedWordsWarning
from ..formats.sentences import read_sentences
from ..modules.loading import files_of, load_arrays
from ..modules.precision import Precision
from .shared.errors import printing_errors
from .shared.inputs import is_pipeline, open_text, pipeline_weights, source_of
from .shared.options import Code, PipeName
from .shared.outputs import refuse_inputs, refuse_stream


def output_format(*, all_: bool, top: bool, average: bool) -> OutputFormat:
    """Return the format of the options --all, --top and --average. Raises CommandError if several are set."""
    chosen: dict[OutputFormat, bool] = {"all": all_, "top": top, "average": average}
    names = [name for name, value in chosen.items() if value]
    if len(names) > 1:
        raise CommandError(Errors.EMBED_FORMATS.format(got=" and ".join(f"--{name}" for name in names)))
    return names[0] if names else "all"


def load_embedder(
    model: str | None,
    options_file: str | None,
    weight_file: str | None,
    pipeline: str | None,
    pipe: str | None,
    gpu: int,
    stateful: bool,
    precision: str,
) -> ElmoEmbedder:
    """Return an embedder of a named model, of two files, of a saved pipeline, or of the embedded biLM.

    model: en_mini, or a folder or package that `is_pipeline` can tell; None: the other arguments say which.
    options_file, weight_file: the official files.
    pipeline: folder or package of a saved pipeline.
    pipe: name of the elmo pipe if the pipeline has several.
    gpu: number of the GPU; -1: the CPU.
    stateful, precision: as for ElmoEmbedder.

    Raises ElmoError if they exclude each other, or can't be used.
    """
    known = cast(Precision, precision)  # or refused
    others = {"--pipeline": pipeline, "--options-file": options_file, "--weight-file": weight_file}
    present = [name for name, value in others.items() if value is not None]
    if model is not None and present:
        raise CommandError(Errors.MODEL_BOTH.format(other=present[0]))
    if pipeline is not None and len(present) > 1:
        raise CommandError(Errors.PIPE_BOTH.format(other=present[1]))
    if model is not None and is_pipeline(model):
        pipeline = model
    if pipeline is None:
        if pipe is not None:
            raise CommandError(Errors.PIPE_ALONE.format(got=pipe))
        if model is None:
            return ElmoEmbedder(options_file, weight_file, gpu, stateful=stateful, precision=known)
        options, arrays = load_arrays(bilm=model)
    else:
        options, arrays = pipeline_weights(pipeline, pipe)
    return ElmoEmbedder.from_arrays(options, arrays, gpu, stateful=stateful, precision=known)


def embed(
    input_file: Annotated[
        Path,
        typer.Argument(metavar="TEXT", help="Text: one sentence a line, words separated by blanks; - is stdin"),
    ],
    output_file: Annotated[Path, typer.Argument(metavar="OUT", help="HDF5 file to write")],
    all_: Annotated[bool, typer.Option("--all", help="Write all layers (the default)")] = False,
    top: Annotated[bool, typer.Option("--top", help="Write the last layer only")] = False,
    average: Annotated[bool, typer.Option("--average", help="Write the mean of the layers")] = False,
    batch_size: Annotated[
        int, typer.Option("--batch-size", "-b", min=1, metavar="N", help="Sentences that run together")
    ] = 64,
    use_sentence_keys: Annotated[
        bool, typer.Option("--use-sentence-keys", help="Name the datasets by the sentences, not by numbers from 0 on")
    ] = False,
    forget_sentences: Annotated[
        bool, typer.Option("--forget-sentences", help="Leave out the dataset sentence_to_index")
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
        bool, typer.Option("--stateful", help="Carry the LSTMs' state from batch to batch, as AllenNLP does")
    ] = False,
    file_friendly_logging: Annotated[
        bool, typer.Option("--file-friendly-logging", help="Show progress as lines, at most one in ten seconds")
    ] = False,
    vocab_path: Annotated[str | None, typer.Option("--vocab-path", hidden=True)] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="TYPE",
            help="Of the matrix multiplications: float32, bfloat16 (faster, less exact), auto (bfloat16 if available)",
        ),
    ] = "float32",
) -> None:
    """Write the vectors of a text as HDF5.

    One dataset for each sentence, (layers, tokens, width), named "0", "1" ... as by AllenNLP's elmo command. Every line
    must have a sentence.
    """
    import_code(code)
    source = source_of(input_file)
    if vocab_path is not None:
        msg.warn(Errors.EMBED_VOCAB_PATH.format(got=vocab_path))
    with printing_errors(Errors.EMBED_STOPPED.format(path=output_file)):
        refuse_stream(output_file)
        chosen = output_format(all_=all_, top=top, average=average)
        files = (options_file, weight_file) if model is None else files_of(model)
        refuse_inputs(output_file, [input_file, *(Path(name) for name in files if name)])
        with open_text(input_file) as file:
            lines = read_sentences(file, source, keys=use_sentence_keys)
        if not lines:
            raise CommandError(Errors.EMBED_NO_SENTENCES.format(source=source))
        gpu = gpu_id if cuda_device is None else cuda_device
        embedder = load_embedder(model, options_file, weight_file, pipeline, pipe, gpu, stateful, precision)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncatedWordsWarning)  # all of them are told at the end
            embedder.embed_lines(
                lines,
                output_file,
                chosen,
                batch_size,
                forget_sentences,
                use_sentence_keys,
                progress="lines" if file_friendly_logging else True,
            )
    if embedder.n_truncated:
        limit = embedder.options.max_characters - 2
        msg.warn(
            f"tokens with more than {limit} bytes, of which the biLM did not see the rest: {embedder.n_truncated:,}"
        )
    msg.good(f"{output_file}: {len(lines):,} sentences, {chosen} of {embedder.options.layers} layers")
