"""`elmo evaluate`: the perplexity of a text."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ..errors import FILE_UNWRITABLE, CommandError
from ..formats.atomic import replacing
from ..formats.text import find_files, refuse_inside
from .console import msg, print_json, telling_if_stopped
from .shared import (
    STANDARD_INPUT,
    STANDARD_OUTPUT,
    Json,
    OldLanguage,
    TextLanguage,
    check_output,
    refuse_in_model,
    sentences_in,
)

if TYPE_CHECKING:
    from ..pretraining.scoring import Evaluation, Perplexities, Score
    from ..pretraining.text import Report

COLUMNS = (
    "sentence",
    "tokens",
    "loss_forward",
    "loss_backward",
    "perplexity_forward",
    "perplexity_backward",
    "perplexity_mean",
)


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
    ] = 16,
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
    from ..pretraining.language_model import FILES, LanguageModel, folders_of
    from ..pretraining.scoring import evaluate_text, total
    from ..pretraining.text import Report

    if per_sentence not in (None, STANDARD_OUTPUT):
        texts = [] if text == STANDARD_INPUT else find_files(text)
        check_output(per_sentence, [*(folder / name for folder in folders_of(model) for name in FILES), *texts])
        refuse_in_model(per_sentence, model)
        if text != STANDARD_INPUT:
            refuse_inside(text, per_sentence)

    def write_scores(scores: Iterable[Score]) -> Score:
        """Write a line for each sentence while its score comes, and return the score of the text."""
        if per_sentence == STANDARD_OUTPUT:
            return total(_written(sys.stdout, scores))
        assert per_sentence is not None
        with replacing(per_sentence, CommandError) as temporary:
            try:
                with temporary.open("w", encoding="utf8", newline="\n") as file:
                    return total(_written(file, scores))
            except OSError as error:
                raise CommandError(FILE_UNWRITABLE.format(path=per_sentence, reason=error)) from error

    with telling_if_stopped("stopped before all sentences were scored."):
        language_model, report = LanguageModel.load(model, untrusted=True), Report()
        limit = None if sentences is None else min(sentences, sys.maxsize)  # islice accepts no larger number
        read = islice(sentences_in(text, lang or language, report), limit)
        evaluation = evaluate_text(language_model, read, streams, write_scores if per_sentence else None)
    n_words = len(language_model.words)
    with redirect_stdout(sys.stderr) if per_sentence == STANDARD_OUTPUT else nullcontext():
        if as_json:
            named = {"model": str(model), "text": str(text), "vocabulary": n_words}
            print_json(named | _as_dict(evaluation, report))
        else:
            _show(evaluation, n_words, report)
    if not as_json and per_sentence not in (None, STANDARD_OUTPUT):
        msg.good(f"{per_sentence}: {evaluation.zero.sentences:,} sentences")


def _written(file: IO[str], scores: Iterable[Score]) -> Iterator[Score]:
    file.write("\t".join(COLUMNS) + "\n")
    for number, score in enumerate(scores, 1):
        values = (*score.loss, *score.perplexities)
        file.write("\t".join([str(number), str(score.tokens), *(f"{value:.9g}" for value in values)]) + "\n")
        yield score


def _show(evaluation: Evaluation, n_words: int, report: Report) -> None:
    """Print an evaluation as tables."""
    score = evaluation.zero
    msg.text(f"{score.sentences:,} sentences, {score.tokens:,} tokens, vocabulary {n_words:,}")
    msg.text(f"out of vocabulary: {score.unknown_share:.2%} of the tokens")
    titles = {"unigram": "unigram model", "zero_state": "biLM, zero state", "carried_state": "biLM, carried state"}
    known = [(titles[name], scored) for name, scored in _scores(evaluation).items() if scored is not None]
    rows = [(title, *(f"{value:.1f}" for value in scored.perplexities)) for title, scored in known]
    for title, scored in known:
        rows.append((f"{title}, without <UNK>", *(f"{value:.1f}" for value in scored.known_perplexities)))
    header, aligns = ("perplexity", "forward", "backward", "mean"), ("l", "r", "r", "r")
    msg.table(rows, header=header, divider=True, aligns=aligns, max_col=max(len(row[0]) for row in rows))
    msg.text(f"{score.predictions:,} predictions a direction, boundaries counted; full softmax")
    msg.text(f"carried state: sentences in order, streams: {evaluation.streams}")
    if evaluation.unigram is None:
        msg.text("no unigram model: there are no counts (vocabulary.counts.npy) beside the vocabulary")
    if report.n_bad:
        msg.warn(f"lines left out: {report.n_bad:,}", "\n".join(map(str, report.bad)))


def _scores(evaluation: Evaluation) -> dict[str, Score | None]:
    """Return the scores by their names in JSON."""
    return {"unigram": evaluation.unigram, "zero_state": evaluation.zero, "carried_state": evaluation.carried}


def _as_dict(evaluation: Evaluation, report: Report) -> dict[str, Any]:
    """Return an evaluation as a dict that can be written as JSON. An infinite perplexity is None."""
    score = evaluation.zero
    record: dict[str, Any] = {
        "sentences": score.sentences,
        "tokens": score.tokens,
        "unknown": score.unknown,
        "out_of_vocabulary": score.unknown_share,
        "predictions": score.predictions,
        "streams": evaluation.streams,
        "bad_lines": report.n_bad,
    }
    for name, scored in _scores(evaluation).items():
        record[name] = scored and _finite(scored.perplexities) | {"without_unknown": _finite(scored.known_perplexities)}
    return record


def _finite(perplexities: Perplexities) -> dict[str, Any]:
    return {name: value if math.isfinite(value) else None for name, value in perplexities._asdict().items()}
