"""Score the model-best of each run once with `spacy evaluate`.

python scripts/evaluate_runs.py training/ner/elmo corpus/ner/test.spacy metrics/ner/elmo
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from command import run_command
from messages import Messages
from spacy.cli.evaluate import evaluate

from spacy_elmo.errors import CommandError


def main(
    training: Path,
    corpus: Path,
    metrics: Path,
    gold_preproc: Annotated[bool, typer.Option(help="Score on the corpus's words and sentences")] = False,
    gpu_id: Annotated[int, typer.Option(help="-1: CPU")] = -1,
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
        given: dict[str, Any] = {"gold_preproc": gold_preproc, "use_gpu": gpu_id}
        parts = evaluate(str(run / "model-best"), corpus, per_component=True, **given)
        # `spacy evaluate` writes only the scores of spaCy's own components, unless it is asked component by component
        scores = {key: value for part in parts.values() if isinstance(part, dict) for key, value in part.items()}
        srsly.write_json(output, scores)
        print(f"{output}: {json.dumps({key: value for key, value in scores.items() if isinstance(value, float)})}")


if __name__ == "__main__":
    run_command(main)
