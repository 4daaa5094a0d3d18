"""What is measured of a biLM: the perplexity of a text, and how well its layers tell tags."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from spacy_elmo.errors import CommandError
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.scoring import score_text
from spacy_elmo.pretraining.text import Report, read_sentences

from ..shared.corpus_files import TAGGED
from ..shared.elmo_command import run_elmo
from ..shared.messages import Messages

_BAD_SHARE = 0.01  # of a text's lines, which may be left out: one tweet of Broad Twitter has words with blanks


class Text(NamedTuple):
    """The sentences of a text, as words, and how many of its lines can't be used and are left out."""

    sentences: list[list[str]]
    left_out: int


def bilm_result_of(project: Path, name: str) -> Path:
    """Return the file of what was measured.

    project: the folder with results.
    name: of a biLM, or "bits".
    """
    return project / "results" / "bilms" / f"{name}.json"


def check_text(path: Path, option: str) -> None:
    """Raise CommandError if a text is no file.

    path: of the text.
    option: of the project's vars that names it.
    """
    if not path.is_file():
        raise CommandError(Messages.TEXT.format(got=str(path), option=option))


def check_corpora(paths: Iterable[Path] = ()) -> None:
    """Raise CommandError if a corpus of `tag_accuracies` is missing, or one of `paths`."""
    for path in (*paths, *map(Path, TAGGED)):
        if not path.is_file():
            raise CommandError(Messages.CORPUS_MISSING.format(path=path))


def read_text(path: Path, limit: int | None = None) -> Text:
    """Read a text whose perplexity is measured.

    path: a sentence a line, words separated by blanks, or a .spacy file.
    limit: number of sentences that are read, the first ones; None: all.

    Raises ElmoError if the text can't be read, if more than one line in a hundred can't be used, or if it has fewer
    sentences than `limit`.
    """
    report = Report()
    sentences = list(islice(read_sentences(path, None, report), limit))
    if report.n_bad > _BAD_SHARE * len(sentences):
        raise CommandError(Messages.TEXT_LINES.format(path=path, bad=report.n_bad, first=report.bad[0]))
    if limit is not None and len(sentences) < limit:
        raise CommandError(Messages.TEXT_SHORT.format(path=path, got=len(sentences), expected=limit))
    return Text(sentences, report.n_bad)


def perplexity(model: LanguageModel, text: Text) -> dict[str, Any]:
    """Return the perplexities of a text from the zero state, with and without `<UNK>`, and the text's size.

    model: the biLM with its softmax.
    """
    score = score_text(model, text.sentences)
    return {
        "sentences": score.sentences,
        "left_out": text.left_out,
        "tokens": score.tokens,
        "unknown_share": score.unknown_share,
        "perplexity": score.perplexities.mean,
        "without_unknown": score.known_perplexities.mean,
    }


def tag_accuracies(model: str) -> list[float]:
    """Return the accuracies of a linear classifier of universal tags on each layer, and on the mean of the layers.

    model: a folder, or a name.

    Raises CommandError if the probe fails.
    """
    found = json.loads(run_elmo("probe", *TAGGED, "--attr", "upos", "--model", model, "--json", output=True))
    return [float(layer["trained"]["accuracy"]) for layer in found["layers"]]
