"""What several commands need: options, texts to read, files to write, progress, and the biLM that options name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from tqdm import tqdm

from ..allennlp.embedder import SECONDS, ElmoEmbedder, Lines
from ..errors import EMBED_SAME, FILE_NOT_REGULAR, PATH_FOLDER, CommandError
from ..formats.atomic import is_output, replacing, writing
from ..formats.names import PUBLISHED, is_hidden
from ..modules.loading import Precision, can_name_bilm, unknown_bilm_error
from .console import msg

if TYPE_CHECKING:
    from ..corpus.bilm import BiLMChoice
    from ..pretraining.text import Report

Force = Annotated[bool, typer.Option("--force", "-F", help="Replace what exists")]
Json = Annotated[bool, typer.Option("--json", "-j", help="Print JSON only")]
Code = Annotated[
    Path | None,
    typer.Option("--code", "-c", metavar="FILE", help="Python file with functions that a saved pipeline needs"),
]
TextLanguage = Annotated[
    str | None,
    typer.Option(
        "--lang",
        "-l",
        metavar="CODE",
        help="spaCy language that tokenises the text; default: words are separated by blanks",
    ),
]
OldLanguage = Annotated[str | None, typer.Option("--language", hidden=True)]  # what --lang was called before
GpuId = Annotated[int, typer.Option("--gpu-id", "-g", min=-1, metavar="N", help="Number of the GPU; -1: the CPU")]
PipeName = Annotated[
    str | None, typer.Option("--pipe", metavar="NAME", help="Name of the elmo pipe if the pipeline has several")
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Folder of a biLM or of a pretraining run, saved pipeline (folder or package), or the name of a biLM",
    ),
]

STANDARD_INPUT = STANDARD_OUTPUT = Path("-")
WIDEST = 120  # characters of a column with sentences


def folder_argument(value: str) -> Path:
    """Return the path of a folder, which may be missing. Raises BadParameter if it is a file."""
    path = Path(value)
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(PATH_FOLDER.format(path=path))
    return path


def source_of(path: Path) -> str:
    """Return what messages call a text."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def sentences_in(path: Path, language: str | None, report: Report) -> Iterator[list[str]]:
    """Yield the words of each sentence of a text.

    path: a file, a folder or a pattern; "-" is standard input, one sentence a line.
    language, report: as in `read_sentences`, which also tells the errors.
    """
    from ..corpus.reading import standard_input
    from ..pretraining.text import read_sentences, read_stream

    if path == STANDARD_INPUT:
        return read_stream(standard_input(), source_of(path), language, report)
    return read_sentences(path, language, report)


def check_output(output: Path, inputs: Iterable[Path] = (), *, force: bool = True) -> None:
    """Raise CommandError if a file can't be written, before the work on it begins.

    inputs: files that are read, which it may not be.
    force: whether a file that exists is replaced.
    """
    if output.exists():
        if any(path.exists() and output.samefile(path) for path in inputs):
            raise CommandError(EMBED_SAME.format(path=output))
        if not output.is_file():
            raise CommandError(FILE_NOT_REGULAR.format(path=output, expected="the name of a file to write"))
        if is_output(output):
            raise CommandError(
                f"{output}: standard output or standard error goes to it. Expected the name of another file."
            )
        if not force:
            raise CommandError(f"{output}: exists. Give another file, or add --force to replace it.")
    if not output.parent.is_dir():
        raise CommandError(f"{output}: can't be written, because the folder {output.parent} does not exist.")


def refuse_in_model(output: Path, model: str | os.PathLike[str]) -> None:
    """Raise ElmoError if a file to write is in a folder of a biLM or of its run. model: a folder, or a name."""
    from ..pretraining.language_model import folders_of

    for folder in folders_of(model):
        if Path(os.path.realpath(output)).is_relative_to(folder):
            raise CommandError(
                f"{output}: the file to write is in {folder}, which is the folder of the model, or that of the "
                "run that made it. Expected a place outside: give another name."
            )


def write_text(text: str, path: Path) -> None:
    """Write a text file in UTF-8, atomically. Raises CommandError if that fails."""
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        temporary.write_text(text, encoding="utf8")


# what tqdm fills in; n_fmt, total_fmt and rate_fmt are short forms of the numbers
_LINE = "{desc}{n_fmt} of {total_fmt}{unit} ({percentage:.0f}%), {rate_fmt}, {remaining} left{postfix}"
_LINE_WITHOUT_TOTAL = "{desc}{n_fmt}{unit}, {rate_fmt}{postfix}"


def shown_bar(**options: Any) -> tqdm[None]:
    """Return a bar on a terminal, what writes a line in ten seconds in a file, or nothing if standard error is closed.

    options: of tqdm.
    """
    if not sys.stderr:
        return tqdm(disable=True, **options)
    if sys.stderr.isatty():
        return tqdm(file=sys.stderr, **options)
    if "desc" in options:
        options["desc"] += ": "  # tqdm adds it to its own lines only
    line = _LINE_WITHOUT_TOTAL if options.get("total") is None else _LINE
    return tqdm(file=Lines(sys.stderr), mininterval=SECONDS, maxinterval=SECONDS, bar_format=line, **options)


def bilm_of(
    model: str | None,
    pipe: str | None = None,
    *,
    options_file: str | None = None,
    weight_file: str | None = None,
    pipeline: str | None = None,
    device: str = "cpu",
    precision: str = "float32",
) -> BiLMChoice:
    """Return which biLM the options name.

    Raises CommandError if they exclude each other, or if `model` is the name of nothing, and SettingsError if something
    in the current folder hides the biLM of that name.
    """
    from ..corpus.bilm import BiLMChoice

    others = {"--pipeline": pipeline, "--options-file": options_file, "--weight-file": weight_file}
    present = [name for name, value in others.items() if value is not None]
    if model is not None and present:
        raise CommandError(
            f"--model and {present[0]} were given. Expected one of them: leave out {present[0]}, or --model."
        )
    if pipeline is not None and len(present) > 1:
        raise CommandError(
            f"--pipeline and {present[1]} were given. Expected one of them, because a pipeline has its own biLM: "
            f"leave out {present[1]}."
        )
    # the precision is refused when it is used
    choice = BiLMChoice(model, options_file, weight_file, pipe, pipeline, device, cast(Precision, precision))
    if model is not None and choice.saved_pipeline is None and not can_name_bilm(model):
        if is_hidden(model):
            raise unknown_bilm_error(model)
        raise CommandError(
            f"{model} is no folder, no installed pipeline and no name of a biLM. Expected the "
            "folder of a biLM, of a pretraining run or of a saved pipeline; an installed pipeline with an elmo "
            "pipe; en_mini; or the name of a biLM in an installed package, such as en_midi, or of a published "
            f"one ({', '.join(PUBLISHED)})."
        )
    if pipe is not None and choice.saved_pipeline is None:
        raise CommandError(f"--pipe is {pipe!r}, but no pipeline was given. Give a pipeline, or leave out --pipe.")
    return choice


def warn_of_language(bilm: BiLMChoice, lang: str | None) -> None:
    """Print a warning if the biLM's model card names another language than the option --lang."""
    if bilm.saved_pipeline is None and lang not in (None, "xx"):
        language = bilm.named_language
        if language not in (None, "xx", lang):
            msg.warn(
                f"--lang is {lang}, but the biLM was trained on the language {language}, so its vectors may be "
                f"useless. Give --model the folder of a biLM of {lang}."
            )


def embedder_of(bilm: BiLMChoice, gpu: int = -1, stateful: bool = False) -> ElmoEmbedder:
    """Return an embedder with a biLM. Raises ElmoError if the biLM or the GPU can't be used.

    bilm: the biLM. Its device is not used.
    gpu: number of the GPU; -1: the CPU.
    """
    options, arrays = bilm.load_arrays()
    return ElmoEmbedder.from_arrays(options, arrays, gpu, stateful=stateful, precision=bilm.precision)
