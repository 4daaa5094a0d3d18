"""`elmo pretrain`: train a biLM, or resume a run."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.cli._util import parse_config_overrides

from ..errors import CheckpointError, CommandError, ElmoError, Errors, OtherProcessError, SettingsError
from ..formats.folders.lock import folder_lock
from ..pretraining.run import loop
from ..pretraining.run.output import refuse_other_folder
from ..pretraining.run.reporting import Reporter
from ..pretraining.run.starting import check_new_run
from ..pretraining.settings.config_file import read_config
from ..pretraining.training.torchrun import environment, local_rank
from .shared.console import show_all
from .shared.errors import print_error
from .shared.paths import folder_argument
from .views.progress import ConsoleReporter, same_command

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}  # other options are settings


def overrides_of(arguments: list[str]) -> dict[str, Any]:
    """Return the settings in arguments like --training.epochs 2, by their full names, as `spacy train` reads them.

    arguments: those that are not options of the command.

    Raises CommandError if one is not a setting.
    """
    for argument in arguments:
        name = argument.removeprefix("--").partition("=")[0]
        if argument.startswith("--") and "." not in name:
            raise CommandError(Errors.CONFIG_OVERRIDE.format(key=name))
    overrides: dict[str, Any] = parse_config_overrides(arguments)
    return {name: _as_written(value) for name, value in overrides.items()}


def _as_written(value: Any) -> Any:
    """Return the number that was written: spaCy's parser reads 0.6 as 0.6000000000000001, unlike a config file."""
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return float(f"{value:.15g}") if isinstance(value, float) else value


def move_aside(output: Path, check: Callable[[], None]) -> Path | None:
    """Rename a folder to the first free name of OUT.1, OUT.2 ...

    check: raises ElmoError if a new run can't start in `output`. It is called before and after: if the run misses
        something then, the folder gets its name back.

    Returns the new path; None if the folder is missing or empty.
    Raises ElmoError as `check` does, CommandError if it is a file, CheckpointError if a run is active in it,
        SettingsError if the new run would read something that is in the folder.
    """
    check()
    if output.is_file():
        raise CommandError(Errors.RESTART_FILE.format(path=output))
    if not output.exists() or not any(output.iterdir()):
        return None
    renamed = _renamed(output)
    try:
        check()
    except BaseException as error:
        renamed.rename(output)
        if isinstance(error, ElmoError):
            raise SettingsError(Errors.RESTART_INPUT.format(folder=output, reason=error)) from error
        raise
    return renamed


def _renamed(output: Path) -> Path:
    number = 1
    while (renamed := output.parent / f"{output.name}.{number}").exists():
        number += 1
    with folder_lock(output, CheckpointError):  # an active run would continue to write there
        if os.name != "nt":
            return output.rename(renamed)
    return output.rename(renamed)  # Windows renames no folder whose lock is open


def pretrain(
    context: typer.Context,
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG", help="Config, as elmo init-pretrain-config writes it", exists=True, dir_okay=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Folder of the run; a run that was stopped there is resumed", parser=folder_argument
        ),
    ],
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Start again from the first update; an earlier run in OUT is renamed to OUT.1"),
    ] = False,
) -> None:
    """Train a biLM on text, or resume a stopped run.

    Settings can be overridden here: --training.epochs 2 is epochs in the section training.
    Ctrl-C, SIGTERM and SIGHUP write a checkpoint and end the run; the same command resumes it,
    without --restart.
    """
    show_all()
    if restart and output.name in ("", ".."):
        output = output.resolve()  # a folder without a name can't be renamed
    try:
        rank, _ = environment()
        on_machine = local_rank()
    except ElmoError as error:
        print_error(str(error), exits=1)
    first = rank == 0
    prefix = "" if first else f"process {rank}: "
    try:
        settings = read_config(config, overrides_of(context.args))
    except (ElmoError, OSError) as error:
        if on_machine == 0:  # once for each machine, since all its processes read the same file
            print_error(prefix + str(error))
        raise typer.Exit(1) from error
    reporter = ConsoleReporter(restart=restart, language=settings.corpus.language) if first else Reporter()
    try:
        if restart and first:
            refuse_other_folder(output)
            parts = (settings.bilm, settings.paths, settings.vocabulary, settings.training)
            renamed = move_aside(output, partial(check_new_run, *parts, output))
            if renamed is not None:
                reporter.message(f"the earlier run is kept in {renamed}")
        outcome = loop.pretrain(settings, output, reporter)
    except OtherProcessError as error:  # the other process prints it
        reporter.close()
        raise typer.Exit(1) from error
    except (ElmoError, OSError) as error:
        reporter.close()
        print_error(prefix + str(error), exits=1)
    except KeyboardInterrupt:
        reporter.close()
        print_error(prefix + Errors.PRETRAIN_INTERRUPTED.format(command=same_command(restart)))
        raise typer.Exit(130) from None
    if outcome.stopped_by is not None:
        raise typer.Exit(128 + outcome.stopped_by)
