"""`elmo evaluate`: the perplexity of a text."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from spacy.cli._util import Arg, Opt

from ..modules.loading import files_of
from ..pretraining.language_model import LanguageModel, softmax_folder
from ..pretraining.scoring import Perplexities, Score, evaluate_text, total
from ..text.stream import Report, read_documents
from ..text.words import tokenizer_of
from . import shared
from .console import msg, print_json, to_stderr

COLUMNS = ("loss_forward", "loss_backward", "perplexity_forward", "perplexity_backward", "perplexity_mean")
TITLES = {"unigram": "unigram model", "zero_state": "biLM, zero state", "carried_state": "biLM, carried state"}


def evaluate(
    model: Path = Arg(..., metavar="MODEL", help="biLM with a softmax: its folder, that of its run, or its name"),
    text: Path = Arg(..., metavar="TEXT", help=shared.TEXTS),
    lang: shared.Lang = None,
    text_column: shared.TextColumn = None,
    text_field: shared.TextField = None,
    sentences: int | None = Opt(None, min=1, metavar="N", help="Read no more than this many sentences"),
    streams: int = Opt(16, min=1, metavar="N", help="Parts of the text, in each of which the state is carried"),
    per_sentence: Path | None = Opt(None, metavar="FILE", help="Write the scores of each sentence as TSV; - is stdout"),
    as_json: shared.Json = False,
) -> None:
    """Each direction predicts every word of a sentence, and then its boundary, by the full softmax. A table shows the
    perplexity of each direction, and exp of the mean of their losses. Zero state: each sentence is read by itself.
    Carried state: it is read after the sentence before it. A word outside the vocabulary counts as <UNK>. The rows
    "without <UNK>" leave such words out.
    """
    report, streamed = Report(), per_sentence == shared.DASH
    if per_sentence is not None:
        read = [text, *files_of(model), *filter(None, [softmax_folder(model)])]
        shared.hold(per_sentence, read, begins=b"sentence\ttokens\t")
    places: list[tuple[str, int]] = []  # the file and the line of each sentence

    def read_all() -> Iterator[list[str]]:
        documents = read_documents(text, tokenizer_of(lang), report, text_column=text_column, text_field=text_field)
        placed = ((document, sentence) for document in documents for sentence in document.sentences)
        for document, words in islice(placed, sentences):
            places.append((document.source, document.line))
            yield words

    def write_scores(scores: Iterable[Score]) -> Score:
        """Write a line for each sentence while its score comes, and return the score of the text."""
        if per_sentence is None or streamed:
            return total(scores if per_sentence is None else _written(sys.stdout, scores, places))
        with shared.written(per_sentence) as path, path.open("w", encoding="utf8", newline="\n") as file:
            return total(_written(file, scores, places))

    language_model = LanguageModel.load(model)
    evaluation = evaluate_text(language_model, read_all(), streams, write_scores)
    score, n_words = evaluation.zero, len(language_model.words)
    scores = dict(zip(TITLES, (evaluation.unigram, score, evaluation.carried)))
    with to_stderr(streamed):
        if as_json:
            record: dict[str, Any] = {"model": str(model), "text": str(text), "vocabulary": n_words}
            record |= {name: getattr(score, name) for name in ("sentences", "tokens", "unknown", "predictions")}
            record |= {"out_of_vocabulary": score.unknown_share, "streams": evaluation.streams}
            record |= {"bad_lines": report.n_bad}
            print_json(record | {name: scored and _as_dict(scored) for name, scored in scores.items()})
            return
        msg.text(f"{score.sentences:,} sentences, {score.tokens:,} tokens, vocabulary {n_words:,}")
        msg.text(f"out of vocabulary: {score.unknown_share:.2%} of the tokens")
        known = {TITLES[name]: scored for name, scored in scores.items() if scored is not None}
        values = {title: scored.perplexities for title, scored in known.items()}
        values |= {f"{title}, without <UNK>": scored.known_perplexities for title, scored in known.items()}
        rows = [(title, *(f"{value:.1f}" for value in perplexities)) for title, perplexities in values.items()]
        msg.table(rows, header=("perplexity", "forward", "backward", "mean"), aligns="lrrr")
        msg.text(f"{score.predictions:,} predictions a direction, boundaries counted; full softmax")
        msg.text(f"carried state: sentences in order, streams: {evaluation.streams}")
        if evaluation.unigram is None:
            msg.text("no unigram model: there are no counts (vocabulary.counts.npy) beside the vocabulary")
        shared.tell_bad_lines(report)
    if per_sentence is not None and not streamed:
        msg.good(f"{per_sentence}: {score.sentences:,} sentences")


def _written(file: IO[str], scores: Iterable[Score], places: Iterable[tuple[str, int]]) -> Iterator[Score]:
    file.write("\t".join(["sentence", "tokens", *COLUMNS, "file", "line"]) + "\n")
    for number, (score, (name, line)) in enumerate(zip(scores, places), 1):
        values = (f"{value:.9g}" for value in (*score.loss, *score.perplexities))
        file.write("\t".join([str(number), str(score.tokens), *values, name, str(line)]) + "\n")
        yield score


def _as_dict(score: Score) -> dict[str, Any]:
    return _finite(score.perplexities) | {"without_unknown": _finite(score.known_perplexities)}


def _finite(perplexities: Perplexities) -> dict[str, Any]:
    """JSON knows no infinity."""
    return {name: value if math.isfinite(value) else None for name, value in perplexities._asdict().items()}
