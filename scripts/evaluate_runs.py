"""Score the model-best of each run once: with `spacy evaluate`, or with annotated spans given to the pipeline.

python scripts/evaluate_runs.py training/ner/elmo corpus/ner/test.spacy metrics/ner/elmo
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import spacy
import srsly
import typer
from command import run_command
from messages import Messages
from spacy.cli._util import setup_gpu
from spacy.cli.evaluate import evaluate
from spacy.training import Corpus

from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.shared.given_spans import build_given_spans


def evaluate_given(model: Path, corpus: Path, given: list[str], gpu_id: int) -> dict[str, Any]:
    """Return the scores of a pipeline on docs whose spans are given. given: names of the span groups."""
    setup_gpu(gpu_id, silent=True)
    nlp = spacy.load(model)
    return nlp.evaluate(list(Corpus(corpus, augmenter=build_given_spans(given))(nlp)))


def main(
    training: Path,
    corpus: Path,
    metrics: Path,
    gold_preproc: Annotated[bool, typer.Option(help="Score on the corpus's words and sentences")] = False,
    gpu_id: Annotated[int, typer.Option(help="-1: CPU")] = -1,
    given: Annotated[str, typer.Option(help="Span groups that are given, separated by blanks; empty: none")] = "",
) -> None:
    """Write METRICS/seed-N.json for each TRAINING/seed-N."""
    runs = sorted(path for path in training.glob("seed-*") if re.fullmatch(r"seed-\d+", path.name))
    if not runs:
        raise CommandError(Messages.NO_RUNS.format(path=training))
    metrics.mkdir(parents=True, exist_ok=True)
    for old in metrics.glob("seed-*.json"):  # no score stays of a run that is no more
        old.unlink()
    for run in runs:
        output = metrics / f"{run.name}.json"
        best = run / "model-best"
        if given:
            scores = evaluate_given(best, corpus, given.split(), gpu_id)
        else:
            # `spacy evaluate` writes only the scores of spaCy's own components, unless it is asked one by one
            options: dict[str, Any] = {"gold_preproc": gold_preproc, "use_gpu": gpu_id}
            parts = evaluate(str(best), corpus, per_component=True, **options)
            scores = {key: value for part in parts.values() if isinstance(part, dict) for key, value in part.items()}
        srsly.write_json(output, scores)
        print(f"{output}: {json.dumps({key: value for key, value in scores.items() if isinstance(value, float)})}")


if __name__ == "__main__":
    run_command(main)
