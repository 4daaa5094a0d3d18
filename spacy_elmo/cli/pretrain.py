"""`elmo pretrain`: train a biLM, or go on."""

from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.cli._util import parse_config_overrides
from wasabi import msg

from ..errors import CommandError, ElmoError, Errors, OtherProcessError
from ..pretraining.run import loop
from ..pretraining.run.lock import run_lock
from ..pretraining.run.reporting import Reporter
from ..pretraining.run.starting import check_paths
from ..pretraining.settings.config_file import read_config
from ..pretraining.training.torchrun import environment, local_rank
from .shared.console import escaped, show_all
from .shared.paths import given_folder
from .views.progress import ConsoleReporter

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}  # further options are settings


def overrides_of(arguments: list[str]) -> dict[str, Any]:
    """Settings by their full names, as `spacy train` reads them. Raises CommandError for what is none."""
    for argument in arguments:
        name = argument.removeprefix("--").partition("=")[0]
        if argument.startswith("--") and "." not in name:
            raise CommandError(Errors.CONFIG_OVERRIDE.format(key=name))
    overrides: dict[str, Any] = parse_config_overrides(arguments)
    return {name: _as_written(value) for name, value in overrides.items()}


def _as_written(value: Any) -> Any:
    """The number that was given: spaCy's parser makes 0.6000000000000001 of 0.6, another setting than a file's."""
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return float(f"{value:.15g}") if isinstance(value, float) else value


def move_aside(output: Path) -> Path | None:
    """Give a folder the first free name of OUT.1, OUT.2 ...; None where there was nothing.

    Raises CommandError, and CheckpointError where a run is going on in it.
    """
    if output.is_file():
        raise CommandError(Errors.RESTART_FILE.format(path=output))
    if not output.exists() or not any(output.iterdir()):
        return None
    number = 1
    while (kept := output.parent / f"{output.name}.{number}").exists():
        number += 1
    with run_lock(output):  # a run that is still alive there would go on writing
        return output.rename(kept)


def pretrain(
    context: typer.Context,
    config: Annotated[
        Path,
        typer.Argument(metavar="CONFIG", help="As elmo init-pretrain-config writes it", exists=True, dir_okay=False),
    ],
    output: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Folder of the run; one that was stopped goes on", parser=given_folder),
    ],
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew: a run in OUT is kept, under the name OUT.1")
    ] = False,
) -> None:
    """Train a biLM on text, or go on with a run that was stopped.

    Settings can be given here as well: --training.epochs 2 stands for epochs in the section training.
    Ctrl-C, SIGTERM and SIGHUP write a checkpoint and end the run; the same command goes on from there.
    """
    show_all()
    if restart and output.name in ("", ".."):
        output = output.resolve()  # what is renamed needs a name of its own
    try:
        rank, _ = environment()
        on_machine = local_rank()
    except ElmoError as error:
        msg.fail(escaped(str(error)), exits=1)
    first = rank == 0
    reporter = ConsoleReporter() if first else Reporter()
    prefix = "" if first else f"process {rank}: "
    try:
        settings = read_config(config, overrides_of(context.args))
    except (ElmoError, OSError) as error:
        if on_machine == 0:  # once a machine: all of them read the same
            msg.fail(escaped(prefix + str(error)))
        raise typer.Exit(1) from error
    try:
        if restart and first:
            check_paths(settings.paths, output)  # before anything is moved
            kept = move_aside(output)
            if kept is not None:
                reporter.message(f"the earlier run is kept in {kept}")
        outcome = loop.pretrain(settings, output, reporter)
    except OtherProcessError as error:  # the other one tells it
        reporter.close()
        raise typer.Exit(1) from error
    except (ElmoError, OSError) as error:
        reporter.close()
        msg.fail(escaped(prefix + str(error)), exits=1)
    except KeyboardInterrupt:
        reporter.close()
        msg.fail(prefix + Errors.PRETRAIN_INTERRUPTED)
        raise typer.Exit(130) from None
    if outcome.stopped_by is not None:
        raise typer.Exit(128 + outcome.stopped_by)
