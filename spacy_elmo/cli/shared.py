"""What several commands need: options, the biLM that these name, files to write, and progress."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

from spacy.cli._util import Opt, import_code, parse_config_overrides
from spacy.util import minibatch
from tqdm import tqdm

from ..allennlp.elmo_bilm import CarriedState
from ..allennlp.embedder import BATCH_SIZE, SECONDS, bar_of
from ..corpus.bilm import BiLMChoice
from ..corpus.embedding import check_tokenizer
from ..errors import CommandError
from ..formats import write_options, write_weights
from ..formats.atomic import replacing, writing
from ..formats.characters import TruncatedWords
from ..formats.names import GROUP, PUBLISHED, find_point
from ..formats.outputs import output
from ..inference import Embedder
from ..inference.engine import Layers
from ..inference.linear import Precision
from ..modules.loading import EMBEDDED, find_bilm, told_by_card
from ..pipeline.saved import is_pipeline, pipeline_weights
from ..pretraining.language_model import refuse_new_run
from ..text.stream import Report
from .console import HELD, msg

MODEL = "Folder of a biLM or of a pretraining run, saved pipeline (folder or package), or the name of a biLM"
TEXTS = "Text, one sentence a line, .jsonl, .csv, .conllu, .spacy, also packed: file, folder or pattern; - is stdin"

Force = Annotated[bool, Opt("--force", "-F", help="Replace what exists")]
Json = Annotated[bool, Opt("--json", "-j", help="Print JSON only")]
Code = Annotated[Path | None, Opt("--code", "-c", metavar="FILE", help="Python file that a saved pipeline needs")]
BLANKS = "spaCy language of the tokenizer; default: split at blanks"
CARDS = "spaCy language of the tokenizer; default: that of the pipeline or biLM"
BILMS = "Language; default: that of the biLM, or en"
Lang = Annotated[str | None, Opt("--lang", "-l", metavar="CODE", help=BLANKS)]
LangOfCard = Annotated[str | None, Opt("--lang", "-l", metavar="CODE", help=CARDS)]
LangOfBiLM = Annotated[str | None, Opt("--lang", "-l", metavar="CODE", help=BILMS)]
Tokenized = Annotated[bool, Opt("--tokenized", help="The words of texts are separated by blanks")]
TextColumn = Annotated[str | None, Opt("--text-column", metavar="NAME", help="Column of the text in .csv and .tsv")]
TextField = Annotated[str | None, Opt("--text-field", metavar="NAME", help="Field of the text in JSON lines")]
_GPU = ("--gpu-id", "--cuda-device", "-g")  # the second is AllenNLP's
GpuId = Annotated[int, Opt(*_GPU, min=-1, metavar="N", help="Number of the GPU; -1: the CPU")]
PipeName = Annotated[str | None, Opt("--pipe", metavar="NAME", help="Name of the elmo pipe if there are several")]
BiLMName = Annotated[str | None, Opt("--model", "-m", metavar="MODEL", help="Folder or name of a biLM; else en_core")]
Model = Annotated[str, Opt("--model", "-m", metavar="MODEL", help=MODEL)]

OTHERS_TOO = {"context_settings": {"allow_extra_args": True, "ignore_unknown_options": True}}  # see `overrides_of`
DASH = Path("-")  # standard input, or standard output


def language_of(choice: BiLMChoice, lang: str | None, tokenized: bool) -> str | None:
    """Return the language of the tokenizer that splits texts for a biLM; None: they are split at blanks."""
    check_tokenizer(lang, tokenized)
    return None if tokenized else lang or choice.language


def origin_of(name: str) -> dict[str, str]:
    """Return the distribution, the version and the licence of a biLM that is embedded or in a package.

    The version of the embedded one is its own, that of its model card. Of another name there is nothing.
    """
    if name == EMBEDDED:
        told = {row: told_by_card(row, None) or "not told" for row in ("version", "licence")}
        return {"distribution": "spacy-elmo"} | told
    point = None if name in PUBLISHED else find_point(GROUP, name)
    if point is None or point.dist is None:
        return {}
    about = point.dist.metadata
    licence = next((about[key] for key in ("License-Expression", "License") if key in about), "not told")
    return {"distribution": about["Name"], "version": about["Version"], "licence": licence}


def tell_bad_lines(report: Report) -> None:
    """Print the lines that were left out, with the reasons."""
    if report.n_bad:
        more = report.n_bad - len(report.bad)
        lines = [*map(str, report.bad), *[f"and {more:,} more"] * bool(more)]
        msg.warn(f"{report.n_bad:,} bad lines were left out", "\n".join(lines))


def hold(path: Path, inputs: Iterable[str | Path] = (), **settings: Any) -> None:
    """Hold an output until the command ends, but for "-". Raises CommandError as `check_output`, with its settings."""
    if path != DASH:
        HELD.get().enter_context(output(path, CommandError, inputs, **settings))


@contextmanager
def folder_of_bilm(model: str, pipe: str | None = None) -> Iterator[str]:
    """Give a biLM's name or folder; for a saved pipeline, a temporary folder with the biLM of its pipe."""
    if not is_pipeline(model):
        if pipe is not None:
            raise CommandError(f"--pipe is {pipe!r}, but {model} is no saved pipeline. Leave --pipe out.")
        yield model
        return
    options, arrays = pipeline_weights(model, pipe)
    with tempfile.TemporaryDirectory() as folder:
        write_options(Path(folder, "options.json"), options)
        write_weights(Path(folder, "weights.hdf5"), options, arrays)
        yield folder


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Give a temporary file, which is moved to a path at the end. Raises CommandError if it can't be written."""
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        yield temporary


def write_text(text: str, path: Path) -> None:
    """Write a text file in UTF-8, as `written` does."""
    with written(path) as temporary:
        temporary.write_text(text, encoding="utf8")


def refuse_variables(path: str, sign: str) -> None:
    """Raise CommandError if a path has a sign, which would begin a variable in a config."""
    if sign in path:
        expected = "Expected a path without it: rename the file or folder, or give a relative path from inside of it"
        raise CommandError(f"{path}: has {sign}, with which a variable begins in a config. {expected}.")


def overrides_of(args: Sequence[str]) -> dict[str, Any]:
    """Return the settings that are given as options, such as `--training.epochs 2`. Raises CommandError."""
    for argument in args:
        if argument.startswith("--") and "." not in argument.partition("=")[0]:
            expected = "expected a setting in a section, like --training.dropout 0.1, or an option that --help tells"
            raise CommandError(f"{argument}: {expected}.")
    return {name: _as_written(value) for name, value in parse_config_overrides(list(args)).items()}


def _as_written(value: Any) -> Any:
    """Return the number that was written: spaCy's parser reads 0.6 as 0.6000000000000001, unlike a config file."""
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return float(f"{value:.15g}") if isinstance(value, float) else value


def shown_bar(seconds: float = SECONDS, *, disable: bool = False, **options: Any) -> tqdm[Any]:
    """Return a bar on a terminal; in a file a line from time to time; nothing if standard error is closed."""
    return bar_of(not disable and (not sys.stderr or sys.stderr.isatty() or "lines"), seconds, **options)


def bilm_of(
    model: str | None,
    pipe: str | None = None,
    code: Path | None = None,
    options_file: str | None = None,
    weight_file: str | None = None,
    pipeline: str | None = None,
    device: str = "cpu",
    precision: str = "float32",
) -> BiLMChoice:
    """Return which biLM the options name. Raises ElmoError if they exclude each other, or name nothing."""
    import_code(code)
    others = {"--pipeline": pipeline, "--options-file": options_file, "--weight-file": weight_file}
    given = ["--model"] * (model is not None) + [name for name, value in others.items() if value is not None]
    if len(given) > 1 and (model is not None or pipeline is not None):
        raise CommandError(f"{given[0]} and {given[1]} were given. Each names a biLM: leave one out.")
    # the precision is refused when it is used
    choice = BiLMChoice(model, options_file, weight_file, pipe, pipeline, device, cast(Precision, precision))
    if choice.saved_pipeline is None and model is not None:
        refuse_new_run(find_bilm(model))
    if choice.saved_pipeline is None and pipe is not None:
        raise CommandError(f"--pipe is {pipe!r}, but no pipeline was given. Give a pipeline, or leave out --pipe.")
    return choice


def embedded(
    bilm: Embedder, rows: Iterable[Sequence[str]], batch_size: int = BATCH_SIZE, stateful: bool = False
) -> Iterator[Layers]:
    """Yield the layers of each row, *Shape:* (layers, words, width), in order. Warns of words that are cut.

    stateful: whether row i of a batch starts from the state after row i of the batch before.
    """
    counter, carried = TruncatedWords(""), CarriedState(stateful)
    for batch in minibatch(rows, batch_size):
        counter.count([word for row in batch for word in row], bilm.options.max_characters)
        yield from carried.run(bilm, batch)
