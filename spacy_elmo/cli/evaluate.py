"""`elmo evaluate`"""

import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..errors import CommandError, ElmoError, Errors
from ..pretraining.model.files import FILES, bilm_folder, softmax_folder
from ..pretraining.model.language_model import LanguageModel
from ..pretraining.score import total
from ..pretraining.scoring import STREAMS, score_carried, score_sentences, score_unigram
from ..pretraining.text.reading import Report, read_sentences
from ..pretraining.text.sources import find_files, refuse_inside
from ..pretraining.text.spooled import SpooledText
from .embed import check_output
from .shared.console import escaped, show_all
from .shared.paths import given_path
from .views.evaluation import Evaluation, write_scores


def check_scores_file(path: Path, model: Path, text: Path) -> None:
    """Raise ElmoError where a file of the model or of the text would be replaced, or one be put among them."""
    folders = {bilm_folder(model), softmax_folder(model) or model}
    check_output(path, [*(folder / name for folder in folders for name in FILES), *find_files(text)])
    for folder in folders:
        if path.resolve().is_relative_to(folder.resolve()):
            raise CommandError(Errors.SCORE_INSIDE.format(path=path, folder=folder))
    refuse_inside(text, path)


def evaluate_files(
    model: Path, text: Path, language: str | None, limit: int | None, streams: int, per_sentence: Path | None
) -> Evaluation:
    """Score the first `limit` sentences of a text, all where it is None; see the command. Raises ElmoError."""
    if per_sentence is not None:
        check_scores_file(per_sentence, model, text)
    language_model, report = LanguageModel.load(model), Report()
    limit = limit and min(limit, sys.maxsize)  # islice takes no larger number
    with SpooledText(islice(read_sentences(text, language, report), limit)) as spooled:
        scores = score_sentences(language_model, spooled)
        zero = total(scores) if per_sentence is None else write_scores(per_sentence, scores)
        carried = score_carried(language_model, spooled, streams)
        frequencies = language_model.vocabulary.log_unigram()
        streams = min(streams, spooled.n_sentences)  # parts that have a sentence
        unigram = None if frequencies is None else score_unigram(language_model, spooled, frequencies)
    n_words = len(language_model.words)
    return Evaluation(str(model), str(text), n_words, streams, report, zero, carried, unigram)


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            parser=given_path,
            help="Folder of a biLM with its softmax, like model-best in the folder of a pretraining run, or en_mini",
        ),
    ],
    text: Annotated[
        Path,
        typer.Argument(
            metavar="TEXT",
            parser=given_path,
            help="Text, one sentence a line: plain, .gz, .xz or .zst; .jsonl or .spacy files; a folder or a pattern",
        ),
    ],
    language: Annotated[
        str | None, typer.Option(help="Split text with this language's tokenizer, e.g. en; left out: at blanks")
    ] = None,
    sentences: Annotated[int | None, typer.Option(min=1, help="Read no more than this many sentences")] = None,
    streams: Annotated[
        int,
        typer.Option(
            min=1,
            help="Carried state: the text is cut into this many parts of equally many sentences; in each the state "
            "goes from sentence to sentence, from zero at the first one. Other numbers give slightly other values",
        ),
    ] = STREAMS,
    per_sentence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=given_path,
            help="Write losses and perplexities of each sentence (zero state) as TSV",
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Perplexity of a text: full softmax, each direction and their mean, zero and carried state.

    Each direction predicts every word of a sentence and its far boundary. Words outside the vocabulary count as <UNK>;
    rows without <UNK> leave out the predictions of these. The mean is exp of the mean of both directions' losses.
    """
    show_all()
    try:
        evaluation = evaluate_files(model, text, language, sentences, streams, per_sentence)
    except (ElmoError, OSError) as error:
        msg.fail(escaped(str(error)), exits=1)
    except KeyboardInterrupt:
        msg.fail(Errors.SCORE_STOPPED)
        raise
    if json_:
        evaluation.print_json()
    else:
        evaluation.print_table()
        if per_sentence is not None:
            msg.good(escaped(f"{per_sentence}: {evaluation.zero.sentences:,} sentences"))
