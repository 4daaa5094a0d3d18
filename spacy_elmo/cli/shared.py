"""Options that several commands have, with the names that spaCy's own commands give them."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, cast

import typer
from tqdm import tqdm

from ..allennlp.embedder import SECONDS, ElmoEmbedder, Lines
from ..corpus.bilm import BiLMChoice
from ..corpus.reading import STANDARD_INPUT_NAME, standard_input
from ..errors import EMBED_SAME, FILE_MISSING, FILE_NOT_REGULAR, FILE_UNREADABLE, PATH_FOLDER, CommandError
from ..formats.atomic import is_output, replacing, writing
from ..formats.names import PUBLISHED, is_hidden
from ..modules.loading import Precision, can_name_bilm, no_bilm
from ..pretraining.language_model import folders_of
from ..pretraining.text import Report, read_sentences, read_stream
from .console import msg

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


def folder_argument(value: str) -> Path:
    """Return the path of a folder, which may be missing. Raises BadParameter if it is a file."""
    path = Path(value)
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(PATH_FOLDER.format(path=path))
    return path


STANDARD_INPUT = Path(STANDARD_INPUT_NAME)


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a text in UTF-8, with or without a byte order mark.

    path: the file; "-" is standard input, which stays open afterwards.

    Raises CommandError if the file does not exist or can't be opened.
    """
    if path == STANDARD_INPUT:
        text = io.TextIOWrapper(standard_input(), encoding="utf-8-sig")
        try:
            yield text
        finally:
            text.detach()  # otherwise it would close standard input
        return
    expected = "text, one sentence a line"
    if path.is_dir():
        raise CommandError(FILE_NOT_REGULAR.format(path=path, expected=expected))
    try:
        file = path.open(encoding="utf-8-sig")
    except FileNotFoundError:
        raise CommandError(FILE_MISSING.format(path=path, expected=expected)) from None
    except OSError as error:
        raise CommandError(FILE_UNREADABLE.format(path=path, reason=error, expected=expected)) from error
    with file:
        yield file


def sentences_in(path: Path, language: str | None, report: Report) -> Iterator[list[str]]:
    """Yield the words of each sentence of a text: a file, a folder or a pattern as `read_sentences` reads it.

    path: of the text; "-" is standard input, one sentence a line.
    language, report: as in `read_sentences`, which also tells the errors.
    """
    if path == STANDARD_INPUT:
        return read_stream(standard_input(), source_of(path), language, report)
    return read_sentences(path, language, report)


def source_of(path: Path) -> str:
    """Return what messages call a text. path: as in `open_text`."""
    return "standard input" if path == STANDARD_INPUT else str(path)


STANDARD_OUTPUT = Path("-")
_EXPECTED = "the name of a file to write"


def refuse_inputs(output: Path, inputs: list[Path]) -> None:
    """Raise CommandError if an output file is one of the inputs, or exists and is not a regular file."""
    for path in inputs:
        if path.exists() and output.exists() and output.samefile(path):
            raise CommandError(EMBED_SAME.format(path=output))
    _refuse_special(output)


def refuse_in_model(output: Path, model: str | os.PathLike[str]) -> None:
    """Raise ElmoError if a file to write is in a folder of a biLM or of its run.

    model: a folder, or the name of a biLM.
    """
    for folder in folders_of(model):
        if Path(os.path.realpath(output)).is_relative_to(folder):
            raise CommandError(
                f"{output}: the file to write is in {folder}, which is the folder of the model, or that of the "
                "run that made it. Expected a place outside: give another name."
            )


def refuse_stream(output: Path) -> None:
    """Raise CommandError if vectors are to be written to standard output."""
    if output == STANDARD_OUTPUT:
        raise CommandError(
            "- as the output means standard output, to which no vectors can be written. Expected the name of a file."
        )


def refuse_existing(path: Path, force: bool) -> None:
    """Raise CommandError if a file exists and `force` is false, or if it can't be written."""
    _refuse_special(path)
    if path.exists() and not force:
        raise CommandError(f"{path}: exists. Give another file, or add --force to replace it.")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: can't be written, because the folder {path.parent} does not exist.")


def _refuse_special(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise CommandError(FILE_NOT_REGULAR.format(path=path, expected=_EXPECTED))
    if is_output(path):
        raise CommandError(f"{path}: standard output or standard error goes to it. Expected the name of another file.")


def write_text(text: str, path: Path) -> None:
    """Write a text file in UTF-8, atomically. Raises CommandError if that fails."""
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        temporary.write_text(text, encoding="utf8")


# what tqdm fills in; n_fmt, total_fmt and rate_fmt are short forms of the numbers
LINE = "{desc}{n_fmt} of {total_fmt}{unit} ({percentage:.0f}%), {rate_fmt}, {remaining} left{postfix}"
LINE_WITHOUT_TOTAL = "{desc}{n_fmt}{unit}, {rate_fmt}{postfix}"


def shown_bar(**options: Any) -> "tqdm[None]":
    """Return a bar on a terminal, what writes a line in ten seconds in a file, or nothing if standard error is closed.

    options: of tqdm.
    """
    if not sys.stderr:
        return tqdm(disable=True, **options)
    if sys.stderr.isatty():
        return tqdm(file=sys.stderr, **options)
    if "desc" in options:
        options["desc"] += ": "  # tqdm adds it to its own lines only
    line = LINE_WITHOUT_TOTAL if options.get("total") is None else LINE
    return tqdm(file=Lines(sys.stderr), mininterval=SECONDS, maxinterval=SECONDS, bar_format=line, **options)


def bilm_of(
    model: str | None,
    options_file: str | None,
    weight_file: str | None,
    pipeline: str | None,
    pipe: str | None,
    device: str,
    precision: str,
) -> BiLMChoice:
    """Return which biLM the options name.

    Raises CommandError if they exclude each other, or if `model` is the name of nothing, and SettingsError if something
    in the current folder hides the biLM of that name.
    """
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
    known = cast(Precision, precision)  # or refused
    choice = BiLMChoice(model, options_file, weight_file, pipe, pipeline, device, known)
    if model is not None and is_hidden(model) and not can_name_bilm(model):
        raise no_bilm(model)
    if model is not None and choice.saved_pipeline is None and not can_name_bilm(model):
        raise CommandError(
            f"--model is {model!r}, which is no folder, no installed pipeline and no name of a biLM. Expected the "
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


def embedder_of(bilm: BiLMChoice, gpu: int, stateful: bool = False) -> ElmoEmbedder:
    """Return an embedder with a biLM.

    bilm: the biLM. Its device is not used.
    gpu: number of the GPU; -1: the CPU.
    stateful: as for ElmoEmbedder.

    Raises ElmoError if the biLM or the GPU can't be used.
    """
    options, arrays = bilm.load_arrays()
    return ElmoEmbedder.from_arrays(options, arrays, gpu, stateful=stateful, precision=bilm.precision)
