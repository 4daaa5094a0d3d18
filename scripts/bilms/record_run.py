"""Keep what a pretraining run has measured: its settings and its evaluations, in results/pretraining.json.

    python -m scripts.bilms.record_run runs/gpu en_mini_5 --bilm en_mini --title "run 5" --text "all three texts" \
        --before 342000000 --machine "NVIDIA H100" --command "python -m spacy elmo pretrain ..."

The page of results draws the curves of all runs there.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from spacy.util import load_config

from spacy_elmo.errors import CommandError
from spacy_elmo.pretraining.evaluating import read_metrics
from spacy_elmo.pretraining.folder import METRICS

from ..runs.experiments import keep_result, read_results
from ..shared import run_command


def main(
    run: Annotated[Path, typer.Argument(help="Folder of a run of pretrain that has ended")],
    name: Annotated[str, typer.Argument(help="Name of the record")],
    bilm: Annotated[str, typer.Option(help="Which biLM the run has made")],
    title: Annotated[str, typer.Option(help="What to call the run")],
    text: Annotated[str, typer.Option(help="What it has read")],
    command: Annotated[str, typer.Option(help="As it was typed")],
    machine: Annotated[str, typer.Option(help="On which it ran")],
    before: Annotated[int, typer.Option(help="Tokens that the biLM had read in earlier runs", min=0)] = 0,
) -> None:
    """Put NAME into results/pretraining.json."""
    if name in read_results("pretraining"):
        raise CommandError(f"NAME is {name!r}, which results/pretraining.json has. Expected a new name.")
    settings = dict(load_config(run / "config.cfg"))
    if settings.pop("paths").get("init") is not None and not before:
        raise CommandError(f"{run}: it began from another biLM. Expected --before, the tokens that it had read.")
    rows = read_metrics(run / METRICS)
    if not rows or not all(math.isfinite(row.perplexity + row.seconds) for row in rows):
        raise CommandError(f"{run / METRICS}: no evaluations, or an infinite one. Expected those of a good run.")
    record = {
        "bilm": bilm,
        "title": title,
        "text": text,
        "command": command,
        "machine": machine,
        "minutes": round(rows[-1].seconds / 60, 1),
        "tokens_before": before,
        "averaged": bool(settings["training"]["average_share"]),
        "evaluations": [[row.tokens, round(row.perplexity, 2)] for row in rows],
        "settings": settings,
    }
    keep_result("pretraining", name, record)


if __name__ == "__main__":
    run_command(main)
