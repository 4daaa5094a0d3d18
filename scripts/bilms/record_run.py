"""Keep what a pretraining run has measured: its settings and its evaluations, in results/pretraining/.

    python -m scripts.bilms.record_run runs/gpu en_mini_5 --bilm en_mini --title "run 5" --before 342000000 \
        --machine "NVIDIA H100" --command "python -m spacy elmo pretrain ..."

The page of results draws the curves of all files there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.strict.strict_json import parse_json
from spacy_elmo.pretraining.model.files import RUN
from spacy_elmo.pretraining.run.metrics import METRICS, read_metrics

from ..shared.command import run_command
from ..shared.measurement import write_record
from ..shared.messages import Messages


def learning_folder(project: Path) -> Path:
    """Return the folder of the records. project: the folder with results."""
    return project / "results" / "pretraining"


def settings_of(run: Path) -> dict[str, Any]:
    """Return the settings that a run was started with. run: its folder. Raises CommandError if it has none."""
    path = run / RUN
    try:
        return dict(parse_json(path.read_bytes())["settings"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CommandError(Messages.PRETRAINED.format(run=run, name=RUN, reason=repr(error))) from error


def main(
    run: Annotated[Path, typer.Argument(help="Folder of a run of pretrain")],
    name: Annotated[str, typer.Argument(help="Of the record")],
    bilm: Annotated[str, typer.Option(help="Which biLM the run has made")],
    title: Annotated[str, typer.Option(help="What to call the run")],
    command: Annotated[str, typer.Option(help="As it was typed")],
    machine: Annotated[str, typer.Option(help="On which it ran")],
    before: Annotated[int, typer.Option(help="Tokens that the biLM had read in earlier runs", min=0)] = 0,
) -> None:
    """Write results/pretraining/NAME.json."""
    settings = settings_of(run)
    rows = read_metrics(run / METRICS)
    if not rows:
        raise CommandError(Messages.PRETRAINED.format(run=run, name=METRICS, reason="no evaluations"))
    record = {
        "bilm": bilm,
        "title": title,
        "command": command,
        "machine": machine,
        "minutes": round(rows[-1].seconds / 60, 1),
        "tokens_before": before,
        "evaluations": [[row.tokens, round(row.perplexity, 2)] for row in rows],
        "settings": settings,
    }
    path = learning_folder(Path()) / f"{name}.json"
    write_record(path, record)
    print(f"{path}: written")


if __name__ == "__main__":
    run_command(main)
