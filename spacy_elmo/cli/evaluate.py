"""`elmo evaluate`: the perplexity of a text."""

import sys
from contextlib import nullcontext, redirect_stdout
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from ..errors import Errors
from ..formats.text.sources import find_files, refuse_inside
from ..pretraining.model.files import FILES, folders_of
from ..pretraining.model.language_model import LanguageModel
from ..pretraining.scoring import STREAMS, Evaluation, evaluate_text
from ..pretraining.text.reading import Report
from .shared.console import escaped, print_json, show_all
from .shared.errors import printing_errors
from .shared.inputs import STANDARD_INPUT, sentences_in
from .shared.options import Json, OldLanguage, TextLanguage
from .shared.outputs import STANDARD_OUTPUT, refuse_in_model, refuse_inputs
from .shared.printer import msg
from .views.evaluation import Subject, as_dict, print_table, write_scores


def check_scores_file(path: Path, model: Path, text: Path) -> None:
    """Raise ElmoError if the file is one of the model or the text, or is inside their folders."""
    texts = [] if text == STANDARD_INPUT else find_files(text)
    refuse_inputs(path, [*(folder / name for folder in folders_of(model) for name in FILES), *texts])
    refuse_in_model(path, model)
    if text != STANDARD_INPUT:
        refuse_inside(text, path)


def read_and_evaluate(
    model: Path, text: Path, language: str | None, limit: int | None, streams: int, per_sentence: Path | None
) -> tuple[Subject, Evaluation]:
    """Score a text with a model.

    model: folder of a biLM with its softmax, or of a pretraining run, or a name.
    text: a file, a folder or a pattern; - is standard input.
    language: of the spaCy tokenizer; None: words are separated by blanks.
    limit: number of sentences that are read, the first ones; None: all.
    streams: parts of the text for the carried state.
    per_sentence: file for the scores of each sentence; - is standard output; None: they are not written.

    Raises ElmoError if files can't be read or written.
    """
    if per_sentence not in (None, STANDARD_OUTPUT):
        check_scores_file(per_sentence, model, text)
    language_model, report = LanguageModel.load(model, untrusted=True), Report()
    limit = limit and min(limit, sys.maxsize)  # islice accepts no larger number
    sentences = islice(sentences_in(text, language, report), limit)
    write = None if per_sentence is None else partial(write_scores, per_sentence)
    evaluation = evaluate_text(language_model, sentences, streams, write)
    return Subject(str(model), str(text), len(language_model.words), report), evaluation


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a biLM with its softmax, of a pretraining run (for its model-best), or its name",
        ),
    ],
    text: Annotated[
        Path,
        typer.Argument(
            metavar="TEXT",
            help="Text, one sentence a line: plain, .gz, .xz or .zst; .jsonl or .spacy files; a folder or a pattern; "
            "- is standard input",
        ),
    ],
    lang: TextLanguage = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Read no more than this many sentences")
    ] = None,
    streams: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Carried state: the text is cut into this many parts of equally many sentences; in each the state "
            "goes from sentence to sentence, from zero at the first one. Other numbers give slightly other values",
        ),
    ] = STREAMS,
    per_sentence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write losses and perplexities of each sentence (zero state) as TSV; - is standard output, and the "
            "rest goes to standard error",
        ),
    ] = None,
    as_json: Json = False,
    language: OldLanguage = None,
) -> None:
    """Measure the perplexity of a text.

    It is that of the full softmax: of each direction and their mean, with zero and with carried state.
    Each direction predicts every word of a sentence and then a boundary. Words outside the vocabulary count as <UNK>;
    rows without <UNK> leave out the predictions of these. The mean is exp of the mean of both directions' losses.
    """
    show_all()
    with printing_errors(Errors.SCORE_STOPPED):
        subject, evaluation = read_and_evaluate(model, text, lang or language, sentences, streams, per_sentence)
    with redirect_stdout(sys.stderr) if per_sentence == STANDARD_OUTPUT else nullcontext():
        if as_json:
            print_json(as_dict(subject, evaluation))
        else:
            print_table(subject, evaluation)
    if not as_json and per_sentence not in (None, STANDARD_OUTPUT):
        msg.good(escaped(f"{per_sentence}: {evaluation.zero.sentences:,} sentences"))
