"""Keep what a pretraining run has measured: its settings and its evaluations, in results/pretraining/.

    python -m scripts.bilms.record_run runs/gpu en_mini_5 --bilm en_mini --title "run 5" --text "all three texts" \
        --before 342000000 --machine "NVIDIA H100" --command "python -m spacy elmo pretrain ..."

The page of results draws the curves of all files there.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.util import load_config

from spacy_elmo.errors import CommandError
from spacy_elmo.pretraining.metrics import METRICS, read_metrics

from ..shared.command import run_command
from ..shared.measurement import write_record
from ..shared.messages import Messages

CONFIG = "config.cfg"


def learning_result_of(project: Path, name: str) -> Path:
    """Return the file of a record.

    project: the folder with results.
    name: of the record.
    """
    return project / "results" / "pretraining" / f"{name}.json"


def settings_of(run: Path) -> tuple[dict[str, Any], bool, bool]:
    """Return the settings of a run without its paths, whether it began from another biLM, and whether it has averages.

    run: its folder.

    Raises CommandError if its config can't be read.
    """
    path = run / CONFIG
    try:
        settings = dict(load_config(path))
        is_tuned = settings.pop("paths").get("init") is not None
        return settings, is_tuned, bool(settings["training"]["average_share"])
    except (OSError, ValueError, LookupError, AttributeError) as error:
        raise CommandError(Messages.PRETRAINED.format(run=run, name=CONFIG, reason=repr(error))) from error


def main(
    run: Annotated[Path, typer.Argument(help="Folder of a run of pretrain that has ended")],
    name: Annotated[str, typer.Argument(help="Name of the record's file, without .json")],
    bilm: Annotated[str, typer.Option(help="Which biLM the run has made")],
    title: Annotated[str, typer.Option(help="What to call the run")],
    text: Annotated[str, typer.Option(help="What it has read")],
    command: Annotated[str, typer.Option(help="As it was typed")],
    machine: Annotated[str, typer.Option(help="On which it ran")],
    before: Annotated[int, typer.Option(help="Tokens that the biLM had read in earlier runs", min=0)] = 0,
) -> None:
    """Write results/pretraining/NAME.json."""
    path = learning_result_of(Path(), name)
    if Path(name).name != name or path.exists():
        raise CommandError(Messages.RECORD_NAME.format(got=name, path=path))
    settings, is_tuned, is_averaged = settings_of(run)
    if is_tuned and not before:
        raise CommandError(Messages.TOKENS_BEFORE.format(run=run))
    rows = read_metrics(run / METRICS)
    if not rows or not all(math.isfinite(row.perplexity + row.seconds) for row in rows):
        raise CommandError(Messages.EVALUATIONS.format(path=run / METRICS))
    record = {
        "bilm": bilm,
        "title": title,
        "text": text,
        "command": command,
        "machine": machine,
        "minutes": round(rows[-1].seconds / 60, 1),
        "tokens_before": before,
        "averaged": is_averaged,
        "evaluations": [[row.tokens, round(row.perplexity, 2)] for row in rows],
        "settings": settings,
    }
    write_record(path, record)
    print(f"{path}: written")


if __name__ == "__main__":
    run_command(main)
