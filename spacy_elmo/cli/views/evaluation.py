"""What `elmo evaluate` prints and writes."""

import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from ...errors import CommandError, Errors
from ...formats.atomic import replacing
from ...pretraining.scoring import Evaluation, Perplexities, Score, total
from ...pretraining.text.reading import Report
from ..shared.outputs import STANDARD_OUTPUT
from ..shared.printer import msg

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
            raise CommandError(Errors.FILE_UNWRITABLE.format(path=path, reason=error)) from error


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
