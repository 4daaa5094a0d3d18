"""`elmo evaluate`: the perplexity of a text."""

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, redirect_stdout
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

import typer

from ..errors import FILE_UNWRITABLE, CommandError
from ..formats.atomic import replacing
from ..formats.text import find_files, refuse_inside
from ..pretraining.language_model import FILES, LanguageModel, folders_of
from ..pretraining.scoring import STREAMS, Evaluation, Perplexities, Score, evaluate_text, total
from ..pretraining.text import Report
from .console import escaped, msg, print_json, printing_errors, show_all
from .shared import (
    STANDARD_INPUT,
    STANDARD_OUTPUT,
    Json,
    OldLanguage,
    TextLanguage,
    refuse_in_model,
    refuse_inputs,
    sentences_in,
)

COLUMNS = (
    "sentence",
    "tokens",
    "loss_forward",
    "loss_backward",
    "perplexity_forward",
    "perplexity_backward",
    "perplexity_mean",
)


TITLES = {"unigram": "unigram model", "zero_state": "biLM, zero state", "carried_state": "biLM, carried state"}


class Subject(NamedTuple):
    """What was evaluated.

    model, text: as the user wrote them.
    n_words: size of the vocabulary.
    report: counts of the text's lines.
    """

    model: str
    text: str
    n_words: int
    report: Report


def print_table(subject: Subject, evaluation: Evaluation) -> None:
    """Print an evaluation as tables."""
    score, bad = evaluation.zero, subject.report
    msg.text(f"{score.sentences:,} sentences, {score.tokens:,} tokens, vocabulary {subject.n_words:,}")
    msg.text(f"out of vocabulary: {score.unknown_share:.2%} of the tokens")
    known = [(TITLES[name], scored) for name, scored in _scores(evaluation).items() if scored is not None]
    rows = [_row(title, scored.perplexities) for title, scored in known]
    rows += [_row(f"{title}, without <UNK>", scored.known_perplexities) for title, scored in known]
    header, aligns = ("perplexity", "forward", "backward", "mean"), ("l", "r", "r", "r")
    msg.table(rows, header=header, divider=True, aligns=aligns, max_col=max(len(row[0]) for row in rows))
    msg.text(f"{score.predictions:,} predictions a direction, boundaries counted; full softmax")
    msg.text(f"carried state: sentences in order, streams: {evaluation.streams}")
    if evaluation.unigram is None:
        msg.text("no unigram model: there are no counts (vocabulary.counts.npy) beside the vocabulary")
    if bad.n_bad:
        msg.warn(f"lines left out: {bad.n_bad:,}", "\n".join(map(str, bad.bad)))


def as_dict(subject: Subject, evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as a dict that can be written as JSON. An infinite perplexity is None."""
    score = evaluation.zero
    record: dict[str, Any] = {
        "model": subject.model,
        "text": subject.text,
        "vocabulary": subject.n_words,
        "sentences": score.sentences,
        "tokens": score.tokens,
        "unknown": score.unknown,
        "out_of_vocabulary": score.unknown_share,
        "predictions": score.predictions,
        "streams": evaluation.streams,
        "bad_lines": subject.report.n_bad,
    }
    for name, scored in _scores(evaluation).items():
        record[name] = scored and _json(scored.perplexities) | {"without_unknown": _json(scored.known_perplexities)}
    return record


def write_scores(path: Path, scores: Iterable[Score]) -> Score:
    """Write a line for each sentence while its score comes, atomically.

    The columns, separated by tabs, are: number of the sentence, from 1; its words; each direction's loss, a sum of
    -log p(target) in nats over words + 1 predictions; each direction's perplexity; and their mean.

    path: the file to write; - is standard output.
    scores: of the sentences, in order.

    Returns the score of the text.
    Raises CommandError if the file can't be written.
    """
    if path == STANDARD_OUTPUT:
        print(*COLUMNS, sep="\t")
        return total(_written(sys.stdout, scores))
    with replacing(path, CommandError) as temporary:
        try:
            with temporary.open("w", encoding="utf8", newline="\n") as file:
                file.write("\t".join(COLUMNS) + "\n")
                return total(_written(file, scores))
        except OSError as error:
            raise CommandError(FILE_UNWRITABLE.format(path=path, reason=error)) from error


def _written(file: IO[str], scores: Iterable[Score]) -> Iterator[Score]:
    for number, score in enumerate(scores, 1):
        values = (*score.loss, *score.perplexities)
        file.write("\t".join([str(number), str(score.tokens), *(f"{value:.9g}" for value in values)]) + "\n")
        yield score


def _scores(evaluation: Evaluation) -> dict[str, Score | None]:
    """Return the scores by their names in JSON."""
    return {"unigram": evaluation.unigram, "zero_state": evaluation.zero, "carried_state": evaluation.carried}


def _row(title: str, perplexities: Perplexities) -> tuple[str, ...]:
    return title, *(f"{value:.1f}" for value in perplexities)


def _json(perplexities: Perplexities) -> dict[str, Any]:
    values = perplexities._asdict()
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


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
    with printing_errors("stopped before all sentences were scored."):
        subject, evaluation = read_and_evaluate(model, text, lang or language, sentences, streams, per_sentence)
    with redirect_stdout(sys.stderr) if per_sentence == STANDARD_OUTPUT else nullcontext():
        if as_json:
            print_json(as_dict(subject, evaluation))
        else:
            print_table(subject, evaluation)
    if not as_json and per_sentence not in (None, STANDARD_OUTPUT):
        msg.good(escaped(f"{per_sentence}: {evaluation.zero.sentences:,} sentences"))
