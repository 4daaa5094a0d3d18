"""`elmo evaluate`: the perplexity of a text."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, redirect_stdout
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from spacy.cli._util import Arg, Opt

from ..errors import CommandError
from ..formats.atomic import replacing, writing
from ..modules.loading import files_of
from ..text.stream import Report, read_documents
from ..text.words import tokenizer_of
from .console import msg, print_json, telling_if_stopped
from .shared import DASH, TEXTS, Json, Lang, TextColumn, TextField, hold, tell_bad_lines

if TYPE_CHECKING:
    from ..pretraining.scoring import Perplexities, Score

COLUMNS = ("loss_forward", "loss_backward", "perplexity_forward", "perplexity_backward", "perplexity_mean")
TITLES = {"unigram": "unigram model", "zero_state": "biLM, zero state", "carried_state": "biLM, carried state"}


def evaluate(
    model: Path = Arg(..., metavar="MODEL", help="biLM with a softmax: its folder, that of its run, or its name"),
    text: Path = Arg(..., metavar="TEXT", help=TEXTS),
    lang: Lang = None,
    text_column: TextColumn = None,
    text_field: TextField = None,
    sentences: int | None = Opt(None, min=1, metavar="N", help="Read no more than this many sentences"),
    streams: int = Opt(16, min=1, metavar="N", help="Parts of the text, in each of which the state is carried"),
    per_sentence: Path | None = Opt(None, metavar="FILE", help="Write the scores of each sentence as TSV; - is stdout"),
    as_json: Json = False,
) -> None:
    """Measure the perplexity of a text.

    Each direction predicts every word of a sentence, and then its boundary, by the full softmax. A table shows the
    perplexity of each direction, and exp of the mean of their losses. Zero state: each sentence is read by itself.
    Carried state: it is read after the sentence before it. A word outside the vocabulary counts as <UNK>. The rows
    "without <UNK>" leave such words out.
    """
    from ..pretraining.language_model import LanguageModel, softmax_folder
    from ..pretraining.scoring import evaluate_text, total

    report, streamed = Report(), per_sentence == DASH
    if per_sentence is not None and not streamed:
        read = [text, *files_of(model), *filter(None, [softmax_folder(model)])]
        hold(per_sentence, read, begins=b"sentence\ttokens\t")

    lines, files = array("q"), dict[str, int]()  # of each sentence; how many sentences each file has

    def read_all() -> Iterator[list[str]]:
        tokenizer = tokenizer_of(lang)
        documents = read_documents(text, tokenizer, report, text_column=text_column, text_field=text_field)
        placed = ((document, sentence.tokens) for document in documents for sentence in document.sentences)
        for document, words in islice(placed, sentences):
            lines.append(document.line)
            files[document.source] = files.get(document.source, 0) + 1
            yield words

    def places() -> Iterator[tuple[str, int]]:
        return zip(chain.from_iterable(repeat(file, n) for file, n in files.items()), lines)

    def write_scores(scores: Iterable[Score]) -> Score:
        """Write a line for each sentence while its score comes, and return the score of the text."""
        if per_sentence is None or streamed:
            return total(scores if per_sentence is None else _written(sys.stdout, scores, places()))
        with (
            replacing(per_sentence, CommandError) as temporary,
            writing(per_sentence, CommandError),
            temporary.open("w", encoding="utf8", newline="\n") as file,
        ):
            return total(_written(file, scores, places()))

    with telling_if_stopped("stopped before all sentences were scored."):
        language_model = LanguageModel.load(model)
        evaluation = evaluate_text(language_model, read_all(), streams, write_scores)
    score, n_words = evaluation.zero, len(language_model.words)
    scores = dict(zip(TITLES, (evaluation.unigram, score, evaluation.carried)))
    with redirect_stdout(sys.stderr) if streamed else nullcontext():
        if as_json:
            record = {
                "model": str(model),
                "text": str(text),
                "vocabulary": n_words,
                "sentences": score.sentences,
                "tokens": score.tokens,
                "unknown": score.unknown,
                "out_of_vocabulary": score.unknown_share,
                "predictions": score.predictions,
                "streams": evaluation.streams,
                "bad_lines": report.n_bad,
            }
            print_json(record | {name: scored and _as_dict(scored) for name, scored in scores.items()})
            return
        msg.text(f"{score.sentences:,} sentences, {score.tokens:,} tokens, vocabulary {n_words:,}")
        msg.text(f"out of vocabulary: {score.unknown_share:.2%} of the tokens")
        known = {TITLES[name]: scored for name, scored in scores.items() if scored is not None}
        values = {title: scored.perplexities for title, scored in known.items()}
        values |= {f"{title}, without <UNK>": scored.known_perplexities for title, scored in known.items()}
        rows = [(title, *(f"{value:.1f}" for value in perplexities)) for title, perplexities in values.items()]
        header, aligns = ("perplexity", "forward", "backward", "mean"), ("l", "r", "r", "r")
        msg.table(rows, header=header, divider=True, aligns=aligns, max_col=max(map(len, values)))
        msg.text(f"{score.predictions:,} predictions a direction, boundaries counted; full softmax")
        msg.text(f"carried state: sentences in order, streams: {evaluation.streams}")
        if evaluation.unigram is None:
            msg.text("no unigram model: there are no counts (vocabulary.counts.npy) beside the vocabulary")
        tell_bad_lines(report)
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
