"""What `elmo evaluate` prints and writes."""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from wasabi import msg

from ...errors import CommandError, Errors
from ...formats.atomic import replacing
from ...pretraining.score import Perplexities, Score, total
from ...pretraining.text.reading import Report

COLUMNS = (
    "sentence",
    "tokens",
    "loss_forward",
    "loss_backward",
    "perplexity_forward",
    "perplexity_backward",
    "perplexity_mean",
)


@dataclass(frozen=True)
class Evaluation:
    """A model on a text.

    streams: parts that were read with the state carried; unigram: None where the words' counts are not known.
    """

    model: str
    text: str
    n_words: int
    streams: int
    report: Report
    zero: Score
    carried: Score
    unigram: Score | None

    @property
    def scores(self) -> dict[str, Score | None]:
        """By the names that JSON has for them."""
        return {"unigram": self.unigram, "zero_state": self.zero, "carried_state": self.carried}

    def print_table(self) -> None:
        """For people."""
        score = self.zero
        msg.text(f"{score.sentences:,} sentences, {score.tokens:,} tokens, vocabulary {self.n_words:,}")
        msg.text(f"out of vocabulary: {_rate(score):.2%} of the tokens")
        titles = ("unigram model", "biLM, zero state", "biLM, carried state")
        known = [(title, found) for title, found in zip(titles, self.scores.values()) if found is not None]
        rows = [_row(title, found.perplexities) for title, found in known]
        rows += [_row(f"{title}, without <UNK>", found.known_perplexities) for title, found in known]
        header, aligns = ("perplexity", "forward", "backward", "mean"), ("l", "r", "r", "r")
        msg.table(rows, header=header, divider=True, aligns=aligns, max_col=max(len(row[0]) for row in rows))
        msg.text(f"{score.predictions:,} predictions a direction, boundaries counted; full softmax")
        msg.text(f"carried state: sentences in order, streams: {self.streams}")
        if self.unigram is None:
            msg.text("no unigram model: there are no counts (vocabulary.counts.npy) beside the vocabulary")
        if self.report.n_bad:
            msg.warn(f"lines left out: {self.report.n_bad:,}", "\n".join(map(str, self.report.bad)))

    def print_json(self) -> None:
        """For programs: one object; a perplexity beyond the numbers of JSON is null."""
        score = self.zero
        record: dict[str, Any] = {
            "model": self.model,
            "text": self.text,
            "vocabulary": self.n_words,
            "sentences": score.sentences,
            "tokens": score.tokens,
            "unknown": score.unknown,
            "out_of_vocabulary": _rate(score),
            "predictions": score.predictions,
            "streams": self.streams,
            "bad_lines": self.report.n_bad,
        }
        for name, found in self.scores.items():
            record[name] = found and _json(found.perplexities) | {"without_unknown": _json(found.known_perplexities)}
        print(json.dumps(record, indent=2))


def write_scores(path: Path, scores: Iterable[Score]) -> Score:
    """Write a line for each sentence, whole or not at all, as the scores come; return the text's score.

    Columns, separated by tabs: the sentence's number, from 1 on; its tokens; each direction's loss, a sum of -log p
    over tokens + 1 predictions; each direction's perplexity and their mean. Raises CommandError.
    """
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


def _rate(score: Score) -> float:
    return score.unknown / max(1, score.tokens)


def _row(title: str, perplexities: Perplexities) -> tuple[str, ...]:
    return title, *(f"{value:.1f}" for value in perplexities)


def _json(perplexities: Perplexities) -> dict[str, Any]:
    values = perplexities._asdict()
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
