"""`elmo init-config`: a config that trains components on elmo."""

import sys
import warnings
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import string_to_list
from spacy.cli.init_config import Optimizations

from ..corpus.bilm import BiLMChoice
from ..errors import CommandError, Errors, OtherLanguageWarning
from ..modules.loading import files_of
from ..pretraining.model.files import is_embedded, refuse_new_run
from .shared.bilms import warn_of_language
from .shared.console import escaped, quoted, show_all
from .shared.errors import printing_errors
from .shared.options import Force
from .shared.outputs import STANDARD_OUTPUT, refuse_existing, refuse_inputs, write_text
from .shared.printer import msg
from .task_configs.configs import Files, task_config

# written down, because a look at the factories of all packages would slow down the start of every command
COMPONENTS = (
    "answers, beam_ner, beam_parser, coreference, entailment, entity_linker, morphologizer, ner, parser, "
    "semantic_roles, senter, span_finder, spancat, spancat_singlelabel, tagger, textcat, textcat_multilabel, "
    "trainable_lemmatizer"
)


def model_files(model: str, options_file: Path | None, weight_file: Path | None) -> list[Path]:
    """Return the files of the biLM that --model names. They may be missing.

    Raises CommandError if one of the two files was given too, and another ElmoError if the model is a run that has
    written no biLM yet, or was not downloaded or installed.
    """
    for option, file in (("--options-file", options_file), ("--weight-file", weight_file)):
        if file is not None:
            raise CommandError(Errors.MODEL_BOTH.format(other=option))
    if is_embedded(model):
        return []
    files = [Path(file) for file in files_of(model) if file is not None]
    refuse_new_run(files[0].parent)
    return files


def init_config(
    output_file: Annotated[
        Path, typer.Argument(metavar="OUT", help="The config to write; - is standard output", allow_dash=True)
    ],
    lang: Annotated[
        str | None,
        typer.Option("--lang", "-l", metavar="CODE", help="Code of the language; left out: that of the biLM, or en"),
    ] = None,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            "-p",
            metavar="NAMES",
            help=f"Components to train, in order, separated by commas: {COMPONENTS}, and those of other packages that "
            "are trained on a tok2vec; sentencizer is allowed too, and runs first",
        ),
    ] = "tagger,parser,ner",
    optimize: Annotated[
        Optimizations,
        typer.Option(
            "--optimize",
            "-o",
            help="Sizes of the components' networks; accuracy: ELMo at the output of the networks too",
        ),
    ] = Optimizations.efficiency,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="biLM: its folder, or its name; left out: en_mini, the embedded one"
        ),
    ] = None,
    options_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="options.json of a biLM, in place of --model")
    ] = None,
    weight_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Its weights.hdf5")] = None,
    knowledge_base: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Saved knowledge base, for entity_linker")
    ] = None,
    force: Force = False,
) -> None:
    """Write a config for spacy train with ELMo.

    Each component listens to an elmo pipe.
    Each component has its features, its network and its mix of the biLM's layers. Other settings are spaCy's defaults.
    """
    show_all()
    with printing_errors(), warnings.catch_warnings():
        files = [] if model is None else model_files(model, options_file, weight_file)
        if output_file != STANDARD_OUTPUT:
            refuse_existing(output_file, force)
            kept = [] if knowledge_base is None else list(knowledge_base.glob("*"))
            inputs = (options_file, weight_file, *files, *kept)
            refuse_inputs(output_file, [path for path in inputs if path is not None])
        names = [name.strip() for name in string_to_list(pipeline)]
        warnings.simplefilter("ignore", OtherLanguageWarning)  # said below, in the command's own words
        bilm = BiLMChoice(model, None if options_file is None else str(options_file))
        named = Files(options_file, weight_file, knowledge_base, model)
        config = task_config(lang or bilm.language, names, optimize.value, named)
        if output_file == STANDARD_OUTPUT:
            typer.echo(config.to_str())
        else:
            write_text(config.to_str() + "\n", output_file)
    with redirect_stdout(sys.stderr) if output_file == STANDARD_OUTPUT else nullcontext():
        warn_of_language(bilm, lang)
    if output_file == STANDARD_OUTPUT:
        return
    msg.good(escaped(f"{output_file}: train it with"))
    typer.echo(
        f"python -m spacy train {quoted(output_file)} --paths.train train.spacy --paths.dev dev.spacy --output out"
    )
